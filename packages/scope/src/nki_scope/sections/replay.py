"""Input of the page's player: the micro-ops of a kernel and the bytes that they access."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from neuroncore.program import Allocate, Call, Loop, Program, calls, walk
from neuroncore.timeline import Timeline
from nki_scope.document import Columns
from nki_scope.sections.micro_op_tables import Candidate, Replay, Table, replay
from nki_scope.sections.own_constants import constants_of, own_values

MOST_OVERLAPS = 2_000_000
"""Pairs of accesses that share bytes, beyond which a page does not play its kernel."""
MOST_CALLS = 10_000
"""In the text of a kernel, beyond which a page does not play it."""
MOST_CALLS_ELSEWHERE = 1_000
"""Beyond which it does not play it on other targets."""
Section = dict[str, Any]


class ReplaySections:
    """The tables of a kernel as its toolchain makes it and as written, or why there are none."""

    def __init__(self, timeline: Timeline, columns: Columns) -> None:
        self._columns = columns
        self._found: Replay | None = None
        self._reason, self._tables, self._candidates = "", [], {}
        if timeline.repeats:
            self._reason = f"only some of its {timeline.num_ops} micro-ops are in the page"
            return
        count = sum(1 for _ in calls(timeline.source.body))
        if count > MOST_CALLS:
            self._reason = f"it has {count} calls, more than the {MOST_CALLS} that a page plays"
            return
        no_others = "" if count <= MOST_CALLS_ELSEWHERE else (
            f"it has {count} calls, more than the {MOST_CALLS_ELSEWHERE} of other targets"
        )  # fmt: skip
        found = replay(timeline.source, timeline.assumed, constants_of(timeline), no_others)
        overlaps = max(len(table.overlaps) for table in found.tables)
        if overlaps > MOST_OVERLAPS:
            self._reason = (
                f"{overlaps} pairs of its accesses share bytes, more than {MOST_OVERLAPS}"
            )
            return
        self._found = found
        self._tables = [_table(table, columns) for table in found.tables]
        self._candidates = {
            target: {"reason": each} if isinstance(each, str) else _candidates(each, columns)
            for target, each in found.candidates.items()
        }

    def of(self, timeline: Timeline) -> tuple[Section, list[Call]]:
        """The section of the timeline, and its calls, with the ones of other candidates behind."""
        own = list(calls(timeline.program.body))
        if self._found is None:
            return {"reason": self._reason}, own
        found, numbers = _numbered_calls([own, *(table.calls for table in self._found.tables)])
        candidates = self._candidates
        if not timeline.assumed:  # the last candidate is the program as written
            candidates = {t: c[-1:] if isinstance(c, list) else c for t, c in candidates.items()}
        tables = [
            {**table, "calls": self._columns.add(of)}
            for table, of in zip(self._tables, numbers[1:], strict=True)
        ]
        values = {timeline.target: own_values(timeline)}
        return {"tables": tables, "candidates": candidates, "values": values}, found


def _table(table: Table, columns: Columns) -> Section:
    tracks, track = _numbered(table.tracks)
    numbers = {name: number for number, name in enumerate(tracks)}
    made = [(before, numbers[name]) for before, name in table.made if name in numbers]
    return {
        "executed": columns.add(chain.from_iterable(table.executed)),
        "made": _pairs(("before", "track"), made, columns),
        "overlaps": _pairs(("first", "second"), sorted(table.overlaps), columns),
        "tracks": tracks, "track": columns.add(track), "bytes": columns.add(table.hbm_bytes),
        "rotatable": sorted(set(_in_loops(table.program)) & set(tracks)),
    }  # fmt: skip


def _candidates(candidates: list[Candidate], columns: Columns) -> list[Section]:
    return [
        {
            "table": each.table, "works": _works(each.works, columns),
            "reorders": each.reorders, "copies": each.copies,
        }
        for each in candidates
    ]  # fmt: skip


def _works(works: list[dict[str, Any]], columns: Columns) -> Section:
    each, of = _numbered(json.dumps(work) for work in works)
    return {"each": [json.loads(str(work)) for work in each], "of": columns.add(of)}


def _numbered_calls(forms: Iterable[Sequence[Call]]) -> tuple[list[Call], list[list[int]]]:
    """The calls of several forms of one kernel, and by form the number of each of its calls.

    Calls of one line and instruction share a number, the first with the first, and so on.
    """
    numbers: dict[Hashable, int] = {}
    found: list[Call] = []
    numbered: list[list[int]] = []
    for form in forms:
        count: Counter[Hashable] = Counter()
        numbered.append([])
        for call in form:
            key = call.origin, call.instruction
            number = numbers.setdefault((key, count[key]), len(found))
            count[key] += 1
            if number == len(found):
                found.append(call)
            numbered[-1].append(number)
    return found, numbered


def _numbered(values: Iterable[Hashable]) -> tuple[list[Any], list[int]]:
    """The distinct values in order, and for each its number."""
    numbers: dict[Hashable, int] = {}
    of = [numbers.setdefault(value, len(numbers)) for value in values]
    return list(numbers), of


def _pairs(names: tuple[str, str], pairs: list[tuple[int, int]], columns: Columns) -> Section:
    """Two columns of these names."""
    return {name: columns.add(pair[n] for pair in pairs) for n, name in enumerate(names)}


def _in_loops(program: Program) -> Iterator[str]:
    """The buffers that a loop allocates on chip without a fixed address: they may have copies."""
    for loop in walk(program.body):
        made = walk(loop.body) if isinstance(loop, Loop) else ()
        for statement in made:
            if isinstance(statement, Allocate) and statement.buffer.address is None:
                yield statement.buffer.name
