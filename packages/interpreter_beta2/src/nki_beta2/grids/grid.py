"""The grids that kernels see: NkiTileGrid and NkiBlockGrid, views by tile and by block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, Self

from neuroncore.enums import MemorySpace
from neuroncore.errors import UnsupportedError, absent_name
from neuroncore.memory import View
from nki_beta2.grids.arguments import RULE, GridAccessError, cell_at, cells_at, slab_at
from nki_beta2.grids.axis import Axis
from nki_beta2.grids.layout import Layout
from nki_dtypes import DType


class NkiGrid:
    """A tensor seen in tiles or blocks of tiles; making and indexing one emits no instruction.

    An index selects cells and gives a grid again; `data` is the selection as a tensor.
    """

    __slots__ = ("_axes", "_layout")

    operand_hint = "give its data: .data of a grid is a tensor"
    """What an instruction says that is given the grid."""

    _layout: Layout
    _axes: tuple[Axis, ...]

    def __init__(self, **kwargs: Any) -> NoReturn:
        raise UnsupportedError(
            f"{type(self).__name__}(…) is not called by kernels",
            expected="nl.tiles, nl.blocks, nl.alloc_tiles or nl.alloc_blocks",
            got=f"{type(self).__name__}({', '.join(kwargs)})", rule=f"NKI 0.7: {RULE}",
        )  # fmt: skip

    @classmethod
    def made(cls, layout: Layout, axes: Sequence[Axis]) -> Self:
        """The grid of a layout with these axes, one per tiled dimension."""
        grid = object.__new__(cls)
        grid._layout, grid._axes = layout, tuple(axes)
        return grid

    @property
    def layout(self) -> Layout:
        """Where its elements are stored."""
        return self._layout

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Its tiled dimensions, indexed ones too."""
        return self._axes

    @property
    def buffer(self) -> MemorySpace:
        """The memory of the tensor behind it."""
        return self._layout.tensor.buffer

    @property
    def dtype(self) -> DType:
        """The element type of the tensor behind it."""
        return self._layout.tensor.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """How many cells each remaining dimension has; of an untiled one, how many elements."""
        counts = (len(axis.cells) for axis in self._axes if not axis.is_indexed)
        return (*self._layout.untiled, *counts)

    @property
    def tile_shape(self) -> tuple[int, ...]:
        """Elements of a whole tile."""
        return tuple(axis.tile for axis in self._axes)

    @property
    def element_shape(self) -> tuple[int, ...]:
        """How many elements of each dimension are selected: the shape of `data`."""
        return (*self._layout.untiled, *(axis.elements for axis in self._axes))

    @property
    def index_step_elements(self) -> tuple[int, ...]:
        """Elements from one cell to the next, of each dimension of `shape`."""
        steps = (axis.index_step for axis in self._axes if not axis.is_indexed)
        return (*(1 for _ in self._layout.untiled), *steps)

    @property
    def is_remainder(self) -> bool:
        """Whether a selected cell is smaller than a whole one."""
        return any(axis.is_remainder for axis in self._axes)

    @property
    def is_data_representable(self) -> bool:
        """Whether `data` exists: one access pattern of the shape `element_shape` describes it."""
        return self._layout.is_representable(self._axes)

    @property
    def data(self) -> View:
        """The selection as a tensor of shape `element_shape`, for an instruction.

        Raises AccessError where no access pattern describes it.
        """
        if self.is_data_representable:
            return self._layout.operand(self._axes)
        raise GridAccessError(
            f"a selection of {_times(self.shape)} cells has no data", RULE,
            f"one access pattern of shape {self.element_shape}", self,
            hint="select fewer cells, such as one tile of every dimension, and read the data of "
            "each; is_data_representable is True for selections that have data",
        )  # fmt: skip

    def __getitem__(self, key: Any) -> Self:
        items = list(key) if isinstance(key, tuple) else [key]
        if len(items) > len(self.shape):
            raise GridAccessError(
                f"{len(items)} indices of a grid with {len(self.shape)} dimensions", RULE,
                f"at most {len(self.shape)}", self,
            )  # fmt: skip
        items += [slice(None)] * (len(self.shape) - len(items))
        sizes = self._layout.untiled
        slabs = [slab_at(items.pop(0), n, dim) for dim, n in enumerate(sizes)]
        layout = self._layout.slab(tuple(slabs)) if slabs else self._layout
        takes_steps = layout.tensor.core.options.grid_steps == "allow"
        axes = [
            axis if axis.is_indexed else _along(axis, items.pop(0), takes_steps)
            for axis in self._axes
        ]
        return self.made(layout, axes)

    def __iter__(self) -> NoReturn:
        raise UnsupportedError(
            "iteration over a grid", expected="a range", got=repr(self),
            hint="loop over range(grid.shape[0]) and index the grid", rule=f"NKI 0.7: {RULE}",
        )  # fmt: skip

    def __getattr__(self, name: str) -> NoReturn:
        having = [n for n in dir(NkiGrid) if not n.startswith("_")]
        raise absent_name(type(self).__name__, name, having, "grid.data is the tensor")

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__} of {_times(self.shape)}, tiles of {_times(self.tile_shape)}, "
            f"elements {self.element_shape}, {self.dtype}, {self.buffer.name.upper()}"
        )


class NkiTileGrid(NkiGrid):
    """A tensor seen by tile."""

    __slots__ = ()


class NkiBlockGrid(NkiGrid):
    """A tensor seen by block of tiles; nl.tiles of a block gives its tiles."""

    __slots__ = ()

    @property
    def block_shape(self) -> tuple[int, ...]:
        """Tiles of a whole block."""
        return tuple(axis.group for axis in self._axes)


def _times(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "1"


def _along(axis: Axis, item: Any, takes_steps: bool) -> Axis:
    """The part of an axis that an item of a key selects."""
    if isinstance(item, slice):
        return axis.cut(cells_at(item, len(axis.cells), takes_steps))
    return axis.at(cell_at(item, len(axis.cells)))
