"""`t[idx, i_f]` with a tile as index: addresses that the device computes.

The tile replaces an index expression of its shape: the access has the shape that it would have with
the numbers of the tile. Two forms reach a DMA: one number for the whole access (a tile of
one element), and one per row (P, 1), where the tile's axis 0 is the access's axis 0.

`idx[0, b] + nl.arange(F)[None, :]` is a number in SBUF and an index expression, added up. As an
index it offsets the access on the device (tensor_copy_dynamic_src); for a function of tiles it is
the tile of sums.
"""

from __future__ import annotations

from typing import Any, Never

import numpy as np

from neuroncore.alu import ALU_OPS
from neuroncore.enums import HBM, MemorySpace
from neuroncore.errors import AccessError, DTypeError
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.memory import StridedView, View
from neuroncore.spec import Indirection
from nki_beta1.access.access import (
    Access,
    check_range,
    expressions,
    is_same_place,
    locate,
    uses_index,
)
from nki_beta1.execution.emission import run
from nki_beta1.execution.indirection import RULE, IndirectOffset, rows_named_by_a_tile
from nki_beta1.execution.plans import gathered, issue, usage
from nki_beta1.index.expression import Index, constant_of
from nki_beta1.index.mask import Region
from nki_beta1.index.pattern import broadcast_shapes
from nki_beta1.values.special_methods import NotAnArray
from nki_dtypes import bool_, int32


class Offset(NotAnArray):
    """An index expression moved by the one number of a tile."""

    __slots__ = ("index", "tile")

    def __init__(self, tile: View, index: Index) -> None:
        self.tile, self.index = tile, index

    def __add__(self, other: Any) -> Any:
        return Offset(self.tile, self.index + other) if _is_static(other) else NotImplemented

    def __sub__(self, other: Any) -> Any:
        return Offset(self.tile, self.index - other) if _is_static(other) else NotImplemented

    __radd__ = __add__

    def __repr__(self) -> str:
        return f"<{self.index!r} moved by a number in {self.tile.spec.space.name.upper()}>"


def _is_static(value: Any) -> bool:
    return isinstance(value, Index) or constant_of(value) is not None


def check_index_tile(tile: View) -> None:
    """Raise AccessError for a tile outside SBUF, DTypeError for bools, which name no element."""
    core: Any = tile.core
    core.flush()
    if tile.spec.space is not MemorySpace.sbuf:
        raise AccessError(
            f"the index tile is in {tile.spec.space.name.upper()}",
            expected="a tile in SBUF",
            got=repr(tile),
            hint="load it, or copy it with nl.copy first",
            rule=RULE,
        )
    if tile.spec.dtype is bool_:
        raise _no_index(tile, f"the index tile is {tile.spec.dtype}")


def is_address(tile: View) -> bool:
    """Whether the machine computes addresses from the tile as it is: int32 or uint32, in place."""
    kind = tile.spec.dtype
    return kind.is_integer and kind.itemsize == 4 and tile.dynamic is None


def as_address(tile: View) -> View:
    """The tile's numbers as they are now, as int32 or uint32.

    Narrower integers, and floats that hold whole numbers as public kernels have them, are copied to
    int32. Raises DTypeError for other floats: the documents have none as an index.
    """
    if is_address(tile):
        tile.initialize()
        return tile
    copy = tile.core.allocate(tile.shape, int32, MemorySpace.sbuf)
    _copy(copy, tile)
    return copy


class IndexCopy:
    """A copy of the numbers of an index tile, which is renewed after the tile was written.

    `numbers` is that copy.
    """

    __slots__ = ("__weakref__", "_is_stale", "_tile", "numbers")

    def __init__(self, tile: View) -> None:
        self._tile = tile
        self.numbers = as_address(tile)
        self._follow()

    def renew(self) -> None:
        """Copy the present numbers of the tile to `numbers`."""
        if self._is_stale:
            _copy(self.numbers, self._tile)
            self._follow()

    def detach(self) -> None:
        """The tile, or an index tile that locates it, is about to be written."""
        self._is_stale = True

    def _follow(self) -> None:
        self._is_stale = False
        view: StridedView | None = self._tile
        while view is not None:
            core: Any = view.core
            core.add_dependent(view.storage, self)
            view = None if view.dynamic is None else view.dynamic.index


