"""Windows, shifts by half an axis, powers and norms of matrices: compositions of functions."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from nkigen_lite.frontend.arrays import views
from nkigen_lite.frontend.arrays.array import Array
from nkigen_lite.frontend.arrays.promotion import resolved
from nkigen_lite.frontend.arrays.registry import implements
from nkigen_lite.tensors.errors import ValueRangeError


@implements("lib.stride_tricks.sliding_window_view")
def _sliding_window_view(x: Array, window_shape: Any, axis: Any = None) -> Any:
    """The elements from every place on, in a new last axis; NumPy's view is read-only too."""
    spans = tuple(window_shape) if np.iterable(window_shape) else (window_shape,)
    given = range(x.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = [views.axis_of(d, x.ndim) for d in given]
    if len(spans) != len(axes):
        raise ValueRangeError("Must provide matching length window_shape and axis", got=str(spans))
    made: Any = x
    for span, d in zip(spans, axes, strict=True):
        count = made.shape[d] - span + 1
        if span < 1 or count < 1:
            raise ValueRangeError(
                "window shape cannot be larger than input array shape", got=str(spans),
                expected=f"1 to {made.shape[d]}", operand="window_shape",
            )  # fmt: skip
        every = [made[(slice(None),) * d + (slice(k, k + count),)] for k in range(span)]
        made = np.stack(every, -1)
    result: Any = made
    return views.read_only(result, "np.lib.stride_tricks.sliding_window_view")


def _shifted(sign: int) -> Any:
    def shift(x: Array, axes: Any = None) -> Any:
        places = views.axes_of(axes, x.ndim)
        by = [x.shape[d] // 2 if sign > 0 else -(x.shape[d] // 2) for d in places]
        return np.roll(x, by, places)

    return shift


implements("fft.fftshift")(_shifted(1))
implements("fft.ifftshift")(_shifted(-1))


@implements("imag")
def _imag(val: Array) -> Any:
    """Real numbers have none."""
    return np.zeros_like(val)


@implements("linalg.matrix_power")
def _matrix_power(a: Array, n: Any) -> Any:
    """Products of the powers 1, 2, 4, ... that n contains."""
    count = resolved("np.linalg.matrix_power", lambda: index(n))
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueRangeError("Last 2 dimensions of the array must be square", got=str(a.spec))
    if count < 0:
        raise ValueRangeError(
            "np.linalg.matrix_power: n < 0 needs an inverse", got=str(count), expected="n >= 0"
        )
    if not count:
        return np.zeros_like(a) + np.eye(a.shape[-1], dtype=a.dtype)
    power, made = a, None
    while count:
        if count & 1:
            made = power if made is None else made @ power
        count >>= 1
        power = power @ power if count else power
    return made


@implements("linalg.matrix_norm")
def _matrix_norm(x: Array, keepdims: bool = False, ord: Any = "fro") -> Any:
    return np.linalg.norm(x, ord, (-2, -1), keepdims)
