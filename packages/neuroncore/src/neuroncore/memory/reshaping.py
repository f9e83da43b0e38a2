"""Views in other shapes: the same elements through other dimensions; nothing is copied.

Dimension 0 is pinned on chip, where it is the partitions, and behind a vector select, where every
index has its own place: no view moves, splits or merges it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from math import prod
from typing import Any

import numpy as np

from neuroncore.errors import ShapeError
from neuroncore.memory.storage import VIEW_RULE, StridedView, ViewT


def _reshape(view: ViewT, shape: Any) -> ViewT:
    wanted = sizes(shape)
    if prod(wanted) != view.size:
        raise ShapeError(
            f"reshape of {view.shape} to {wanted} changes the element count",
            expected=f"{view.size} elements", got=f"{prod(wanted)} elements", rule=VIEW_RULE,
        )  # fmt: skip
    _keeps_first(view, wanted[0] if wanted else 0, f"reshape to {wanted}")
    array = view.array.reshape(wanted)
    if array.size and not np.shares_memory(array, view.array):
        raise ShapeError(
            f"reshape of {view.shape} to {wanted} would have to move elements",
            got=f"strides {view.strides}",
            hint="copy the tensor first, or use .ap with an explicit pattern", rule=VIEW_RULE,
        )  # fmt: skip
    return _reshaped(view, array)


def _permute(view: ViewT, dims: Any) -> ViewT:
    order = tuple(dims) if isinstance(dims, (tuple, list)) else ()
    whole = all(isinstance(d, (int, np.integer)) for d in order)
    legal = whole and sorted(order) == list(range(view.ndim))
    if not legal or (view.pinned and order[0] != 0):
        raise ShapeError(
            f"cannot permute shape {view.shape} by {order or dims!r}",
            expected="a permutation of all dimensions" + (" with 0 first" if view.pinned else ""),
            operand="dims", position=0, rule=VIEW_RULE,
        )  # fmt: skip
    return _reshaped(view, view.array.transpose(order))


Group = tuple[str, ...]


class ReshapedView(StridedView):
    """A view with the methods that give its elements other dimensions."""

    __slots__ = ()

    def reshape(self: ViewT, shape: tuple[int, ...] | list[int]) -> ViewT:
        """The same elements in another shape; the partition dimension stays.

        Raises ShapeError when counts differ or the layout cannot be expressed as a view.
        """
        self.ready(keeps_offset=True)
        return _reshape(self, shape)

    def reshape_dim(self: ViewT, dim: int, shape: tuple[int, ...] | list[int]) -> ViewT:
        """Split dimension `dim` into several; one of their sizes may be -1."""
        self.ready(keeps_offset=True)
        has_dim(self, dim)
        parts = _split(self.shape[dim], shape)
        if self.pinned and dim == 0 and len(parts) > 1:
            raise ShapeError(
                f"reshape_dim splits dimension 0 of shape {self.shape} into {parts}",
                expected=f"({self.shape[0]},), or another dimension",
                operand="shape", position=1, rule=VIEW_RULE,
            )  # fmt: skip
        return _reshape(self, self.shape[:dim] + parts + self.shape[dim + 1 :])

    def flatten_dims(self: ViewT, start_dim: int, end_dim: int) -> ViewT:
        """Merge the dimensions from `start_dim` to `end_dim`, that one included."""
        self.ready(keeps_offset=True)
        has_dim(self, start_dim, operand="start_dim")
        has_dim(self, end_dim, operand="end_dim")
        if start_dim > end_dim:
            raise ShapeError(
                f"flatten_dims({start_dim}, {end_dim}) ends before it starts",
                expected="start_dim <= end_dim", operand="end_dim", position=1, rule=VIEW_RULE,
            )  # fmt: skip
        merged = prod(self.shape[start_dim : end_dim + 1])
        return _reshape(self, (*self.shape[:start_dim], merged, *self.shape[end_dim + 1 :]))

    def rearrange(
        self: ViewT,
        src_pattern: Any,
        dst_pattern: Any,
        fixed_sizes: Mapping[str, int] | None = None,
    ) -> ViewT:
        """Split, reorder and merge by name: ("b", ("h", "w")) to ("b", "w", "h"), {"h": 4}."""
        self.ready(keeps_offset=True)
        source = _groups(src_pattern, "src_pattern", 0)
        target = _groups(dst_pattern, "dst_pattern", 1)
        names, wanted = list(chain(*source)), list(chain(*target))
        each_once = len({*names}) == len(names) and sorted(names) == sorted(wanted)
        if len(source) != self.ndim or not each_once:
            raise ShapeError(
                f"rearrange from {src_pattern!r} to {dst_pattern!r} of shape {self.shape}",
                expected=f"{self.ndim} dimensions, and each name once on both sides",
                got=f"{len(source)} dimensions named {', '.join(names)}", rule=VIEW_RULE,
            )  # fmt: skip
        split = _sizes_of(self, source, dict(fixed_sizes or {}))
        parts = _reshape(self, tuple(split[n] for n in names))
        ordered = _permute(parts, [names.index(n) for n in wanted])
        return _reshape(ordered, tuple(prod(split[n] for n in group) for group in target))

    def broadcast(self: ViewT, dim: int, size: int) -> ViewT:
        """Repeat a size-1 free dimension `size` times without copying (stride 0)."""
        self.ready(keeps_offset=True)
        has_dim(self, dim)
        count = isinstance(size, (int, np.integer)) and size >= 1
        if self.shape[dim] != 1 or (dim == 0 and self.pinned) or not count:
            raise ShapeError(
                f"cannot broadcast dimension {dim} of shape {self.shape}"
                + ("" if count else f" to {size!r}"),
                expected="a free dimension of size 1, and a size of at least 1", rule=VIEW_RULE,
            )  # fmt: skip
        shape = (*self.shape[:dim], size, *self.shape[dim + 1 :])
        return _reshaped(self, np.broadcast_to(self.array, shape))

    def permute(self: ViewT, dims: tuple[int, ...]) -> ViewT:
        """Reorder dimensions; the partition dimension stays first on chip."""
        self.ready(keeps_offset=True)
        return _permute(self, dims)

    def expand_dim(self: ViewT, dim: int) -> ViewT:
        """Insert a dimension of size 1 before `dim`."""
        self.ready(keeps_offset=True)
        has_dim(self, dim, self.ndim + 1)
        _keeps_first(self, self.shape[0] if dim else 1, f"expand_dim({dim})")
        if self.pinned and not dim:
            raise ShapeError(
                f"expand_dim(0) moves dimension 0 of shape {self.shape}", expected="dim >= 1",
                operand="dim", position=0, rule=VIEW_RULE,
            )  # fmt: skip
        return _reshaped(self, np.expand_dims(self.array, dim))

    def squeeze_dim(self: ViewT, dim: int) -> ViewT:
        """Drop a dimension of size 1."""
        self.ready(keeps_offset=True)
        has_dim(self, dim)
        if self.shape[dim] != 1 or (dim == 0 and self.pinned):
            raise ShapeError(
                f"cannot squeeze dimension {dim} of shape {self.shape}",
                expected="a free dimension of size 1", rule=VIEW_RULE,
            )  # fmt: skip
        return _reshaped(self, self.array.squeeze(dim))


def _groups(pattern: Any, operand: str, position: int) -> list[Group]:
    """One tuple of names for each dimension."""
    items = pattern if isinstance(pattern, (tuple, list)) else ()
    groups = [(item,) if isinstance(item, str) else item for item in items]
    if not groups or not all(map(_is_group, groups)):
        raise ShapeError(
            f"{operand} is not a pattern", expected="a tuple of names and tuples of names",
            got=repr(pattern)[:80], operand=operand, position=position, rule=VIEW_RULE,
        )  # fmt: skip
    return [tuple(group) for group in groups]


def _is_group(names: Any) -> bool:
    is_sequence = isinstance(names, (tuple, list))
    return is_sequence and bool(names) and all(isinstance(n, str) for n in names)


def _sizes_of(
    view: StridedView, source: Sequence[Group], fixed: Mapping[str, int]
) -> dict[str, int]:
    """The size of every named dimension; one of a group may follow from the others."""
    known = {name for group in source for name in group}
    if unknown := sorted(fixed.keys() - known):
        raise ShapeError(
            f"fixed_sizes names {', '.join(unknown)}", expected=f"names of {sorted(known)}",
            operand="fixed_sizes", position=2, rule=VIEW_RULE,
        )  # fmt: skip
    found: dict[str, int] = {}
    for size, group in zip(view.shape, source, strict=True):
        parts = _split(size, tuple(fixed.get(name, -1) for name in group))
        found |= dict(zip(group, parts, strict=True))
    return found


def _split(size: int, shape: Any) -> tuple[int, ...]:
    """`shape` with its one -1 worked out; raises ShapeError if it does not make `size`."""
    parts = sizes(shape)
    known = prod(n for n in parts if n != -1)
    open_ends = parts.count(-1)
    if open_ends == 1 and known > 0 and size % known == 0:
        return tuple(size // known if n == -1 else n for n in parts)
    if open_ends or known != size or any(n < 1 for n in parts):
        raise ShapeError(
            f"a dimension of size {size} does not split into {parts}",
            expected=f"sizes whose product is {size}; one of them may be left open as -1",
            operand="shape", position=1, rule=VIEW_RULE,
        )  # fmt: skip
    return parts


def sizes(shape: Any) -> tuple[int, ...]:
    """A shape as a tuple; raises ShapeError for anything but ints."""
    if isinstance(shape, (tuple, list)) and all(isinstance(n, (int, np.integer)) for n in shape):
        return tuple(int(n) for n in shape)
    raise ShapeError(
        "a shape is a tuple of ints",
        got=repr(shape)[:80],
        operand="shape",
        position=0,
        rule=VIEW_RULE,
    )


def _reshaped(view: ViewT, array: np.ndarray) -> ViewT:
    """The view through `array`, at the same dynamic offset."""
    if view.spec.space.on_chip and array.ndim > max(view.most_dims, view.ndim):
        raise ShapeError(
            f"a view of {array.ndim} dimensions", expected=f"at most {view.most_dims} on chip",
            got=f"shape {array.shape}", rule="NKI language guide: tensors",
        )  # fmt: skip
    return view.along(array, view.spec.start)


def has_dim(view: StridedView, dim: Any, count: int | None = None, operand: str = "dim") -> None:
    count = view.ndim if count is None else count
    if not isinstance(dim, (int, np.integer)) or isinstance(dim, bool) or dim not in range(count):
        raise ShapeError(
            f"dimension {dim!r} does not exist", expected=f"0 <= {operand} < {count}",
            got=f"{dim!r} for shape {view.shape}", operand=operand,
            position=int(operand == "end_dim"), rule=VIEW_RULE,
        )  # fmt: skip


def _keeps_first(view: StridedView, size: int, what: str) -> None:
    if view.pinned and size != view.shape[0]:
        raise ShapeError(
            f"{what} changes the {'partition' if view.spec.space.on_chip else 'indexed'} dimension "
            f"of shape {view.shape}",
            expected=f"{view.shape[0]} partitions first", got=f"{size} partitions", rule=VIEW_RULE,
        )  # fmt: skip
