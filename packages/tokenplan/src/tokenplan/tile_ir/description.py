"""Kernels over tiles, described once for both targets.

A kernel runs once for each index of its grid. Inside, it loads tiles of arrays, computes with them
and stores tiles; loops have a fixed number of iterations and carry tiles. Indices count tiles and
are affine in loop and grid variables. Each statement notes the line that made it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Any

from neuroncore.errors import LaunchError
from neuroncore.layout import Layout
from neuroncore.program import Affine
from neuroncore.source_location import Place
from tokenplan.tile_ir.bytecode.types import ITEM_BITS, PADDINGS

ORDERS = {"load": ("weak", "relaxed", "acquire"), "store": ("weak", "relaxed", "release")}
SCOPES = ("block", "device", "system")
ACCESS_HINTS = {"allow_tma": (False, True), "latency": range(1, 11)}
KERNEL_HINTS = {
    "occupancy": range(1, 33), "num_cta_in_cga": (1, 2, 4, 8, 16),
    "num_worker_warps_per_cta": (4, 8),
}  # fmt: skip


class DescriptionError(LaunchError):
    """The description breaks a rule of Tile IR."""


@dataclass(frozen=True, slots=True)
class Array:
    """A parameter in memory; strides, tiling and swizzle in elements.

    `alignment` and the divisors of strides are what the compiler may assume, in bytes.
    """

    name: str
    dtype: str
    layout: Layout
    alignment: int = 16
    alias_group: str | None = None
    """Arrays of one group may share bytes; arrays of different groups, or of none, do not."""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.layout.shape

    @property
    def itemsize(self) -> int:
        return ITEM_BITS[self.dtype] // 8


@dataclass(frozen=True, slots=True)
class Tile:
    """The result of a statement, or a value that a loop carries."""

    id: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Transfer:
    """A load or a store of one tile."""

    id: str
    array: Array
    index: tuple[Affine, ...]
    tile: Tile
    is_store: bool
    order: str = "weak"
    scope: str | None = None
    padding: str | None = None
    hints: Mapping[str, int | bool] = field(default_factory=dict)
    traversal: tuple[int, ...] | None = None
    """Elements from one tile to the next, where these are not the tile's extents."""
    place: Place | None = field(default=None, compare=False)

    @property
    def step(self) -> tuple[int, ...]:
        """Elements from one tile to the next, by dimension."""
        return self.traversal or self.tile.shape


@dataclass(frozen=True, slots=True)
class Compute:
    """An operation on tiles."""

    id: str
    operation: str
    inputs: tuple[Tile, ...]
    result: Tile
    attributes: Mapping[str, Any] = field(default_factory=dict)
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Repeat:
    """A loop; `carried` are (initial value, value inside, next value, result)."""

    name: str
    trips: int
    body: tuple[Statement, ...]
    carried: tuple[tuple[Tile, Tile, Tile, Tile], ...] = ()
    place: Place | None = field(default=None, compare=False)


Statement = Transfer | Compute | Repeat


@dataclass(frozen=True, slots=True)
class Described:
    """A finished description."""

    name: str
    arrays: tuple[Array, ...]
    grid: tuple[tuple[str, int], ...]
    body: tuple[Statement, ...]
    hints: Mapping[str, int]

    def transfers(self) -> Iterator[Transfer]:
        """Every load and store, in program order."""
        return (node for node in walk(self.body) if isinstance(node, Transfer))


def walk(body: Sequence[Statement]) -> Iterator[Statement]:
    """Every statement, outer before inner."""
    for statement in body:
        yield statement
        if isinstance(statement, Repeat):
            yield from walk(statement.body)


@dataclass
class _OpenLoop:
    carried: list[list[Tile]] = field(default_factory=list)


