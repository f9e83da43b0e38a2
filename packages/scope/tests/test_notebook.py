"""What a notebook shows, and the tour of examples/notebooks."""

from __future__ import annotations

import ast
import json
from types import SimpleNamespace
from typing import Any

from members import ROOT

import nki_runtime
import nki_scope


class Formatter(dict):
    """Takes functions by type, as IPython's formatter of a mimetype does."""

    def for_type(self, kind: type, html: Any) -> None:
        self[kind] = html


def loaded() -> Formatter:
    formatter = Formatter()
    formatters = SimpleNamespace(formatters={"text/html": formatter})
    nki_scope.load_ipython_extension(SimpleNamespace(display_formatter=formatters))
    return formatter


def executed(cell: str, names: dict[str, Any]) -> Any:
    """The value of the last expression of a cell."""
    lines = (line for line in cell.splitlines() if not line.startswith("%"))
    tree = ast.parse("\n".join(lines))
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        shown = ast.Assign([ast.Name("shown", ast.Store())], last.value)
        tree.body[-1] = ast.fix_missing_locations(shown)
    exec(compile(tree, "tour", "exec"), names)
    return names.get("shown")


def test_the_tour_runs_and_shows_a_timeline():
    text = (ROOT / "examples" / "notebooks" / "tour.ipynb").read_text("utf-8")
    cells = ["".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
    names, formatter = {"__name__": "tour"}, loaded()
    with nki_runtime.use(nki="0.7", target="trn2"):
        values = [executed(cell, names) for cell in cells]

    assert cells[0].startswith("%load_ext nki_scope")
    assert values[2] == 2 * 128 * 512
    html = formatter[type(values[3])](values[3])
    assert html.startswith("<svg ") and "critical path" in html
    assert "<script" not in html and len(html) < 50_000
    assert values[4] == "add.html"
