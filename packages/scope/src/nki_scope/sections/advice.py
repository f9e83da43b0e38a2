"""Advice: what the model gains where one cause of waiting is taken away, the largest gain first.

Each entry was measured: the program, or the constants of the model, were changed as its
`experiment` states, and the timeline was played again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from neuroncore.errors import KernelError
from neuroncore.timeline import Timeline, estimate
from nki_scope.document import Sources
from nki_scope.sections.budget import NOT_PLAYED, Budget
from nki_scope.sections.own_constants import constants_of
from nki_scope.sections.program_changes import (
    Cause,
    ChangeOfProgram,
    loaded_once,
    place_of,
    rotated,
    spread,
)
from nki_scope.sections.wide_transfers import with_wide_transfers

LEAST_GAIN = 0.01
"""Share of the total below which a line is left out, and a cause comes last."""
COPYING = None, spread, loaded_once, with_wide_transfers, rotated
"""Changes that copy statements, in the order in which they are applied."""
HEADS = {
    False: "advice: what the model saves with each change",
    True: "bounds: the most that a change can save, no change was played",
}
"""Of the text, by isBound."""
PARTS = ("cause", "bound", "line", "minor")
"""Causes whose cure gains something, alone or after others; causes without a cure that was
played; single lines; the other causes."""


@dataclass(frozen=True, slots=True)
class _Experiment:
    """Constants that become 0, and changes of the program, one after the other."""

    zeros: frozenset[str] = frozenset()
    changes: tuple[ChangeOfProgram, ...] = ()

    def and_without(self, cause: Cause) -> _Experiment:
        """A cause is taken away, too."""
        changes = () if cause.change is None else (cause.change,)
        return _Experiment(self.zeros | {*cause.zeros}, self.changes + changes)

    def total_ns(self, timeline: Timeline, budget: Budget) -> float:
        """The time of the changed program; infinite where it cannot be or is not played."""
        if not budget.takes(timeline):
            return inf
        program, values = timeline.source, constants_of(timeline)
        for name in self.zeros & values.values.keys():
            values = values.but(name, program.target, 0)
        try:
            # Statements are known by their id: what copies them comes last.
            for change in sorted(self.changes, key=_copies):
                program = change(program)
            return estimate(program, mode=timeline.mode, constants=values, verified=True).total_ns
        except KernelError:
            return inf


def _copies(change: ChangeOfProgram) -> int:
    function = getattr(change, "func", change)
    return COPYING.index(function) if function in COPYING else 0


def advice_section(
    timeline: Timeline, causes: Iterable[Cause], lines: Iterable[Cause], sources: Sources,
    budget: Budget,
) -> list[dict[str, Any]]:  # fmt: skip
    """The advice on a kernel as a document, as far as the budget allows.

    Causes come first, then bounds, then single lines, the largest gain of each first, then causes
    that gain less than LEAST_GAIN. What toolchains do and gains nothing is left out.

    `isBound`: no cure was played, and `gainNs` is the most that one can gain. Otherwise it is the
    gain alone, `nextNs` the gain where the cures before have been followed.
    """
    total, least = timeline.total_ns, LEAST_GAIN * timeline.total_ns
    if not timeline.num_ops or not budget.takes(timeline):
        return []
    on_path = _path_shares(timeline)

    def measured(found: Iterable[Cause]) -> list[tuple[float, Cause]]:
        """The longest on the critical path are played first."""
        ranked = sorted(found, key=lambda c: -sum(on_path[place_of(call)] for call in c.calls))
        gains = [(total - _without(c).total_ns(timeline, budget), c) for c in ranked]
        best = {(c.title, c.text): (g, c) for g, c in sorted(gains, key=lambda pair: pair[0])}
        played = (pair for pair in best.values() if pair[0] != -inf)
        return sorted(played, key=lambda pair: -pair[0])

    section = [
        _document(cause, _part(cause, max(gain, step or gain) >= least), gain, step, sources)
        for gain, step, cause in _in_turn(measured(causes), timeline, budget)
        if max(gain, step or gain) > 0 or not (cause.automatic or cause.is_bound)
    ]
    section += [
        _document(line, PARTS[2], gain, None, sources)
        for gain, line in measured(lines) if gain >= least
    ]  # fmt: skip
    return sorted(section, key=lambda entry: PARTS.index(entry["part"]))


def _in_turn(
    found: Iterable[tuple[float, Cause]], timeline: Timeline, budget: Budget
) -> Iterator[tuple[float, float | None, Cause]]:
    """Each gain, and the gain where the cures before have been followed; None of bounds."""
    before, reached = _Experiment(), timeline.total_ns
    for gain, cause in found:
        if cause.is_bound:
            yield gain, None, cause
            continue
        both = before.and_without(cause)
        alone = before == _Experiment()
        step = max(gain if alone else reached - both.total_ns(timeline, budget), 0.0)
        if step:
            before, reached = both, reached - step
        yield gain, step, cause


def _part(cause: Cause, gains: bool) -> str:
    return PARTS[1 if cause.is_bound else 0] if gains else PARTS[3]


def _without(cause: Cause) -> _Experiment:
    return _Experiment().and_without(cause)


def _path_shares(timeline: Timeline) -> Counter[Hashable]:
    """Time on the critical path by place (ns)."""
    found: Counter[Hashable] = Counter()
    for step in timeline.critical_path():
        found[place_of(step.bar.call)] += round(step.path_ns)
    return found


def _document(
    cause: Cause, part: str, gain: float, step: float | None, sources: Sources
) -> dict[str, Any]:
    places = {str(call.origin): sources.at(call.origin) for call in cause.calls if call.origin}
    return {
        "part": part, "title": cause.title, "text": cause.text, "experiment": cause.experiment,
        "isBound": cause.is_bound, "gainNs": gain, "nextNs": step, "lines": list(places.values()),
    }  # fmt: skip


def advice_text(section: Sequence[Mapping[str, Any]], total_ns: float, budget: Budget) -> str:
    """The entries that gain something alone, as text, and how many variants were not played."""
    text = []
    for is_bound, head in HEADS.items():
        lines = [
            f"{entry['gainNs'] / 1e3:8.2f} µs {entry['gainNs'] / total_ns:6.1%}  {entry['title']}"
            f"{_lines_text(entry['lines'])}: {entry['text']}"
            for entry in section
            if entry["isBound"] == is_bound and entry["gainNs"] >= LEAST_GAIN * total_ns
        ]
        text += ["", head, *lines] if lines else []
    if budget.left_out:
        text += ["", f"{budget.left_out} variants: {NOT_PLAYED}"]
    return "\n".join(text)


def _lines_text(lines: Sequence[Sequence[int] | None]) -> str:
    numbers = sorted({at[1] for at in lines if at})
    return f" (line {', '.join(map(str, numbers))})" if numbers else ""