class TileKernel:
    """A description under construction.

    >>> kernel = TileKernel("double")
    >>> a = kernel.array("a", (256, 64))
    >>> with kernel.loop("k", 4) as k:
    ...     kernel.store(a, (k, 0), kernel.compute("mulf", kernel.load(a, (k, 0), (64, 64)), 2.0))
    >>> len(list(kernel.described().transfers()))
    2
    """

    def __init__(self, name: str, **hints: int) -> None:
        for hint, value in hints.items():
            _check_hint("the kernel", hint, value, KERNEL_HINTS)
        self.name, self.hints = name, hints
        self.arrays: dict[str, Array] = {}
        self.grids: dict[str, int] = {}
        self.body: list[Statement] = []
        self.loops: list[tuple[str, int, _OpenLoop]] = []
        self.names: set[str] = set()

    def described(self) -> Described:
        """The kernel as described so far."""
        grid = tuple(self.grids.items())
        return Described(self.name, tuple(self.arrays.values()), grid, tuple(self.body), self.hints)

    def array(
        self,
        name: str,
        shape: Sequence[int] | Layout,
        dtype: str = "f32",
        strides: Sequence[int] | None = None,
        alignment: int = 16,
        alias_group: str | None = None,
    ) -> Array:
        """A parameter; a shape with row-major or these strides, or a layout, in elements."""
        layout = shape if isinstance(shape, Layout) else Layout.of(shape, strides)
        if dtype not in ITEM_BITS or ITEM_BITS[dtype] % 8:
            raise DescriptionError(f"array {name} has the unknown dtype {dtype!r}")
        if alignment < 1 or alignment & alignment - 1:
            raise DescriptionError(f"array {name} is aligned to a power of two", got=str(alignment))
        if name in self.arrays:
            raise DescriptionError(f"there are two arrays {name}", hint="give each its own name")
        self.arrays[name] = Array(name, dtype, layout, alignment, alias_group)
        return self.arrays[name]

    def grid(self, name: str, size: int) -> Affine:
        """The index of this instance along the next of at most three grid dimensions."""
        if len(self.grids) == 3:
            raise DescriptionError("a grid has at most three dimensions")
        if size < 1:
            raise DescriptionError(f"grid dimension {name} has 1 block or more", got=str(size))
        unique = self._id(name)
        self.grids[unique] = size
        return Affine.variable(unique)

    @contextmanager
    def loop(self, name: str, trips: int) -> Iterator[Affine]:
        """Statements that are repeated; the variable runs from 0 to trips - 1."""
        if not 0 <= trips < 2**31:
            raise DescriptionError(f"loop {name} has 0 to 2^31 - 1 iterations", got=str(trips))
        unique = self._id(name)
        opened, outer, self.body = _OpenLoop(), self.body, []
        self.loops.append((unique, trips, opened))
        yield Affine.variable(unique)
        self.loops.pop()
        carried = tuple((a, b, c, d) for a, b, c, d in opened.carried)
        outer.append(Repeat(unique, trips, tuple(self.body), carried, _caller()))
        self.body = outer

    def carry(self, initial: Tile) -> Tile:
        """The value of `initial` in the first iteration of the innermost loop; see `update`."""
        inside = Tile(self._id(f"{initial.id}_in"), initial.shape, initial.dtype)
        result = Tile(self._id(f"{initial.id}_out"), initial.shape, initial.dtype)
        self.loops[-1][-1].carried.append([initial, inside, inside, result])
        return inside

    def update(self, inside: Tile, value: Tile) -> Tile:
        """The next iteration has `value`; returns the result, to be used after the loop."""
        for entry in self.loops[-1][-1].carried:
            if entry[1] is inside:
                if value.shape != inside.shape or value.dtype != inside.dtype:
                    raise DescriptionError(
                        f"{inside.id} is carried as {inside.dtype}{list(inside.shape)}",
                        got=f"{value.dtype}{list(value.shape)}",
                    )
                entry[2] = value
                return entry[3]
        raise DescriptionError(f"{inside.id} is not carried by the innermost loop")

    def load(self, array: Array, index: Sequence[Affine | int], tile: Sequence[int],
             name: str = "load", **options: Any) -> Tile:  # fmt: skip
        """The tile at this index; options are fields of `Transfer`."""
        identity = self._id(name)
        loaded = Tile(identity, tuple(tile), array.dtype)
        self._transfer(identity, array, index, loaded, False, options)
        return loaded

    def store(self, array: Array, index: Sequence[Affine | int], tile: Tile,
              name: str = "store", **options: Any) -> None:  # fmt: skip
        """Writes the tile at this index."""
        self._transfer(self._id(name), array, index, tile, True, options)

    def _transfer(self, identity: str, array: Array, index: Sequence[Affine | int], tile: Tile,
                  is_store: bool, options: dict[str, Any]) -> None:  # fmt: skip
        where = tuple(map(Affine.of, index))
        made = Transfer(identity, array, where, tile, is_store, **options, place=_caller())
        check_transfer(made)
        if self.arrays.get(array.name) is not array:
            raise DescriptionError(f"{identity}: {array.name} is not an array of this kernel")
        self._check_index(made)
        self.body.append(made)

    def _check_index(self, made: Transfer) -> None:
        """Variables belong to loops around or the grid, and 32 bits contain the index."""
        trips = self.grids | {name: trips for name, trips, _ in self.loops}
        ranges = {name: (0, max(1, n) - 1) for name, n in trips.items()}
        for index in made.index:
            unknown = {name for name, _ in index.terms} - trips.keys()
            if unknown:
                raise DescriptionError(
                    f"{made.id}: {min(unknown)} is not a variable of the grid or a loop around"
                )
            low, high = index.bounds(ranges)
            if low < 0 or high >= 2**31:
                raise DescriptionError(
                    f"{made.id}: indices are 0 to 2^31 - 1", got=f"{low} to {high}"
                )

    def compute(self, operation: str, *inputs: Tile | float, **attributes: Any) -> Tile:
        """The result of an operation of `tokenplan.tile_ir.computations`; numbers are constants."""
        from tokenplan.tile_ir.computations import result_of

        tiles = [t for t in inputs if isinstance(t, Tile)]
        given = tuple(x if isinstance(x, Tile) else self._number(x, tiles) for x in inputs)
        shape, dtype = result_of(operation, given, attributes)
        result = Tile(self._id(operation), shape, dtype)
        self.body.append(Compute(result.id, operation, given, result, attributes, _caller()))
        return result

    def full(self, shape: Sequence[int], value: float, dtype: str = "f32") -> Tile:
        """A tile of equal numbers."""
        result = Tile(self._id("full"), tuple(shape), dtype)
        self.body.append(Compute(result.id, "full", (), result, {"value": value}, _caller()))
        return result

    def _number(self, value: float, tiles: Sequence[Tile]) -> Tile:
        rank = len(tiles[0].shape)
        return self.full((1,) * rank, value, tiles[0].dtype)

    def _id(self, name: str) -> str:
        unique, n = name, 1
        while unique in self.names:
            n += 1
            unique = f"{name}.{n}"
        self.names.add(unique)
        return unique


