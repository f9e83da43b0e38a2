"""Input of the page's player: the micro-ops of a kernel and the bytes that they access."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator
from itertools import chain
from typing import Any

from neuroncore.program import Allocate, Loop, Program, walk
from neuroncore.timeline import Timeline, replay
from nki_scope.document import Columns

MOST_OVERLAPS = 2_000_000
"""Pairs of accesses that share bytes, beyond which a page does not play its kernel."""


def replay_section(timeline: Timeline, columns: Columns) -> dict[str, Any]:
    """The table of the kernel, or the reason why its page does not play it."""
    if timeline.repeats:
        return {"reason": f"only some of its {timeline.num_ops} micro-ops are in the page"}
    if timeline.mode != "as_written":
        return {"reason": "its toolchain orders the instructions anew for every change"}
    found = replay(timeline.program)
    if len(found.overlaps) > MOST_OVERLAPS:
        return {"reason": f"{len(found.overlaps)} pairs of its accesses share bytes, "
                          f"more than {MOST_OVERLAPS}"}  # fmt: skip
    tracks, track = _numbered(found.tracks)
    numbers, _ = _numbered(id(bar.call) for bar in timeline.bars)
    call = {key: number for number, key in enumerate(numbers)}
    made = [(before, tracks.index(name)) for before, name in found.made if name in tracks]
    return {
        "works": {target: _works(works, columns) for target, works in found.works.items()},
        "executed": columns.add(chain.from_iterable(found.executed)),
        "made": _pairs(("before", "track"), made, columns),
        "overlaps": _pairs(("first", "second"), sorted(found.overlaps), columns),
        "tracks": tracks, "track": columns.add(track),
        "rotatable": sorted(set(_in_loops(timeline.program)) & set(tracks)),
        "calls": columns.add(call.get(id(each), -1) for each in found.calls),
    }  # fmt: skip


def _works(works: list[dict[str, Any]] | str, columns: Columns) -> dict[str, Any]:
    if isinstance(works, str):
        return {"reason": works}
    each, of = _numbered(json.dumps(work) for work in works)
    return {"each": [json.loads(str(work)) for work in each], "of": columns.add(of)}


def _numbered(values: Iterable[Hashable]) -> tuple[list[Any], list[int]]:
    """The distinct values in order, and for each its number."""
    numbers: dict[Hashable, int] = {}
    of = [numbers.setdefault(value, len(numbers)) for value in values]
    return list(numbers), of


def _pairs(
    names: tuple[str, str], pairs: list[tuple[int, int]], columns: Columns
) -> dict[str, Any]:
    """Two columns of these names."""
    return {name: columns.add(pair[n] for pair in pairs) for n, name in enumerate(names)}


def _in_loops(program: Program) -> Iterator[str]:
    """The buffers that a loop allocates on chip without a fixed address: they may have copies."""
    for loop in walk(program.body):
        made = walk(loop.body) if isinstance(loop, Loop) else ()
        for statement in made:
            if isinstance(statement, Allocate) and statement.buffer.address is None:
                yield statement.buffer.name
