"""The builder of kernels over tiles, which checks each statement as it is added."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from keyword import iskeyword
from typing import Any

import numpy as np

from neuroncore.layout import Layout
from neuroncore.program import Affine
from neuroncore.source_location import Place
from tokenplan.tile_ir.bytecode.reader import DEEPEST
from tokenplan.tile_ir.bytecode.types import ITEM_BITS, ROLES
from tokenplan.tile_ir.computations import result_of
from tokenplan.tile_ir.description import (
    KERNEL_HINTS,
    OPTIONS,
    Array,
    Compute,
    Described,
    DescriptionError,
    Index,
    Repeat,
    Statement,
    Tile,
    Transfer,
    check_hint,
    check_transfer,
    integer,
    integers,
)
from tokenplan.tile_ir.integers import INDEX_END
from tokenplan.tile_ir.views import check_index_space

ARRAY_DTYPES = tuple(dtype for dtype in ROLES["number"] if ITEM_BITS[dtype] % 8 == 0)
MOST_BLOCKS = (2**31 - 1, 65_535, 65_535)
_GRID = "CUDA C++ Programming Guide: maximum x-, y- and z-dimension of a grid"
MOST_ALIGNED = 2**62
"""As the verifier of tileiras 13.5 limits the divisor of an `assume`."""


@dataclass
class _OpenLoop:
    variable: str
    trips: int
    outside: dict[str, Tile]
    """Tiles that exist before the loop."""
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
            check_hint("the kernel", hint, value, KERNEL_HINTS)
        self.name, self.hints = _checked("a kernel", name), hints
        self.arrays: dict[str, Array] = {}
        self.grids: dict[str, int] = {}
        self.body: list[Statement] = []
        self.loops: list[_OpenLoop] = []
        self.names: set[str] = set()
        self.tiles: dict[str, Tile] = {}
        """What a statement here may use."""

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
        _checked("an array", name)
        alignment = integer(f"array {name}, alignment", alignment)
        layout = _layout(name, shape, strides)
        if not layout.shape:
            raise DescriptionError(f"array {name} has no dimensions", expected="1 or more")
        if dtype not in ARRAY_DTYPES:
            raise DescriptionError(
                f"array {name} has the unknown dtype {dtype!r}", expected=", ".join(ARRAY_DTYPES)
            )
        if not 1 <= alignment <= MOST_ALIGNED or alignment & alignment - 1:
            raise DescriptionError(
                f"array {name} is aligned to a power of two, at most 2^62", got=str(alignment)
            )
        if name in self.arrays:
            raise DescriptionError(f"there are two arrays {name}", hint="give each its own name")
        self.arrays[name] = Array(name, dtype, layout, alignment, alias_group)
        return self.arrays[name]

    def grid(self, name: str, size: int) -> Index:
        """The index of this instance along the next of at most three grid dimensions."""
        if len(self.grids) == 3:
            raise DescriptionError("a grid has at most three dimensions")
        size = integer(f"grid dimension {name}, blocks", size)
        most = MOST_BLOCKS[len(self.grids)]
        if not 1 <= size <= most:
            raise DescriptionError(
                f"grid dimension {name} has 1 to {most:,} blocks", got=str(size), rule=_GRID
            )
        unique = self._id(_checked("a grid dimension", name))
        self.grids[unique] = size
        return Index.variable(unique)

    @contextmanager
    def loop(self, name: str, trips: int) -> Iterator[Index]:
        """Statements that are repeated; the variable runs from 0 to trips - 1."""
        trips = integer(f"loop {name}, iterations", trips)
        if not 0 <= trips < INDEX_END:
            raise DescriptionError(f"loop {name} has 0 to 2^31 - 1 iterations", got=str(trips))
        if len(self.loops) >= DEEPEST:
            raise DescriptionError(f"loop {name}: loops are nested at most {DEEPEST} deep")
        unique = self._id(_checked("a loop", name))
        opened, outer, self.body = _OpenLoop(unique, trips, dict(self.tiles)), self.body, []
        self.loops.append(opened)
        try:
            yield Index.variable(unique)
            carried = tuple((a, b, c, d) for a, b, c, d in opened.carried)
            outer.append(Repeat(unique, trips, tuple(self.body), carried, _caller()))
        finally:  # a loop whose statements raise is not part of the kernel
            self.loops.pop()
            self.body, self.tiles = outer, opened.outside
        for *_, result in carried:
            self._define(result)

    def carry(self, initial: Tile) -> Tile:
        """The value of `initial` in the first iteration of the innermost loop; see `update`."""
        if not self.loops:
            raise DescriptionError("a tile is carried by a loop", got="carry outside of loops")
        self._use("carry", initial, self.loops[-1].outside)
        inside = Tile(self._id(f"{initial.id}_in"), initial.shape, initial.dtype)
        result = Tile(self._id(f"{initial.id}_out"), initial.shape, initial.dtype)
        self.loops[-1].carried.append([initial, inside, inside, result])
        return self._define(inside)

    def update(self, inside: Tile, value: Tile) -> Tile:
        """The next iteration has `value`; returns the result, to be used after the loop."""
        self._use("update", inside)
        self._use("update", value)
        for entry in self.loops[-1].carried if self.loops else ():
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
        self._check_array(name, array)
        loaded = Tile(self._id(name), integers(f"{name}, extents", tile), array.dtype)
        return self._transfer("load", loaded.id, array, index, loaded, options)

    def store(self, array: Array, index: Sequence[Affine | int], tile: Tile,
              name: str = "store", **options: Any) -> None:  # fmt: skip
        """Writes the tile at this index."""
        identity = self._id(name)
        self._use(identity, tile)
        self._transfer("store", identity, array, index, tile, options)

    def atomic(self, array: Array, index: Sequence[Affine | int], mode: str, operand: Tile,
               name: str = "atomic", order: str = "acq_rel", scope: str = "device",
               **options: Any) -> Tile:  # fmt: skip
        """Updates each element of the tile at this index with `operand` in one transaction; the
        elements before. `mode` is one of `ATOMIC_MODES`."""
        self._use(name, operand)
        before = Tile(self._id(name), operand.shape, operand.dtype)
        options |= {"order": order, "scope": scope}
        return self._transfer("atomic", before.id, array, index, before, options, mode, operand)

    def _transfer(self, kind: str, identity: str, array: Array, index: Sequence[Affine | int],
                  tile: Tile, options: dict[str, Any], mode: str | None = None,
                  operand: Tile | None = None) -> Tile:  # fmt: skip
        self._check_array(identity, array)
        if unknown := options.keys() - {*OPTIONS}:
            raise DescriptionError(
                f"{identity}: unknown option {min(unknown)}", expected=", ".join(OPTIONS)
            )
        if options.get("traversal") is not None:
            steps = integers(f"{identity}, traversal", options["traversal"])
            options = {**options, "traversal": steps}
        made = Transfer(identity, array, _indices(identity, index), tile, kind, **options,
                        mode=mode, operand=operand, place=_caller())  # fmt: skip
        check_transfer(made)
        self._check_index(made)
        self.body.append(made)
        return tile if kind == "store" else self._define(tile)

    def _check_array(self, name: str, array: Array) -> None:
        if not isinstance(array, Array):
            raise DescriptionError(f"{name}: an array of this kernel", got=type(array).__name__)
        if self.arrays.get(array.name) is not array:
            raise DescriptionError(f"{name}: {array.name} is not an array of this kernel")

    def _check_index(self, made: Transfer) -> None:
        """Variables belong to loops around or the grid; 32 bits and the view contain the index."""
        trips = self.grids | {loop.variable: loop.trips for loop in self.loops}
        ranges = {name: (0, max(1, n) - 1) for name, n in trips.items()}
        for index in made.index:
            unknown = {name for name, _ in index.terms} - trips.keys()
            if unknown:
                raise DescriptionError(
                    f"{made.id}: {min(unknown)} is not a variable of the grid or a loop around"
                )
            low, high = index.bounds(ranges)
            factor = max((abs(number) for _, number in index.terms), default=0)
            if low < 0 or max(high, factor) >= INDEX_END:
                raise DescriptionError(
                    f"{made.id}: indices are 0 to 2^31 - 1", got=f"{index}, {low} to {high}"
                )
        if all(trips.values()):
            check_index_space(made, ranges)

    def compute(self, operation: str, *inputs: Tile | float, **attributes: Any) -> Tile:
        """The result of an operation of `tokenplan.tile_ir.computations`; numbers are constants."""
        tiles = [t for t in inputs if isinstance(t, Tile)]
        for tile in tiles:
            self._use(operation, tile)
        given = tuple(x if isinstance(x, Tile) else self._number(operation, x, tiles)
                      for x in inputs)  # fmt: skip
        shape, dtype = result_of(operation, given, attributes)
        result = Tile(self._id(operation), shape, dtype)
        self.body.append(Compute(result.id, operation, given, result, attributes, _caller()))
        return self._define(result)

    def full(self, shape: Sequence[int], value: float, dtype: str = "f32") -> Tile:
        """A tile of equal numbers."""
        return self.compute(
            "full", shape=integers("full, extents", shape), value=value, dtype=dtype
        )

    def _number(self, operation: str, value: float, tiles: Sequence[Tile]) -> Tile:
        if not tiles:
            raise DescriptionError(f"{operation} of numbers alone", expected="a tile")
        return self.full((1,) * len(tiles[0].shape), value, tiles[0].dtype)

    def _define(self, tile: Tile) -> Tile:
        self.tiles[tile.id] = tile
        return tile

    def _use(self, name: str, tile: Tile, known: Mapping[str, Tile] | None = None) -> None:
        """Raises DescriptionError for a tile that the statement cannot use."""
        if not isinstance(tile, Tile):
            raise DescriptionError(
                f"{name}: a tile of this kernel", got=type(tile).__name__,
                hint="load it from an array, or compute it",
            )  # fmt: skip
        if (self.tiles if known is None else known).get(tile.id) is not tile:
            raise DescriptionError(
                f"{name}: {tile.id} is not a tile of this kernel here",
                hint="a tile of a loop leaves it by `carry` and `update`",
            )

    def _id(self, name: str) -> str:
        unique, n = name, 1
        while unique in self.names:
            n += 1
            unique = f"{name}.{n}"
        self.names.add(unique)
        return unique


def _checked(what: str, name: str) -> str:
    """The name, which is one of a variable in every target."""
    if not (isinstance(name, str) and name.isidentifier() and name.isascii()) or iskeyword(name):
        raise DescriptionError(
            f"the name of {what} is an identifier", expected="ASCII, and no keyword of Python",
            got=repr(name),
        )  # fmt: skip
    return name


def _layout(name: str, shape: Any, strides: Any) -> Layout:
    if isinstance(shape, Layout):
        if strides is not None:
            raise DescriptionError(f"array {name}: strides beside a layout, which has its own")
        return _in_fields(name, shape)
    extents = integers(f"array {name}, extents", shape)
    steps = None if strides is None else integers(f"array {name}, strides", strides)
    try:
        return _in_fields(name, Layout.of(extents, steps))
    except ValueError as wrong:
        raise DescriptionError(f"array {name}: {wrong}") from None


def _in_fields(name: str, layout: Layout) -> Layout:
    """The layout, whose numbers bytecode can contain."""
    numbers = [abs(number) for factors in layout.dims for pair in factors for number in pair]
    fields = {
        "an extent or stride": (max(numbers, default=0), 63),
        "the offset": (layout.offset, 31),
    }
    for what, (found, bits) in fields.items():
        if found >= 1 << bits:
            raise DescriptionError(
                f"array {name}: {what} is not less than 2^{bits}", got=str(found)
            )
    return layout


def _indices(name: str, given: Any) -> tuple[Affine, ...]:
    found = tuple(given) if isinstance(given, Iterable) else ()
    if not found or not all(isinstance(value, Affine | int | np.integer) for value in found):
        raise DescriptionError(
            f"{name}: an index is an integer, or affine in loops, for each dimension",
            got=repr(given),
        )
    return tuple(
        Affine(at.constant, at.terms) if isinstance(at, Affine) else Affine(int(at)) for at in found
    )


def _caller() -> Place:
    """The line outside of this module that made a statement."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename in (__file__, _CONTEXTLIB):
        frame = frame.f_back
    return Place(frame.f_code.co_filename, frame.f_lineno)


_CONTEXTLIB = contextmanager.__code__.co_filename