def check_transfer(made: Transfer) -> None:
    """Raises DescriptionError for what the compiler would reject, with the name of the access."""
    _check_order(made)
    _check_tile(made)
    if made.padding not in (None, *PADDINGS):
        raise DescriptionError(f"{made.id}: unknown padding {made.padding!r}")
    if made.padding not in (None, "zero") and made.array.dtype.startswith("i"):
        raise DescriptionError(f"{made.id}: integers are padded with zero", got=made.padding)
    for hint, value in made.hints.items():
        _check_hint(made.id, hint, value, ACCESS_HINTS)


def _check_order(made: Transfer) -> None:
    kind = "store" if made.is_store else "load"
    if made.order not in ORDERS[kind]:
        raise DescriptionError(
            f"{made.id}: a {kind} cannot have order {made.order!r}",
            expected=", ".join(ORDERS[kind]),
        )
    if (made.order == "weak") != (made.scope is None) or made.scope not in (None, *SCOPES):
        raise DescriptionError(
            f"{made.id}: order {made.order} with scope {made.scope}",
            expected=f"no scope for weak, one of {', '.join(SCOPES)} for other orders",
        )


def _check_tile(made: Transfer) -> None:
    name, tile, rank = made.id, made.tile.shape, len(made.array.shape)
    if not len(tile) == len(made.index) == rank:
        raise DescriptionError(
            f"{name}: array {made.array.name} has {rank} dimensions",
            got=f"{len(made.index)} indices and a tile of {len(tile)}",
        )
    if any(n < 1 or n & n - 1 for n in tile):
        raise DescriptionError(
            f"{name}: extents of a tile are powers of two", got=str(list(tile)),
            hint="take the next power of two and padding",
        )  # fmt: skip
    if made.tile.dtype != made.array.dtype:
        raise DescriptionError(
            f"{name}: array {made.array.name} contains {made.array.dtype}", got=made.tile.dtype,
            hint="compute a cast",
        )  # fmt: skip
    if len(made.step) != rank or min(made.step, default=1) < 1:
        raise DescriptionError(
            f"{name}: a traversal has {rank} steps of 1 or more", got=str(list(made.step))
        )
    if prod(tile) > 2**24:
        raise DescriptionError(f"{name}: a tile has at most 2^24 elements", got=str(list(tile)))


def _check_hint(name: str, hint: str, value: object, known: Mapping[str, Any]) -> None:
    if hint not in known:
        raise DescriptionError(
            f"{name}: unknown hint {hint}", expected=", ".join(known),
            hint="the compiler would ignore it without a word",
        )  # fmt: skip
    if value not in known[hint] or type(value) is not type(known[hint][0]):
        allowed = list(known[hint])
        raise DescriptionError(f"{name}: {hint} is one of {allowed}", got=repr(value))


def _caller() -> Place:
    """The line outside of this module that made a statement."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename in (__file__, _CONTEXTLIB):
        frame = frame.f_back
    return Place(frame.f_code.co_filename, frame.f_lineno)


_CONTEXTLIB = contextmanager.__code__.co_filename
