"""Kernels that run have an estimate: examples, the gallery, workloads; public ones by a clone."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks.model.coverage import counts, coverage_lines
from generated import FOLDER, examples
from tests.examples.test_examples import LANGUAGES, arguments, launched, load, quick_cases
from tests.generated.test_versions import SMALL, made

import nki_runtime
from neuroncore.errors import KernelError
from neuroncore.timeline import Timeline, estimate
from nkigen_lite import as_spec
from nkigen_lite.cli.generated_source import normal_inputs

LEAST = 0.98


def of_examples() -> Iterator[tuple[str, Callable[[], Timeline]]]:
    for case in {c.values[1].kernel: c.values for c in quick_cases()}.values():
        folder, found, number = case

        def estimated(folder: str = folder, found: Any = found, number: int = number) -> Timeline:
            with nki_runtime.use(LANGUAGES[folder][0], nki=LANGUAGES[folder][1], **found.options):
                kernel = launched(getattr(load(found.path), found.kernel), found)
                return nki_runtime.estimate(kernel, **arguments(found, number))

        yield f"{folder}/{found.kernel}", estimated


def of_the_gallery() -> Iterator[tuple[str, Callable[[], Timeline]]]:
    for example in examples():

        def estimated(example: Any = example) -> Timeline:
            specs = [as_spec(spec) for spec, _ in example.arguments.values()]
            with nki_runtime.use(nki="0.7"):
                kernel = getattr(load(FOLDER / example.kernel), example.name)
                arrays = [*normal_inputs(specs, seed=0), *example.constants()]
                return nki_runtime.estimate(kernel, *arrays)

        yield f"gallery/{example.name}", estimated


def of_workloads() -> Iterator[tuple[str, Callable[[], Timeline]]]:
    for name in SMALL:

        def estimated(name: str = name) -> Timeline:
            return estimate(made(name, "0.7").program, mode="device")

        yield f"workload/{name}", estimated


def test_kernels_of_the_project_have_an_estimate():
    launches = []
    for name, estimated in (*of_examples(), *of_the_gallery(), *of_workloads()):
        try:
            domain = estimated().uncertainty.domain
            rejected = []
        except KernelError as reason:
            domain, rejected = {}, [f"{name}: {reason}"]
        launches.append(
            {"kernel": name, "rejected": rejected, "unknown": domain.get("unknown cost", [])}
        )

    assert share([*counts(launches)]) >= LEAST, [*counts(launches)]


def share(lines: list[str]) -> float:
    found = re.search(r"\((.*)%\)", lines[0])
    assert found is not None
    return float(found[1]) / 100


@pytest.mark.parametrize(
    ("variable", "command"),
    [
        ("NKI_CORPUS", "-m tests.corpora.beta1 --repo nki-samples --jobs 1"),
        ("NKI_LIBRARY_CHECKOUT", "-m tests.corpora.nki_library --sample estimates --tests 1"),
    ],
)
def test_public_kernels_that_run_have_an_estimate(variable: str, command: str):
    if not os.environ.get(variable):
        pytest.skip(f"{variable} is not set: it names clones of public kernels")
    _, *lines = coverage_lines([sys.executable, *command.split()])

    assert share(lines) >= LEAST, lines


def test_every_process_of_a_command_writes_its_launches(tmp_path: Path):
    script = tmp_path / "twice.py"
    script.write_text(
        "import numpy as np, nki_runtime\n"
        "with nki_runtime.use(nki='0.7'):\n"
        "    import nki, nki.isa as nisa, nki.language as nl\n"
        "    @nki.jit\n"
        "    def copy(x):\n"
        "        y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
        "        nisa.dma_copy(dst=y, src=x)\n"
        "        return y\n"
        "    copy(np.ones((128, 8), np.float32))\n"
        "    copy[2](np.ones((128, 8), np.float32))\n"
    )
    command = [sys.executable, "-c", f"import os; os.system('{sys.executable} {script}')"]

    assert [*coverage_lines(command)][1:] == [
        "2 of 2 launches of 1 kernels have an estimate (100.0%)"
    ]