def _copy(numbers: View, tile: View) -> None:
    tile.initialize()
    tile = gathered(tile)
    core: Any = tile.core
    if tile.spec.dtype.is_float and core.computes:
        values = tile.array.astype(np.float64)
        broken = values[values != np.trunc(values)]
        if broken.size:
            raise _no_index(tile, f"the index tile is {tile.spec.dtype} and holds {broken[0]}")
    issue(core, usage(core, INSTRUCTIONS["tensor_copy"], {}), [numbers, tile])


def _no_index(tile: View, message: str) -> DTypeError:
    return DTypeError(
        message,
        expected="int32, uint32 or whole numbers",
        got=repr(tile),
        hint="numbers are rounded where you say so: nl.copy(tile, dtype=nl.int32)",
        rule=RULE,
    )


class Indirect(Access):
    """An access whose index in dimension `dim` is read from `tile` when it is used."""

    __slots__ = ("dim", "tile")

    def __init__(
        self, base: View, indices: list[Index], shape: tuple[int, ...], dim: int, tile: View
    ) -> None:
        super().__init__(base, indices, shape)
        self.dim, self.tile = dim, tile

    def of(self, region: Region | None) -> View | Access:
        """The dynamic view; of the part inside a mask's rectangle, if there is one."""
        indices, tile, shape = self.indices, self.tile, self.shape
        if region is not None:
            indices, shape = [i.part(region.rect) for i in indices], region.shape
            tile = tile[region.rect[0]] if tile.size > 1 else tile
        return _dynamic(self.base, indices, shape, self.dim, tile)

    def transposed(self, order: tuple[int, ...]) -> View | Access:
        if self.tile.size > 1:
            raise rows_named_by_a_tile(self.shape)
        indices = [i.permuted(order) for i in self.indices]
        shape = tuple([self.shape[axis] for axis in order])
        return Indirect(self.base, indices, shape, self.dim, self.tile)

    def read(self) -> View:
        """The view itself: it finds its place when an instruction uses it."""
        return self.of(None)  # type: ignore[return-value]

    def _elements(self) -> Never:
        raise AssertionError("which elements an indirect access has, its tile says")

    def is_same(self, other: Access) -> bool:
        return (
            isinstance(other, Indirect)
            and self.dim == other.dim
            and is_same_place(self.tile, other.tile)
            and super().is_same(other)
        )

    def __getitem__(self, key: Any) -> Any:
        return self.read()[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.read()[key] = value  # type: ignore[index]


def indirect(base: View, items: list[Any]) -> View | Access:
    """`base[items]`, one item per dimension, at least one of them a tile.

    Raises AccessError for more than one tile, a base on chip, or a tile of another form.
    """
    at = [n for n, item in enumerate(items) if isinstance(item, (View, Offset))]
    if len(at) > 1:
        raise AccessError(
            f"dimensions {at} are indexed with tiles",
            expected="a tile in one dimension, ints, slices and index expressions in the others",
            rule=RULE,
        )
    dim, item = at[0], items[at[0]]
    tile = item.tile if isinstance(item, Offset) else item
    _check_base(base, dim, tile)
    if isinstance(item, Offset):
        return _access(base, [*items[:dim], item.index, *items[dim + 1 :]], dim, tile)
    is_alone = not uses_index(tuple(items))
    if is_alone and tile.size == 1:
        return _at_scalar(base, items, dim, tile)
    axes = tile.shape[:1] if is_alone else tile.shape  # slices are the other axes of a row
    stand_in = Index(axes, 0, (0,) * len(axes))
    return _access(base, [*items[:dim], stand_in, *items[dim + 1 :]], dim, tile)


def _check_base(base: View, dim: int, tile: View) -> None:
    """Raise for a tensor that the tile cannot index in dimension `dim`."""
    if base.dynamic is not None:
        raise AccessError(
            "an access that a tile moves is indexed with another tile",
            got=repr(base),
            hint="take the part out first, with nl.load or nl.copy",
            rule=RULE,
        )
    check_index_tile(tile)
    if base.spec.space not in HBM and (dim == 0 or tile.size > 1):
        raise AccessError(
            f"a tensor in {base.spec.space.name.upper()} is indexed with a tile",
            expected="one number, on a free dimension, in nisa.tensor_copy_dynamic_src or _dst",
            got=f"a tile of shape {tile.shape} in dimension {dim} of shape {base.shape}",
            hint="rows are gathered from HBM, with nl.load",
            rule=RULE,
        )


def _access(base: View, items: list[Any], dim: int, tile: View) -> Indirect:
    """The access whose item in `dim` is an index expression that the tile moves."""
    indices = expressions(base, items)
    shape = broadcast_shapes(*(i.shape for i in indices))
    _check_rows(tile, indices, shape)
    return Indirect(base, indices, shape, dim, tile)


def _at_scalar(base: View, items: list[Any], dim: int, tile: View) -> View:
    """With ints and slices only, one number is an int: the dimension is dropped."""
    window = base[(*items[:dim], 0, *items[dim + 1 :])]
    copied = None if is_address(tile) else IndexCopy(tile)
    numbers = tile if copied is None else copied.numbers
    return _offset_view(base, window, "scalar", dim, numbers, copied=copied)


def _check_rows(tile: View, indices: list[Index], shape: tuple[int, ...]) -> None:
    """A tile of several numbers has one per row, and nothing else changes from row to row."""
    rows = tile.shape[0]
    others = [i for i in indices if i.shape[0] > 1 and i.steps is not None and i.steps[0]]
    if tile.size == 1 or (tile.size == rows == shape[0] and not others):
        return
    raise AccessError(
        f"an index tile of shape {tile.shape} in an access of shape {shape}",
        expected="one number, or (P, 1) with the access's axis 0 over the P rows only",
        got=f"{others[0]!r} beside it" if others else f"{tile.size} numbers",
        hint="put the rows' own offset into the index tile",
        rule=RULE,
    )


def _dynamic(
    base: View, indices: list[Index], shape: tuple[int, ...], dim: int, tile: View
) -> View:
    tile, indices = _relative_to_first(base, indices, dim, as_address(tile))
    window = locate(base, indices, shape)
    if not isinstance(window, View):
        _check_extent(base, indices[dim], dim)
        _check_exact(base, indices[dim], dim)
        check_range(base, indices)
        raise AccessError(
            f"an indirect access of shape {shape} that no strides describe",
            got=repr(base),
            hint="use affine index expressions beside the tile",
            rule=RULE,
        )
    kind = "vector" if tile.size > 1 else "scalar"
    return _offset_view(base, window, kind, dim, tile, indices[dim].bounds[1])


def _relative_to_first(
    base: View, indices: list[Index], dim: int, tile: View
) -> tuple[View, list[Index]]:
    """The number of the first index in the tile's place, and index expressions from 0 on.

    The constant of an expression is added to the number: n + 5 is an index where n is -3, and n - 1
    where n is 3. The device adds it, in float32: where that might round, the index keeps it.
    """
    low, _ = indices[dim].bounds
    if not low or base.shape[dim] + abs(low) > _EXACT:  # neither number nor sum is rounded
        return tile, indices
    first = tile.core.allocate(tile.shape, int32, MemorySpace.sbuf)
    run(
        "tensor_scalar",
        {"dst": first, "data": tile, "operand0": low},
        {"op0": ALU_OPS["add"], "reverse0": False},
    )
    return first, [*indices[:dim], indices[dim] - low, *indices[dim + 1 :]]


_EXACT = 1 << 24  # float32 has every whole number up to it


def _check_extent(base: View, index: Index, dim: int) -> None:
    """Raise AccessError for more indices than the dimension has."""
    low, high = index.bounds
    if high - low < base.shape[dim]:
        return
    raise AccessError(
        f"index out of range in dimension {dim}",
        expected=f"0 <= index < {base.shape[dim]}",
        got=f"{high - low + 1} indices, moved by a tile, on a tensor of shape {base.shape}",
        hint="cut the last tile off with mask=, on every access that leaves the tensor",
        rule=RULE,
    )


def _check_exact(base: View, index: Index, dim: int) -> None:
    """Raise AccessError for a constant that the device cannot add to the tile's number."""
    low, high = index.bounds
    if not low:
        return
    raise AccessError(
        f"a tile and a constant index dimension {dim}, and float32 would round their sum",
        expected=f"numbers up to {_EXACT} in the tile, as the tensor and the constant need",
        got=f"indices {low} to {high} beside the tile, on a tensor of shape {base.shape}",
        hint="put the constant into the numbers of the index tile, before they are loaded",
        rule=RULE,
    )


def _offset_view(
    base: View, window: View, kind: str, dim: int, tile: View, reach: int = 0,
    copied: IndexCopy | None = None,
) -> View:  # fmt: skip
    """The window moved along `dim` by the tile's numbers; it reaches `reach` beyond each."""
    stride = base.spec.strides[dim]
    return window.derive(
        window.array,
        window.spec.start,
        dynamic=IndirectOffset(tile, stride, base.shape[dim] - reach, reach, base.shape, copied),
        indirect=Indirection(kind, dim, stride, tile.spec, base.shape[dim]),
    )
