"""Arguments and indices that grids take, and the errors for the ones that they reject."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.errors import (
    AccessError,
    AttributeValueError,
    KernelError,
    PartitionError,
    ShapeError,
    SignatureError,
)
from neuroncore.targets import PARTITIONS

Shape = tuple[int, ...]
RULE = "nl.NkiGrid"


class _GridError(KernelError):
    """An error of a function of nl that makes grids; `got` is the value as it is."""

    def __init__(self, what: str, function: str, expected: str, got: Any, **more: Any) -> None:
        shown, rule = f"{got!r}"[:80], f"NKI 0.7: {function}"
        super().__init__(
            what, expected=expected, got=shown, instruction=function, rule=rule, **more
        )


class GridTypeError(_GridError, SignatureError, TypeError):
    """An argument of a grid's function of another type than documented."""


class GridValueError(_GridError, ShapeError, ValueError):
    """A shape that a grid's function documents as an error."""


class GridPartitionError(_GridError, PartitionError):
    """A tile with more partitions than there are."""


class GridAccessError(_GridError, AccessError):
    """An index outside a grid, or a selection without data."""


class GridOptionError(_GridError, AttributeValueError):
    """A value that a grid's function does not take."""


def check_sizes(function: str, name: str, shape: Any) -> None:
    """Raise GridTypeError or GridValueError for a shape that is not a tuple of positive ints."""
    if type(shape) is not tuple or any(type(n) is not int for n in shape):
        raise GridTypeError(
            f"{name} is not a tuple of ints", function, "a tuple of ints", shape, operand=name
        )
    if any(n <= 0 for n in shape):
        raise GridValueError(
            f"{name} has sizes below 1", function, "sizes from 1 on", shape, operand=name
        )


def check_tiles(function: str, tile_shape: Any, shape: Any) -> None:
    """Raise GridTypeError or GridValueError for tiles that a shape cannot have."""
    check_sizes(function, "tile_shape", tile_shape)
    check_sizes(function, "element_shape", shape)
    if not 2 <= len(tile_shape) <= len(shape):
        raise GridValueError(
            f"tile_shape has {len(tile_shape)} dimensions, and the elements have {len(shape)}",
            function, "two or more, and not more than the elements", tile_shape,
            operand="tile_shape",
        )  # fmt: skip


def check_on_chip(function: str, tile_shape: Shape, shape: Shape) -> None:
    """On chip dimension 0 is the partitions: it is tiled, and a tile has at most 128."""
    if len(shape) > len(tile_shape):
        raise GridValueError(
            f"{len(shape) - len(tile_shape)} untiled dimensions on chip", function,
            f"a tile_shape of {len(shape)} dimensions", tile_shape, operand="tile_shape",
            hint="untiled dimensions are for tensors in HBM",
        )  # fmt: skip
    if tile_shape[0] > PARTITIONS:
        raise GridPartitionError(
            f"a tile of {tile_shape[0]} partitions", function, f"at most {PARTITIONS}", tile_shape,
            operand="tile_shape",
        )  # fmt: skip


_BUFFERS = (
    MemorySpace.sbuf, MemorySpace.psum, MemorySpace.private_hbm, MemorySpace.shared_hbm,
)  # fmt: skip
_NAMES = "nl.sbuf, nl.psum, nl.hbm, nl.private_hbm or nl.shared_hbm"


def check_buffer(function: str, buffer: Any) -> None:
    """Raise GridTypeError or GridValueError for what is not a memory of tensors."""
    if not isinstance(buffer, MemorySpace):
        raise GridTypeError(
            f"buffer is a {type(buffer).__name__}", function, _NAMES, buffer, operand="buffer"
        )
    if buffer not in _BUFFERS:
        raise GridValueError(
            f"{buffer} is not a memory of new tensors", function, _NAMES, buffer, operand="buffer"
        )


# -- indices


def cell_at(item: Any, count: int) -> int:
    """An int as the number of one of `count` cells."""
    number = _whole(item)
    if not 0 <= number < count:
        hint = f"write {number + count}" if -count <= number < 0 else "end the loop before it"
        raise GridAccessError(
            f"cell {number} is outside the grid", RULE, f"0 <= index < {count}", item, hint=hint
        )
    return number


def cells_at(item: slice, count: int, takes_steps: bool) -> slice:
    """A slice of `count` cells with its bounds and a positive step; of 1 without `takes_steps`."""
    default = (0, count, 1)
    parts = zip((item.start, item.stop, item.step), default, strict=True)
    start, stop, step = (n if given is None else _whole(given) for given, n in parts)
    if not (0 <= start < stop <= count and step >= 1):
        raise GridAccessError(
            "a slice of cells is outside the grid", RULE,
            f"0 <= start < stop <= {count} and step >= 1", item,
            hint="clamp the bound with min(…)",
        )  # fmt: skip
    if step > 1 and not takes_steps:
        raise GridAccessError(
            f"a slice of a grid with a step of {step}", RULE, "a step of 1", item,
            hint="index the cells one by one; Options.grid_steps='allow' takes steps, which the "
            "page of nl.empty_like names and no page of grids shows",
        )  # fmt: skip
    return slice(start, stop, step)


def slab_at(item: Any, count: int, dim: int) -> int | slice:
    """The part of an untiled dimension that an item selects: one number, or all."""
    if item == slice(None):
        return slice(None)
    if isinstance(item, slice):
        raise GridAccessError(
            f"dimension {dim} is not tiled, and a slice cuts it", RULE, "an int, or all of it",
            item, hint="index it one slab at a time",
        )  # fmt: skip
    return cell_at(item, count)


def _whole(item: Any) -> int:
    if isinstance(item, (int, np.integer)) and not isinstance(item, bool):
        return int(item)
    raise GridAccessError(
        f"a grid is indexed with a {type(item).__name__}", RULE, "an int or a slice of ints", item,
        hint="an index that the device computes goes into .data.ap(scalar_offset=…)",
    )  # fmt: skip
