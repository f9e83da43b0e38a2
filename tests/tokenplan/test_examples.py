"""The examples' token graphs: few edges, each needed, none lost, and the same in any process."""

from __future__ import annotations

import os
import subprocess
import sys

import jsonschema
import pytest
from members import ROOT
from tests.tokenplan.kernels import EXAMPLES, program

from tokenplan import analyse
from tokenplan.checker import CheckOptions, check_plan, read_plan_file
from tokenplan.report import plan_file

# (kept, implied): docs/tokenplan.md shows them.
EDGES = {
    "stream": (2, 2),
    "even_odd": (2, 2),
    "recurrence": (3, 2),
    "gemm": (4, 0),
    "transpose": (3, 0),
    "gather": (5, 4),
    "slots": (3, 9),
    "attention": (14, 7),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_keeps_few_edges_and_each_is_needed(name):
    graph = analyse(program(name))
    text = plan_file.write(graph)
    jsonschema.validate(plan_file.as_json(graph), plan_file.schema())

    report = check_plan(read_plan_file(text), CheckOptions(mutate=True))

    assert [str(found) for found in report.findings] == []
    assert (len(graph.with_status("kept")), len(graph.with_status("implied"))) == EDGES[name]


def kept_over(name: str, tensor: str) -> list[tuple[str, str, tuple[int, ...], str]]:
    edges = analyse(program(name)).with_status("kept")
    return [(e.source, e.sink, e.distance, e.kind) for e in edges if e.buffer == tensor]


def test_even_and_odd_blocks_ask_for_no_order():
    assert kept_over("even_odd", "a") == []


def test_a_recurrence_asks_for_one_order():
    assert kept_over("recurrence", "a") == [("dma_copy.2", "dma_copy", (1,), "RAW")]


def test_rows_that_the_device_chooses_are_kept_in_order_with_every_store():
    opaque = [found.text for found in analyse(program("gather")).diagnostics if found.code == "W1"]
    assert len(opaque) == 1 and "keeps 3 orders" in opaque[0]
    edges = kept_over("gather", "state")
    assert ("dma_copy.4", "dma_copy.3", (1,), "RAW") in edges


def test_the_plan_file_is_the_same_in_any_process():
    code = (
        "from tests.tokenplan.kernels import program\n"
        "from tokenplan import analyse\nfrom tokenplan.report import plan_file\n"
        "print(plan_file.write(analyse(program('attention'))))\n"
    )
    path = os.pathsep.join((str(ROOT), str(ROOT / "workspace")))
    said = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": path},
        ).stdout
        for seed in ("0", "1", "12345")
    }  # fmt: skip
    assert len(said) == 1 and '"key": "sha256:' in said.pop()
