"""Views in other shapes: the same elements through other dimensions; nothing is copied.

Dimension 0 is pinned on chip, where it is the partitions, and behind a vector select, where every
index has its own place: no view moves, splits or merges it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from neuroncore.errors import ShapeError
from neuroncore.memory.storage import VIEW_RULE, StridedView, ViewT

MOST_DIMS = 5
"""Dimensions of a view on chip [NKI language guide, 0.5: tensors]."""


def reshape(view: ViewT, shape: Any) -> ViewT:
    """See View.reshape."""
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


def reshape_dim(view: ViewT, dim: int, shape: Any) -> ViewT:
    """See View.reshape_dim."""
    has_dim(view, dim)
    parts = _split(view.shape[dim], shape)
    if view.pinned and dim == 0 and len(parts) > 1:
        raise ShapeError(
            f"reshape_dim splits dimension 0 of shape {view.shape} into {parts}",
            expected=f"({view.shape[0]},), or another dimension",
            operand="shape", position=1, rule=VIEW_RULE,
        )  # fmt: skip
    return reshape(view, view.shape[:dim] + parts + view.shape[dim + 1 :])


def flatten_dims(view: ViewT, start_dim: int, end_dim: int) -> ViewT:
    """See View.flatten_dims."""
    has_dim(view, start_dim, operand="start_dim")
    has_dim(view, end_dim, operand="end_dim")
    if start_dim > end_dim:
        raise ShapeError(
            f"flatten_dims({start_dim}, {end_dim}) ends before it starts",
            expected="start_dim <= end_dim", operand="end_dim", position=1, rule=VIEW_RULE,
        )  # fmt: skip
    merged = prod(view.shape[start_dim : end_dim + 1])
    return reshape(view, (*view.shape[:start_dim], merged, *view.shape[end_dim + 1 :]))


def permute(view: ViewT, dims: Any) -> ViewT:
    """See View.permute."""
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


def broadcast(view: ViewT, dim: int, size: int) -> ViewT:
    """See View.broadcast."""
    has_dim(view, dim)
    count = isinstance(size, (int, np.integer)) and size >= 1
    if view.shape[dim] != 1 or (dim == 0 and view.pinned) or not count:
        raise ShapeError(
            f"cannot broadcast dimension {dim} of shape {view.shape}"
            + ("" if count else f" to {size!r}"),
            expected="a free dimension of size 1, and a size of at least 1", rule=VIEW_RULE,
        )  # fmt: skip
    shape = (*view.shape[:dim], size, *view.shape[dim + 1 :])
    return _reshaped(view, np.broadcast_to(view.array, shape))


def expand_dim(view: ViewT, dim: int) -> ViewT:
    """See View.expand_dim."""
    has_dim(view, dim, view.ndim + 1)
    _keeps_first(view, view.shape[0] if dim else 1, f"expand_dim({dim})")
    if view.pinned and not dim:
        raise ShapeError(
            f"expand_dim(0) moves dimension 0 of shape {view.shape}", expected="dim >= 1",
            operand="dim", position=0, rule=VIEW_RULE,
        )  # fmt: skip
    return _reshaped(view, np.expand_dims(view.array, dim))


def squeeze_dim(view: ViewT, dim: int) -> ViewT:
    """See View.squeeze_dim."""
    has_dim(view, dim)
    if view.shape[dim] != 1 or (dim == 0 and view.pinned):
        raise ShapeError(
            f"cannot squeeze dimension {dim} of shape {view.shape}",
            expected="a free dimension of size 1", rule=VIEW_RULE,
        )  # fmt: skip
    return _reshaped(view, view.array.squeeze(dim))


Group = tuple[str, ...]


def rearrange(view: ViewT, src_pattern: Any, dst_pattern: Any, fixed_sizes: Any) -> ViewT:
    """See View.rearrange."""
    source, target = _groups(src_pattern, "src_pattern", 0), _groups(dst_pattern, "dst_pattern", 1)
    names, wanted = [n for g in source for n in g], [n for g in target for n in g]
    if len(source) != view.ndim or sorted(names) != sorted(wanted) or len({*names}) != len(names):
        raise ShapeError(
            f"rearrange from {src_pattern!r} to {dst_pattern!r} of shape {view.shape}",
            expected=f"{view.ndim} dimensions, and each name once on both sides",
            got=f"{len(source)} dimensions named {', '.join(names)}", rule=VIEW_RULE,
        )  # fmt: skip
    split = _sizes_of(view, source, dict(fixed_sizes or {}))
    parts = permute(reshape(view, tuple(split[n] for n in names)), [names.index(n) for n in wanted])
    return reshape(parts, tuple(prod(split[n] for n in group) for group in target))


def _groups(pattern: Any, operand: str, position: int) -> list[Group]:
    """One tuple of names for each dimension."""
    items = pattern if isinstance(pattern, (tuple, list)) else ()
    groups = [(item,) if isinstance(item, str) else item for item in items]
    if not groups or not all(
        isinstance(g, (tuple, list)) and g and all(isinstance(n, str) for n in g) for g in groups
    ):
        raise ShapeError(
            f"{operand} is not a pattern", expected="a tuple of names and tuples of names",
            got=repr(pattern)[:80], operand=operand, position=position, rule=VIEW_RULE,
        )  # fmt: skip
    return [tuple(group) for group in groups]


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
    if view.spec.space.on_chip and array.ndim > max(MOST_DIMS, view.ndim):
        raise ShapeError(
            f"a view of {array.ndim} dimensions", expected=f"at most {MOST_DIMS} on chip",
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
