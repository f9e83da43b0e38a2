"""Counts of programs up to names, order and numbering of tiles.

Two programs are the same here when one becomes the other by

1. renaming variables,
2. putting statements into another order in which everything reads what it read before,
3. exchanging tiles along an axis of the result, the same way in parameters and output, where every
   interval of the program remains an interval.

Tiles are not exchanged along a contracted axis: sums are added up in one order. Loads without
readers count.

A program is written down by what stands where: for each call of the root, which call does it now
and which loads it reads from; for each tile of the output, which store writes it. This form
contains neither names nor order. The least form over all exchanges of tiles represents all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import permutations, product
from math import factorial, prod
from typing import NamedTuple

import numpy as np

from nkigym.tile_rewrites.calls import Calls
from nkigym.tile_rewrites.component import Component
from nkigym.tile_rewrites.graph import Node, RewriteGraph
from nkigym.tile_rewrites.loads import Loads
from nkigym.tile_rewrites.nodes import Call, Slice
from nkigym.tile_rewrites.stores import Stores
from nkigym.tiles.operators import OPERATORS, Axes, Operator
from nkigym.tiles.program import Interval
from nkigym.tiles.roots import TILE

CHUNK = 2048
"""Programs at a time."""
WIDE = 256
"""More than there are tiles along an axis: an interval is `start * WIDE + width`, in tiles."""
GONE = -1
MOST_EXCHANGES = 1000
"""Each takes about 4 µs a program."""

Positions = dict[str, int]


class Sites(NamedTuple):
    """The calls in which programs of a space are written, each with its tile along every axis."""

    calls: dict[int, int]  # value number -> place
    at: list[Positions]
    stores: dict[int, int]  # value number -> place
    stored_at: list[Positions]
    loads: dict[int, int]  # number -> place
    axes: list[str]  # of each load, along its columns
    homes: list[tuple[int, str, int]]  # of each load: parameter, axis along its rows, tile there
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


def canonical_count(space: RewriteGraph, nodes: Collection[Node]) -> int | None:
    """How many of these programs differ in more than names, order and numbering of tiles.

    None where there are more than MOST_EXCHANGES ways to number tiles. Raises ValueError for a
    space whose calls are not all of one operator, or that repeats a parameter along an axis.
    """
    sites = _sites(space)
    if prod(factorial(size) for size in _sizes(sites)) > MOST_EXCHANGES:
        return None
    seen: set[bytes] = set()
    ordered = list(nodes)
    for first in range(0, len(ordered), CHUNK):
        seen.update(_forms(sites, _written(sites, ordered[first : first + CHUNK])))
    return len(seen)


def _sites(graph: RewriteGraph) -> Sites:
    record, calls = _root_calls(graph.root)
    rows, columns = record.result
    stores = [s for part in graph.root if isinstance(part, Stores) for s in part.stores.values()]
    loaded = _loaded(graph.root)
    parameters = list(dict.fromkeys(place.source for place in loaded.values()))
    operands = [name for name in record.operands if name != record.accumulates]
    read = (operand for call in calls for operand in call.operands if operand.loaded)
    axes_of = {operand.number: record.operands[operand.name] for operand in read}
    _reject_repeats(loaded, axes_of)
    return Sites(
        calls={call.values[0]: place for place, call in enumerate(calls)},
        at=[_position(record, call) for call in calls],
        stores={s.values[0]: place for place, s in enumerate(stores)},
        stored_at=[
            {rows: s.written[0][0] // TILE, columns: s.written[1][0] // TILE} for s in stores
        ],
        loads={number: place for place, number in enumerate(loaded)},
        axes=[axes_of[number][1] for number in loaded],
        homes=[
            (parameters.index(place.source), axes_of[number][0], place.rows[0] // TILE)
            for number, place in loaded.items()
        ],
        operands=[record.operands[name][1] for name in operands],
        result=(rows, columns),
    )


def _root_calls(root: Node) -> tuple[Operator, list[Call]]:
    """The operator of all calls, and the calls in order. Raises ValueError for two operators."""
    calls = {n: c for part in root if isinstance(part, Calls) for n, c in part.calls.items()}
    names = {call.operator for call in calls.values()}
    if len(names) != 1:
        raise ValueError(f"calls of {len(names)} operators")
    return OPERATORS[names.pop()], [calls[number] for number in sorted(calls)]


def _loaded(root: Node) -> dict[int, Slice]:
    """Number of a load → the part of a parameter that it loads."""
    loads = (part for part in root if isinstance(part, Loads))
    return {number: place for part in loads for number, place in part.slices.items()}


def _reject_repeats(loaded: Mapping[int, Slice], axes_of: Mapping[int, Axes]) -> None:
    """ValueError where a parameter has fewer tiles than another along an axis."""
    found: dict[str, dict[str, set[Interval]]] = {}
    for number, place in loaded.items():
        for axis, interval in zip(axes_of[number], (place.rows, place.columns), strict=True):
            found.setdefault(axis, {}).setdefault(place.source, set()).add(interval)
    for axis, tiles in found.items():
        fewest = min(tiles, key=lambda parameter: len(tiles[parameter]))
        few, many = len(tiles[fewest]), max(map(len, tiles.values()))
        if few < many:
            raise ValueError(f"{fewest}: {few} of {many} tiles along {axis}, which are repeated")


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
    fill: dict[type[Component], Callable[[Sites, Component], Iterator[tuple[int, int, int]]]] = {
        Calls: _of_calls, Loads: _of_loads, Stores: _of_stores,
    }  # fmt: skip
    for at in range(len(nodes[0])):
        parts: dict[Component, int] = {}
        which = np.array([parts.setdefault(node[at], len(parts)) for node in nodes])
        entries = [list(fill[type(part)](sites, part)) for part in parts]
        for field in range(len(columns)):
            places, values = _table(entries, field)
            made[field][:, places] = values[which]
    return made


def _table(entries: list[list[tuple[int, int, int]]], field: int) -> tuple[list[int], np.ndarray]:
    """The places of a field, and its values: a row for each component, a column for each place."""
    rows = [{place: value for f, place, value in entry if f == field} for entry in entries]
    places = sorted(set().union(*rows))
    values = [[row.get(place, GONE) for place in places] for row in rows]
    return places, np.array(values, np.int64).reshape(len(rows), len(places))


def _of_calls(sites: Sites, part: Component) -> Iterator[tuple[int, int, int]]:
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


def _of_loads(sites: Sites, part: Component) -> Iterator[tuple[int, int, int]]:
    assert isinstance(part, Loads)
    for number, place in part.slices.items():
        yield 3, sites.loads[number], _tiles(place.columns)


def _of_stores(sites: Sites, part: Component) -> Iterator[tuple[int, int, int]]:
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
    tables = {axis: _moved_intervals(tiles) for axis, tiles in to.items()}
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
    homes = [
        parameter * WIDE + (to[axis][tile] if axis in to else tile)
        for parameter, axis, tile in sites.homes
    ]
    dead = np.where(exists & ~read, np.array(homes) * WIDE * WIDE + slices, 0)
    rows = [
        _first_of(given.calls[:, calls]), _first_of(loads), np.take_along_axis(slices, loads, 1),
        _first_of(given.stores[:, stores]), np.sort(dead, axis=1),
    ]  # fmt: skip
    intervals = [slices, tables[columns][given.call_tiles], tables[columns][given.store_tiles]]
    legal = np.all([(kind != BROKEN).all(axis=1) for kind in intervals], axis=0)
    return np.concatenate(rows, axis=1), legal


BROKEN = WIDE * WIDE - 1
"""What was an interval and is none."""


def _moved_intervals(tiles: tuple[int, ...]) -> np.ndarray:
    """Interval -> where it goes, or BROKEN; what is GONE stays so, as 0."""
    table = np.zeros(WIDE * WIDE, np.int64)
    for start in range(len(tiles)):
        for width in range(1, len(tiles) - start + 1):
            there = sorted(tiles[start : start + width])
            whole = there[-1] - there[0] + 1 == width
            table[start * WIDE + width] = there[0] * WIDE + width if whole else BROKEN
    return table


def _order(at: list[Positions], to: dict[str, tuple[int, ...]]) -> list[int]:
    """For each place, the one whose tiles come there.

    Places of the same tiles, one for each output, stay in their order.
    """
    places: dict[tuple[int, ...], list[int]] = {}
    for place, position in enumerate(at):
        places.setdefault(tuple(position.values()), []).append(place)
    found = [0] * len(at)
    for tiles, here in places.items():
        moved = (
            to[axis][tile] if axis in to else tile for axis, tile in zip(at[0], tiles, strict=True)
        )
        for place, there in zip(here, places[tuple(moved)], strict=True):
            found[there] = place
    return found


def _first_of(ids: np.ndarray) -> np.ndarray:
    """Each id as the first place that has it: no names are left."""
    return (ids[:, :, None] == ids[:, None, :]).argmax(axis=2)
