"""Elements at other places: views of one array, arrays put together, parts replaced."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from nki_dtypes import DType
from nkigen_lite.ops._record import DTYPE, INT, INTS, Kind, Op, given_dtype, mismatch, same_dtype
from nkigen_lite.tensors.spec import Shape


def _transposed(shapes: tuple[Shape, ...], attrs: Mapping[str, Any]) -> Shape:
    (shape,), axes = shapes, attrs["axes"]
    if sorted(axes) != list(range(len(shape))):
        raise mismatch(f"axes {axes}", expected=f"each axis from 0 to {len(shape) - 1} once")
    return tuple(shape[a] for a in axes)


def _reshaped(shapes: tuple[Shape, ...], attrs: Mapping[str, Any]) -> Shape:
    (shape,), new = shapes, attrs["shape"]
    if prod(shape) != prod(new) or any(n < 0 for n in new):
        raise mismatch(f"shape {new}", expected=f"{prod(shape)} elements")
    return new


def _stretched(shapes: tuple[Shape, ...], attrs: Mapping[str, Any]) -> Shape:
    (shape,), new = shapes, attrs["shape"]
    try:
        fits = np.broadcast_shapes(shape, new) == new
    except ValueError:
        fits = False
    if not fits:
        raise mismatch(f"shape {new}", expected=f"a shape that {shape} broadcasts to")
    return new


def _check_box(shape: Shape, starts: Shape, sizes: Shape, steps: Shape) -> None:
    if not len(starts) == len(sizes) == len(steps) == len(shape):
        raise mismatch("a box of another rank", expected=f"{len(shape)} starts, sizes and steps")
    for n, start, size, step in zip(shape, starts, sizes, steps, strict=True):
        last = start + (size - 1) * step
        if step == 0 or size < 0 or (size and not (0 <= start < n and 0 <= last < n)):
            raise mismatch(
                f"start {start}, size {size}, step {step}", expected=f"inside 0 … {n - 1}"
            )


def _sliced(shapes: tuple[Shape, ...], attrs: Mapping[str, Any]) -> Shape:
    _check_box(shapes[0], attrs["starts"], attrs["sizes"], attrs["steps"])
    return attrs["sizes"]


def _updated(shapes: tuple[Shape, ...], attrs: Mapping[str, Any]) -> Shape:
    base, part = shapes
    _check_box(base, attrs["starts"], part, attrs["steps"])
    return base


def _box(starts: Shape, sizes: Shape, steps: Shape) -> tuple[slice, ...]:
    """Python's slices; one that runs down to element 0 has no stop."""
    stops = [a + n * s for a, n, s in zip(starts, sizes, steps, strict=True)]
    return tuple(
        slice(0, 0) if n == 0 else slice(a, None if stop < 0 else stop, s)
        for a, n, s, stop in zip(starts, sizes, steps, stops, strict=True)
    )


def _slice(x: np.ndarray, starts: Shape, sizes: Shape, steps: Shape) -> np.ndarray:
    return x[_box(starts, sizes, steps)]


def _update(x: np.ndarray, part: np.ndarray, starts: Shape, steps: Shape) -> np.ndarray:
    result = x.copy()
    result[_box(starts, part.shape, steps)] = part
    return result


def _joined(shapes: tuple[Shape, ...], attrs: Mapping[str, Any]) -> Shape:
    first, axis = shapes[0], attrs["axis"]
    if not 0 <= axis < len(first):
        raise mismatch(f"axis {axis}", expected=f"an axis from 0 to {len(first) - 1}")
    rest = {s[:axis] + s[axis + 1 :] for s in shapes}
    if len(rest) > 1 or any(len(s) != len(first) for s in shapes):
        raise mismatch("shapes differ beside the joined axis")
    return (*first[:axis], sum(s[axis] for s in shapes), *first[axis + 1 :])


def _concatenate(*arrays: np.ndarray, axis: int) -> np.ndarray:
    return np.concatenate(arrays, axis=axis)


def _same_shape(shapes: tuple[Shape, ...], attrs: Mapping[str, Any]) -> Shape:
    return shapes[0]


def _matrices(shapes: tuple[Shape, ...], attrs: Mapping[str, Any]) -> Shape:
    if len(shapes[0]) < 2:
        raise mismatch("fewer than two axes")
    return shapes[0]


def _same_width(dtypes: tuple[DType, ...], attrs: Mapping[str, Any]) -> DType:
    if dtypes[0].itemsize != attrs["dtype"].itemsize:
        raise mismatch(f"the bits of {dtypes[0]} as {attrs['dtype']}", expected="the same width")
    return given_dtype(dtypes, attrs)


def _tri(x: np.ndarray, k: int, upper: bool) -> np.ndarray:
    below = np.tri(*x.shape[-2:], k=k - 1 if upper else k, dtype=bool)
    return np.where(below != upper, x, np.zeros(1, x.dtype))


def _tril(x: np.ndarray, k: int) -> np.ndarray:
    return _tri(x, k, False)


def _triu(x: np.ndarray, k: int) -> np.ndarray:
    return _tri(x, k, True)


def _bits(x: np.ndarray, dtype: DType) -> np.ndarray:
    return np.ascontiguousarray(x).reshape(x.shape).view(dtype.storage)


VIEWS: tuple[Op, ...] = (
    Op("transpose", Kind.view, ("x",), np.transpose, _transposed, same_dtype, {"axes": INTS}),
    Op("reshape", Kind.view, ("x",), np.reshape, _reshaped, same_dtype, {"shape": INTS}),
    Op("broadcast_to", Kind.view, ("x",), np.broadcast_to, _stretched, same_dtype, {"shape": INTS}),
    Op(
        "slice", Kind.view, ("x",), _slice, _sliced, same_dtype,
        {"starts": INTS, "sizes": INTS, "steps": INTS},
    ),
    Op("bitcast", Kind.view, ("x",), _bits, _same_shape, _same_width, {"dtype": DTYPE}),
)  # fmt: skip
"""`slice` takes elements start, start + step, …: `sizes` of them; steps may be negative."""

LAYOUTS: tuple[Op, ...] = (
    Op("concatenate", Kind.layout, ("*xs",), _concatenate, _joined, same_dtype, {"axis": INT},
       is_modular=True),
    Op(
        "update", Kind.layout, ("x", "part"), _update, _updated, same_dtype,
        {"starts": INTS, "steps": INTS},
    ),
    Op("tril", Kind.select, ("x",), _tril, _matrices, same_dtype, {"k": INT}),
    Op("triu", Kind.select, ("x",), _triu, _matrices, same_dtype, {"k": INT}),
)  # fmt: skip
"""`update` is `x` with a box of `part`'s shape replaced. `tril` and `triu` put zeros elsewhere."""
