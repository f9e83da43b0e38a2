"""Advice: what the model gains where one cause of waiting is taken away, the largest gain first.

Each entry was measured: the program, or the constants of the model, were changed as its
`experiment` states, and the timeline was played again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from neuroncore.errors import KernelError
from neuroncore.timeline import Timeline, estimate
from nki_scope.document import Sources
from nki_scope.sections.own_constants import constants_of
from nki_scope.sections.program_changes import Cause, ChangeOfProgram, rotated

LEAST_GAIN = 0.01
"""Share of the total below which a line is left out, and a cause comes last."""
MOST_PLAYED = 50_000
"""Micro-ops of a kernel beyond which no experiment is made."""
PARTS = ("cause", "line", "minor")
"""Causes that gain something, alone or after others; single lines; the other causes."""


@dataclass(frozen=True, slots=True)
class _Experiment:
    """Constants that become 0, and changes of the program, one after the other."""

    zeros: frozenset[str] = frozenset()
    changes: tuple[ChangeOfProgram, ...] = ()

    def and_without(self, cause: Cause) -> _Experiment:
        """A cause is taken away, too."""
        changes = () if cause.change is None else (cause.change,)
        return _Experiment(self.zeros | {*cause.zeros}, self.changes + changes)

    def total_ns(self, timeline: Timeline) -> float:
        """The time of the changed program; infinite where it cannot be played."""
        program, values = timeline.source, constants_of(timeline)
        for name in self.zeros & values.values.keys():
            values = values.but(name, program.target, 0)
        try:
            # Statements are known by their id: what copies all of them comes last.
            for change in sorted(self.changes, key=lambda change: change is rotated):
                program = change(program)
            return estimate(program, mode=timeline.mode, constants=values, verified=True).total_ns
        except KernelError:
            return inf


def advice_section(
    timeline: Timeline, causes: Iterable[Cause], lines: Iterable[Cause], sources: Sources
) -> list[dict[str, Any]]:
    """The advice on a kernel as a document; none on a kernel that is too large to play again.

    Causes and lines are of the kernel as it is written; experiments are played as `timeline` was.
    Causes come first, then single lines, the largest gain of each first, then causes without one.

    `gainNs` is the gain alone, `nextNs` the gain where the ones before have been followed.
    """
    if not 0 < timeline.num_ops <= MOST_PLAYED:
        return []
    total, least = timeline.total_ns, LEAST_GAIN * timeline.total_ns

    def measured(found: Iterable[Cause]) -> list[tuple[float, Cause]]:
        gains = [(total - _Experiment().and_without(c).total_ns(timeline), c) for c in found]
        return sorted((g for g in gains if g[0] != -inf), key=lambda pair: -pair[0])

    section, before, reached = [], _Experiment(), total
    for gain, cause in measured(causes):
        both = before.and_without(cause)
        step = max(reached - both.total_ns(timeline), 0.0)
        if step:
            before, reached = both, reached - step
        part = PARTS[0 if max(gain, step) >= least else 2]
        section.append(_document(cause, part, gain, step, sources))
    section += [
        _document(line, PARTS[1], gain, None, sources)
        for gain, line in measured(lines) if gain >= least
    ]  # fmt: skip
    return sorted(section, key=lambda entry: PARTS.index(entry["part"]))


def _document(
    cause: Cause, part: str, gain: float, step: float | None, sources: Sources
) -> dict[str, Any]:
    places = {str(call.origin): sources.at(call.origin) for call in cause.calls if call.origin}
    return {
        "part": part, "title": cause.title, "text": cause.text, "experiment": cause.experiment,
        "gainNs": gain, "nextNs": step, "lines": list(places.values()),
    }  # fmt: skip


def advice_text(section: Sequence[Mapping[str, Any]], total_ns: float) -> str:
    """The entries that gain something, as text."""
    found = [entry for entry in section if entry["part"] != PARTS[2]]
    lines = [
        f"{entry['gainNs'] / 1e3:8.2f} µs {entry['gainNs'] / total_ns:6.1%}  {entry['title']}"
        f"{_lines_text(entry['lines'])}: {entry['text']}"
        for entry in found
    ]
    return "\n".join(["", "advice: what the model saves without", *lines]) if lines else ""


def _lines_text(lines: Sequence[Sequence[int] | None]) -> str:
    numbers = sorted({at[1] for at in lines if at})
    return f" (line {', '.join(map(str, numbers))})" if numbers else ""
