"""How many programs are left when names, order and numbering of tiles do not count.

Two programs are the same here when one becomes the other by

1. renaming variables,
2. putting statements into another order in which everything reads what it read before,
3. exchanging tiles along an axis of the result, the same way in parameters and output, where every
   interval of the program remains an interval.

Tiles are not exchanged along a contracted axis: sums are added up in one order. Loads that nobody
reads count.

A program is written down by what stands where: for each call of the root, which call does it now
and which loads it reads from; for each tile of the output, which store writes it. That knows no
names and no order. The least of what exchanges of tiles make of it stands for all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import permutations, product
from math import factorial, prod
from typing import NamedTuple

import numpy as np

from nkigym.space.calls import Call, Calls
from nkigym.space.loads import Loads
from nkigym.space.part import Part
from nkigym.space.space import Node, Space
from nkigym.space.stores import Stores
from nkigym.tiles.operators import OPERATORS, Operator
from nkigym.tiles.program import Interval
from nkigym.tiles.tiling import TILE

CHUNK = 2048
"""Programs at a time."""
WIDE = 256
"""More than there are tiles along an axis: an interval is `start * WIDE + width`, in tiles."""
GONE = -1
MOST_EXCHANGES = 1000
"""Each takes about 4 µs a program."""

Positions = dict[str, int]


class Sites(NamedTuple):
    """What programs of a space are written down by, each with its tile along every axis."""

    calls: dict[int, int]  # value number -> place
    at: list[Positions]
    stores: dict[int, int]  # value number -> place
    stored_at: list[Positions]
    loads: dict[int, int]  # number -> place
    axes: list[str]  # of each load, along its columns
    homes: list[int]  # of each load, equal for the same rows of a parameter
    operands: list[str]  # axis along the columns of each operand that is loaded
    result: tuple[str, str]


class Written(NamedTuple):
    """Programs (P), by row."""

    calls: np.ndarray  # P, calls: which call
    call_tiles: np.ndarray  # P, calls: its interval along the columns of the result
    loads: np.ndarray  # P, calls x operands: place of the load
    slices: np.ndarray  # P, loads: its columns, or GONE
    stores: np.ndarray  # P, stores
    store_tiles: np.ndarray  # P, stores


def canonical_count(space: Space, nodes: Collection[Node]) -> int | None:
    """How many of these programs differ in more than names, order and numbering of tiles.

    None where there are more than MOST_EXCHANGES ways to number tiles. Raises ValueError for a
    space whose calls are not all of one operator.
    """
    sites = _sites(space)
    if prod(factorial(size) for size in _sizes(sites)) > MOST_EXCHANGES:
        return None
    seen: set[bytes] = set()
    ordered = list(nodes)
    for first in range(0, len(ordered), CHUNK):
        seen.update(_forms(sites, _written(sites, ordered[first : first + CHUNK])))
    return len(seen)


def _sites(space: Space) -> Sites:
    root = space.root
    calls = {n: c for part in root if isinstance(part, Calls) for n, c in part.calls.items()}
    names = {call.operator for call in calls.values()}
    if len(names) != 1:
        raise ValueError(f"calls of {len(names)} operators")
    record = OPERATORS[names.pop()]
    ordered = [calls[number] for number in sorted(calls)]
    at = [_position(record, call) for call in ordered]
    rows, columns = record.result
    stores = [s for part in root if isinstance(part, Stores) for s in part.stores.values()]
    stored = [{rows: s.written[0][0] // TILE, columns: s.written[1][0] // TILE} for s in stores]
    loads, homes = {}, []
    for home, part in enumerate(root):
        if isinstance(part, Loads):
            for number in part.slices:
                loads[number] = len(loads)
                homes.append(home)
    operands = [name for name in record.operands if name != record.accumulates]
    axis_of = {
        o.number: record.operands[o.name][1] for c in ordered for o in c.operands if o.loaded
    }
    return Sites(
        {call.values[0]: place for place, call in enumerate(ordered)}, at,
        {s.values[0]: place for place, s in enumerate(stores)}, stored,
        loads, [axis_of[number] for number in loads], homes,
        [record.operands[name][1] for name in operands], (rows, columns),
    )  # fmt: skip


def _position(record: Operator, call: Call) -> Positions:
    """Which tile along each axis a call of the root works on."""
    return {
        axis: interval[0] // TILE
        for operand in call.operands
        if operand.loaded is not None
        for axis, interval in zip(
            record.operands[operand.name],
            (operand.loaded.rows, operand.loaded.columns),
            strict=True,
        )
    }


# -- programs as arrays ----------------------------------------------------------------------------


def _written(sites: Sites, nodes: Sequence[Node]) -> Written:
    width = len(sites.operands)
    columns = [len(sites.at), len(sites.at), len(sites.at) * width, len(sites.loads),
               len(sites.stored_at), len(sites.stored_at)]  # fmt: skip
    made = Written(*(np.full((len(nodes), number), GONE, np.int64) for number in columns))
    fill: dict[type[Part], Callable[[Sites, Part], Iterator[tuple[int, int, int]]]] = {
        Calls: _of_calls, Loads: _of_loads, Stores: _of_stores,
    }  # fmt: skip
    for at in range(len(nodes[0])):
        parts: dict[Part, int] = {}
        which = np.array([parts.setdefault(node[at], len(parts)) for node in nodes])
        entries = [list(fill[type(part)](sites, part)) for part in parts]
        for field in range(len(columns)):
            places = sorted({p for entry in entries for f, p, _ in entry if f == field})
            index = {place: column for column, place in enumerate(places)}
            values = np.full((len(parts), len(places)), GONE, np.int64)
            for row, entry in enumerate(entries):
                for f, place, value in entry:
                    if f == field:
                        values[row, index[place]] = value
            made[field][:, places] = values[which]
    return made


def _of_calls(sites: Sites, part: Part) -> Iterator[tuple[int, int, int]]:
    """Field, place and value of everything that a part says."""
    assert isinstance(part, Calls)
    width = len(sites.operands)
    for number, call in part.calls.items():
        read = [sites.loads[o.number] for o in call.operands if o.number in sites.loads]
        places = [sites.calls[value] for value in call.values]
        first = min(sites.at[place][sites.result[1]] for place in places)
        for place in places:
            yield 0, place, number
            yield 1, place, first * WIDE + len(places)
            for operand, load in enumerate(read):
                yield 2, place * width + operand, load


def _of_loads(sites: Sites, part: Part) -> Iterator[tuple[int, int, int]]:
    assert isinstance(part, Loads)
    for number, place in part.slices.items():
        yield 3, sites.loads[number], _tiles(place.columns)


def _of_stores(sites: Sites, part: Part) -> Iterator[tuple[int, int, int]]:
    assert isinstance(part, Stores)
    for number, store in part.stores.items():
        for value in store.values:
            yield 4, sites.stores[value], number
            yield 5, sites.stores[value], _tiles(store.written[1])


def _tiles(interval: Interval) -> int:
    start, stop = interval
    return start // TILE * WIDE + (stop - start) // TILE


# -- exchanging tiles ------------------------------------------------------------------------------


def _forms(sites: Sites, given: Written) -> list[bytes]:
    """For each program, the least of what exchanges make of it."""
    best: list[bytes] = []
    for exchanged in _exchanges(sites):
        rows, legal = _exchanged(sites, given, exchanged)
        forms = [row.tobytes() for row in rows.astype(">u4")]
        if not best:  # the first exchange is none
            best = forms
        best = [
            min(old, new) if yes else old
            for old, new, yes in zip(best, forms, legal.tolist(), strict=True)
        ]
    return best


def _exchanges(sites: Sites) -> Iterator[dict[str, tuple[int, ...]]]:
    """Where each tile goes, along each axis of the result; first of all nowhere."""
    for chosen in product(*(permutations(range(size)) for size in _sizes(sites))):
        yield dict(zip(sites.result, chosen, strict=True))


def _sizes(sites: Sites) -> list[int]:
    """Tiles along each axis of the result."""
    return [max(at[axis] for at in sites.at) + 1 for axis in sites.result]


def _exchanged(
    sites: Sites, given: Written, to: dict[str, tuple[int, ...]]
) -> tuple[np.ndarray, np.ndarray]:
    """Programs after an exchange of tiles as rows of numbers, and for which it is one."""
    tables = {axis: _moved_intervals(moves) for axis, moves in to.items()}
    width, columns = len(sites.operands), sites.result[1]
    calls = _order(sites.at, to)
    operands = [place * width + operand for place in calls for operand in range(width)]
    stores = _order(sites.stored_at, to)
    slices = np.stack(
        [tables[axis][given.slices[:, load]] for load, axis in enumerate(sites.axes)], axis=1
    )
    loads = given.loads[:, operands]
    read = np.zeros(slices.shape, bool)
    np.put_along_axis(read, loads, True, axis=1)
    exists = given.slices != GONE
    dead = np.where(exists & ~read, np.array(sites.homes) * WIDE * WIDE + slices, 0)
    rows = [
        _first_of(given.calls[:, calls]), _first_of(loads), np.take_along_axis(slices, loads, 1),
        _first_of(given.stores[:, stores]), np.sort(dead, axis=1),
    ]  # fmt: skip
    intervals = [slices, tables[columns][given.call_tiles], tables[columns][given.store_tiles]]
    legal = np.all([(kind != BROKEN).all(axis=1) for kind in intervals], axis=0)
    return np.concatenate(rows, axis=1), legal


BROKEN = WIDE * WIDE - 1
"""What was an interval and is none."""


def _moved_intervals(moves: tuple[int, ...]) -> np.ndarray:
    """Interval -> where it goes, or BROKEN; what is GONE stays so, as 0."""
    table = np.zeros(WIDE * WIDE, np.int64)
    for start in range(len(moves)):
        for width in range(1, len(moves) - start + 1):
            there = sorted(moves[start : start + width])
            whole = there[-1] - there[0] + 1 == width
            table[start * WIDE + width] = there[0] * WIDE + width if whole else BROKEN
    return table


def _order(at: list[Positions], to: dict[str, tuple[int, ...]]) -> list[int]:
    """For each place, the one whose tiles come there."""
    places = {tuple(position.items()): place for place, position in enumerate(at)}
    found = [0] * len(at)
    for place, position in enumerate(at):
        moved = {axis: to[axis][tile] if axis in to else tile for axis, tile in position.items()}
        found[places[tuple(moved.items())]] = place
    return found


def _first_of(ids: np.ndarray) -> np.ndarray:
    """Each id as the first place that has it: no names are left."""
    return (ids[:, :, None] == ids[:, None, :]).argmax(axis=2)
