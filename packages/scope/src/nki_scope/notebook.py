"""Results as HTML in a notebook, without script.

Types of packages that need not be installed are named; their attributes are all that is used.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from neuroncore.memory import View
from neuroncore.timeline import Timeline
from nki_runtime.trace import picture
from nki_scope.sections import migration_section

MOST_BARS = 2000
"""Micro-ops of a timeline up to which its picture is shown."""
MOST_ROWS = 30
CORNER = 6, 8
"""Rows and columns of a tensor that are shown."""


def html_of(value: Any) -> str | None:
    """The HTML of a value of a type in HTML_OF; None for any other."""
    keys = (f"{kind.__module__}.{kind.__qualname__}" for kind in type(value).__mro__)
    return next((HTML_OF[key](value) for key in keys if key in HTML_OF), None)


def _timeline(timeline: Timeline) -> str:
    drawn = picture([timeline]) if timeline.num_bars <= MOST_BARS else ""
    return drawn + _text(timeline)


def _text(value: object) -> str:
    return f"<pre>{escape(str(value))}</pre>"


def _table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; of many rows the first ones."""
    every = list(rows)
    cells = "".join(_row("td", row) for row in every[:MOST_ROWS])
    more = f"<p>{len(every) - MOST_ROWS} more</p>" if len(every) > MOST_ROWS else ""
    return f"<table><caption>{escape(caption)}</caption>{_row('th', head)}{cells}</table>{more}"


def _row(cell: str, values: Sequence[object]) -> str:
    return f"<tr>{''.join(f'<{cell}>{escape(str(value))}</{cell}>' for value in values)}</tr>"


def _tensor(view: View) -> str:
    """The spec of a tensor, and the values of its first rows and columns."""
    array = np.asarray(view.array).astype(np.float64)
    finite = array[np.isfinite(array)]
    known = f"{finite.min():g} to {finite.max():g}" if finite.size else "no finite number"
    caption = (
        f"{list(view.shape)} {view.dtype.name} in {view.spec.space.name}: {known}, "
        f"{int(np.isnan(array).sum())} NaN"
    )
    flat = array.reshape(array.shape[0] if array.ndim > 1 else 1, -1)
    corner = flat[: CORNER[0], : CORNER[1]]
    rows = [[f"{value:g}" for value in row] for row in corner]
    return _table(caption, [str(n) for n in range(corner.shape[1])], rows)


def _orders(graph: Any) -> str:
    states = [(status, len(graph.with_status(status))) for status in ("kept", "implied", "removed")]
    counts = ", ".join(f"{count} {status}" for status, count in states)
    rows = [(e.source, e.sink, e.kind, e.buffer, e.rule) for e in graph.with_status("kept")]
    return _table(f"{graph.kernel.name}: {counts}", ("first", "then", "kind", "of", "rule"), rows)


def _plan(plan: Any) -> str:
    caption = ", ".join(f"{name} in {slots} places" for name, slots in plan.slots.items())
    rows = [(w.op, w.queue, w.after, list(w.distance), "; ".join(w.why)) for w in plan.waits]
    return _table(
        caption or "every buffer in one place", ("operation", "queue", "waits for", "apart", "why"),
        rows,
    )  # fmt: skip


def _schedule(tuned: Any) -> str:
    report = tuned.report
    times = " to ".join(f"{ns / 1e3:.2f} µs" for ns in (report.root_ns, report.best_ns))
    caption = f"{times}, {report.candidates} candidates"
    steps = [(n, json.dumps(step)) for n, step in enumerate(tuned.schedule, 1)]
    return _table(caption, ("", "step"), steps)


def _migration(result: Any) -> str:
    section = migration_section(result.path, result.before, result.after, result.findings)
    changed = [row for row in section["rows"] if row[0] == "changed"]
    caption = f"{result.path}: {len(changed)} lines changed, {len(result.findings)} findings"
    rows = [
        (old or "", before, now or "", after, "; ".join(section["rules"].get(old, ())))
        for _, old, before, now, after in changed
    ]
    return _table(caption, ("", "before", "", "after", "rules"), rows)


HTML_OF: Mapping[str, Callable[[Any], str]] = {
    "neuroncore.timeline.results.timeline.Timeline": _timeline,
    "neuroncore.findings.finding.Finding": _text,
    "neuroncore.checks.report.Report": _text,
    "neuroncore.memory.view.View": _tensor,
    "tokenplan.graph.token_graph.TokenGraph": _orders,
    "tokenplan.neuroncore.plan.AsyncPlan": _plan,
    "nkigym.tuning.tune.Tuned": _schedule,
    "nki_migrate.engine.results.FileResult": _migration,
}
"""Type → its HTML."""
