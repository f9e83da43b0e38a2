"""What a notebook shows, and the tour of examples/notebooks."""

from __future__ import annotations

import ast
import json
from html import escape
from typing import Any

import numpy as np
from members import ROOT

import nki_runtime
from neuroncore.checks import Report
from neuroncore.findings import Finding, ShownAsHtml
from neuroncore.machine.observe import Event, Watcher, watched_by
from neuroncore.program import parse_program
from nki_migrate.engine.migration import migrate_source
from nki_migrate.settings.request import Request
from nkigym import tune
from tokenplan import analyse
from tokenplan.neuroncore import schedule


def executed(cell: str, names: dict[str, Any]) -> Any:
    """The value of the last expression of a cell."""
    tree = ast.parse(cell)
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        shown = ast.Assign([ast.Name("shown", ast.Store())], last.value)
        tree.body[-1] = ast.fix_missing_locations(shown)
    exec(compile(tree, "tour", "exec"), names)
    return names.get("shown")


def test_the_tour_runs_and_shows_a_timeline():
    text = (ROOT / "examples" / "notebooks" / "tour.ipynb").read_text("utf-8")
    cells = ["".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
    names = {"__name__": "tour"}
    with nki_runtime.use(nki="0.7", target="trn2"):
        values = [executed(cell, names) for cell in cells]

    assert values[2] == 2 * 128 * 512
    html = values[3]._repr_html_()
    assert html.startswith("<svg ") and "critical path" in html
    assert "<script" not in html and len(html) < 50_000
    assert values[4] == "add.html"


PROGRAM = """program("trn2", "0.6")
def stream(x: float32[512, 256]):
    out = buffer(float32[512, 256], shared_hbm)
    for k in range(4):
        tile = buffer(float32[128, 256], sbuf)
        dma_copy(dst=tile[:, :], src=x[128*k : 128*k + 128, :])
        tensor_scalar(dst=tile[:, :], data=tile[:, :], operand0=2.0, op0=multiply)
        dma_copy(dst=out[128*k : 128*k + 128, :], src=tile[:, :])
    return out
"""


def html_of(result: ShownAsHtml) -> str:
    html = result._repr_html_()
    assert html is not None
    return html


def test_orders_and_plans_are_tables_of_their_waits():
    program = parse_program(PROGRAM)
    graph = analyse(program)
    orders, plan = html_of(graph), html_of(schedule(graph, program))

    assert "stream: 2 kept, 2 implied" in orders
    assert "<td>dma_copy</td><td>tensor_scalar</td><td>RAW</td><td>tile</td>" in orders
    assert "<td>tensor_scalar</td><td>dma0</td><td>dma_copy</td>" in plan


def test_a_schedule_is_a_table_of_its_steps():
    tuned = tune(parse_program(PROGRAM), budget=50)

    assert html_of(tuned).count("<tr>") == len(tuned.schedule) + 1


def test_a_migration_is_a_table_of_its_changed_lines():
    old = ROOT / "examples" / "beta1" / "masked_add.py"
    html = html_of(migrate_source(old.read_text("utf-8"), "<b>.py", Request()))

    assert "&lt;b&gt;.py: " in html
    assert "<td>import nki</td>" in html


def test_a_tensor_shows_its_first_values_and_counts_nans():
    shown = []

    class Shown(Watcher):
        def did(self, event: Event) -> None:
            shown.append(html_of(event.views["dst"]))

    x = np.arange(1280, dtype=np.float32).reshape(128, 10)
    x[1, 1] = np.nan
    names: dict[str, Any] = {}
    with nki_runtime.use(nki="0.7", target="trn2"), watched_by(Shown()):
        exec(COPY, names)
        nki_runtime.simulate(names["copy"])(x)

    assert "[128, 10] float32 in sbuf: 0 to 1279, 1 NaN" in shown[0]
    assert "<td>10</td><td>nan</td><td>12</td>" in shown[0]
    assert "<td>1279</td>" not in shown[0]


def test_findings_are_shown_as_text():
    finding = Finding("memory", "<b> is read before it is written")
    report = Report()
    report.add(finding)

    for value in (finding, report):
        assert value._repr_html_() == f"<pre>{escape(str(value))}</pre>"


def test_without_a_reporter_a_notebook_shows_the_text(monkeypatch):
    monkeypatch.setattr("neuroncore.findings.notebook_html._html_of", lambda: lambda value: None)

    assert Finding("memory", "x")._repr_html_() is None


COPY = """
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def copy(x):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""
