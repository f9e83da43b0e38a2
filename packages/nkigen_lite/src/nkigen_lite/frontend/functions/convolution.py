"""Convolutions and pooling, which NumPy lacks: on traced arrays and on NumPy's own alike.

Images are (N, C, *axes), or with `layout="NHWC"` (N, *axes, C); kernels (O, C / groups, *axes) in
either layout. Numbers given once count for every axis; `padding` may be (low, high) of each axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod
from typing import Any

import numpy as np

from nkigen_lite.frontend.arrays.array import Array, TracedArray
from nkigen_lite.frontend.arrays.promotion import fresh, tape_of, traced
from nkigen_lite.frontend.arrays.registry import implements
from nkigen_lite.ops import OPS
from nkigen_lite.tensors.errors import ArgumentError, BroadcastError, ValueRangeError

Numbers = int | Sequence[Any]


def conv1d(x: Any, w: Any, bias: Any = None, **options: Any) -> Any:
    """Windows of rows: (N, C, W) by (O, C / groups, Kw). Options as of `conv2d`."""
    return _convolution(1, x, w, bias, **options)


def conv2d(x: Any, w: Any, bias: Any = None, **options: Any) -> Any:
    """Windows of images: (N, C, H, W) by (O, C / groups, Kh, Kw), correlated as torch does.

    Options: `strides` 1, `padding` 0, `dilation` 1, `groups` 1, `layout` "NCHW" or "NHWC". Sums are
    in float32, rounded once. `bias` is (O,).
    """
    return _convolution(2, x, w, bias, **options)


def conv3d(x: Any, w: Any, bias: Any = None, **options: Any) -> Any:
    """Windows of volumes: (N, C, D, H, W) by (O, C / groups, Kd, Kh, Kw). Options as of
    `conv2d`."""
    return _convolution(3, x, w, bias, **options)


def max_pool(x: Any, window: Numbers, strides: Numbers | None = None, padding: Numbers = 0,
             layout: str = "NCHW") -> Any:  # fmt: skip
    """The largest element of each window; `strides` is the window unless given."""
    rows = _channels_first(x, layout)
    places = _Places(rows.ndim - 2, window, strides or window, padding, 1)
    if places.is_cut_up(rows.shape[2:]):
        made = places.blocks(rows).max(tuple(range(3, 2 * rows.ndim - 2, 2)))
    else:
        parts = places.shifted(places.padded(rows, -inf))
        made = parts[0]
        for part in parts[1:]:
            made = np.maximum(made, part)
    return _channels_back(made, layout)


def avg_pool(x: Any, window: Numbers, strides: Numbers | None = None, padding: Numbers = 0,
             layout: str = "NCHW") -> Any:  # fmt: skip
    """The mean of each window, zeros around the image counted."""
    rows = _channels_first(x, layout)
    places = _Places(rows.ndim - 2, window, strides or window, padding, 1)
    made: Any
    if places.is_cut_up(rows.shape[2:]):
        made = places.blocks(rows).mean(tuple(range(3, 2 * rows.ndim - 2, 2)))
    else:
        made = sum(places.shifted(places.padded(rows, 0))) * (1.0 / prod(places.window))
    return _channels_back(made.astype(rows.dtype), layout)


@implements("convolve")
def _convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    """`np.convolve` of floats."""
    tape = tape_of(a, v)
    long, short = sorted((traced(tape, a), traced(tape, v)), key=lambda x: -x.size)
    if long.ndim != 1 or short.ndim != 1 or not short.size:
        raise ValueRangeError("np.convolve takes two arrays of one axis that have elements")
    dtype = np.result_type(long.dtype, short.dtype)
    if dtype.kind != "f":
        raise ArgumentError(
            "np.convolve of integers is not translated", hint="convert them: x.astype(np.float32)"
        )
    n = short.size - 1
    sides = {"full": (n, n), "same": (n - n // 2, n // 2), "valid": (0, 0)}
    if mode not in sides:
        raise ValueRangeError("mode must be one of 'full', 'same', 'valid'", got=repr(mode))
    row, kernel = long.astype(dtype)[None, None], short.astype(dtype)[::-1][None, None]
    return conv1d(row, kernel, padding=[sides[mode]])[0, 0]


# ----------------------------------------------------------------------------------- places


def _of_axes(given: Any, rank: int, name: str) -> tuple[Any, ...]:
    values = (given,) * rank if isinstance(given, int) else tuple(given)
    if len(values) != rank:
        raise ArgumentError(f"{name}={given!r}", expected=f"one number, or {rank}", operand=name)
    return values


class _Places:
    """Where a window is put on each axis."""

    def __init__(self, rank: int, window: Any, strides: Any, padding: Any, dilation: Any) -> None:
        self.window = _of_axes(window, rank, "window")
        self.strides = _of_axes(strides, rank, "strides")
        self.dilation = _of_axes(dilation, rank, "dilation")
        sides = _of_axes(padding, rank, "padding")
        self.sides = [(s, s) if isinstance(s, int) else tuple(s) for s in sides]
        every = (*self.window, *self.strides, *self.dilation)
        if min(every) < 1 or min(n for s in self.sides for n in s) < 0:
            raise ValueRangeError("a window, its strides and dilation are at least 1, padding 0")

    def is_cut_up(self, image: tuple[int, ...]) -> bool:
        """Whether windows are the image cut into blocks."""
        plain = not any(n for s in self.sides for n in s) and set(self.dilation) == {1}
        whole = all(n % w == 0 for n, w in zip(image, self.window, strict=True))
        return plain and whole and self.strides == self.window

    def blocks(self, x: Any) -> Any:
        """(N, C, places, window, places, window, …)."""
        pairs = zip(x.shape[2:], self.window, strict=True)
        shape = [n for size, w in pairs for n in (size // w, w)]
        return x.reshape((*x.shape[:2], *shape))

    def padded(self, x: Any, number: float) -> Any:
        sides = [(0, 0), (0, 0), *self.sides]
        return np.pad(x, sides, constant_values=number) if any(map(sum, sides)) else x

    def sizes(self, image: tuple[int, ...]) -> tuple[int, ...]:
        """Places on each axis of an image without padding. Raises ValueRangeError for none."""
        axes = zip(image, self.window, self.strides, self.dilation, strict=True)
        found = tuple((n - (w - 1) * d - 1) // s + 1 for n, w, s, d in axes)
        if min(found) < 1:
            raise ValueRangeError(
                "the window is larger than the padded image", got=f"{self.window} of {image}",
                hint="pad more, or take a smaller window",
            )  # fmt: skip
        return found

    def shifted(self, x: Any) -> list[Any]:
        """For each element of the window: what is there in all places."""
        sizes = self.sizes(x.shape[2:])
        axes = list(zip(sizes, self.strides, self.dilation, strict=True))
        return [
            x[(slice(None), slice(None), *(
                slice(i * d, i * d + (n - 1) * s + 1, s)
                for i, (n, s, d) in zip(at, axes, strict=True)
            ))]
            for at in np.ndindex(*self.window)
        ]  # fmt: skip


def _channels_first(x: Any, layout: str) -> Any:
    if layout not in ("NCHW", "NHWC"):
        raise ValueRangeError(f"layout={layout!r}", expected="'NCHW' or 'NHWC'", operand="layout")
    return x if layout == "NCHW" else np.moveaxis(x, -1, 1)


def _channels_back(x: Any, layout: str) -> Any:
    return x if layout == "NCHW" else np.moveaxis(x, 1, -1)


# ----------------------------------------------------------------------------- convolutions


def _convolution(
    rank: int, x: Any, w: Any, bias: Any, strides: Numbers = 1, padding: Numbers = 0,
    dilation: Numbers = 1, groups: int = 1, layout: str = "NCHW",
) -> Any:  # fmt: skip
    images = _channels_first(x, layout)
    _check(rank, images, w, bias, groups)
    places = _Places(rank, w.shape[2:], strides, padding, dilation)
    places.sizes(tuple(n + sum(s) for n, s in zip(images.shape[2:], places.sides, strict=True)))
    if places.is_cut_up(images.shape[2:]) and groups == 1:
        made = _of_blocks(images, w, bias, places)
    elif rank == 3:
        made = _of_frames(images, w, bias, places, groups)
    else:
        made = _grouped(images, w, bias, places, groups)
    return _channels_back(made, layout)


def _check(rank: int, x: Any, w: Any, bias: Any, groups: int) -> None:
    if x.ndim != rank + 2 or w.ndim != rank + 2:
        raise BroadcastError(
            f"conv{rank}d takes images and kernels of {rank + 2} axes",
            got=f"{x.shape} and {w.shape}",
        )
    if groups < 1 or any(n % groups for n in (x.shape[1], w.shape[0])):
        raise ValueRangeError(
            f"groups={groups} does not divide {x.shape[1]} and {w.shape[0]} channels",
            operand="groups",
        )
    of_bias = w.shape[:1] if bias is None else bias.shape
    if (x.shape[1], of_bias) != (w.shape[1] * groups, w.shape[:1]):
        raise BroadcastError(
            f"{w.shape} kernels do not take {x.shape[1]} channels in {groups} groups",
            expected=f"kernels (O, {x.shape[1] // groups}, …) and a bias (O,)",
        )
    if x.dtype.kind in "iub" or x.dtype != w.dtype:
        raise ArgumentError(
            "convolutions are of floats of one dtype", got=f"{x.dtype} and {w.dtype}",
            hint="convert them: x.astype(np.float32)",
        )  # fmt: skip


def _of_blocks(x: Any, w: Any, bias: Any, places: _Places) -> Any:
    """Windows beside each other: one product of matrices."""
    blocks, rank = places.blocks(x), x.ndim - 2
    order = (0, *range(2, 2 * rank + 2, 2), 1, *range(3, 2 * rank + 2, 2))
    sizes = (x.shape[0], *blocks.shape[2 : 2 * rank + 2 : 2])
    rows = np.transpose(blocks, order).reshape((prod(sizes), prod(w.shape[1:])))
    made = np.matmul(rows, w.reshape((w.shape[0], prod(w.shape[1:]))).T)
    made = made if bias is None else made + bias
    if prod(sizes[1:]) == 1:
        return made.reshape((sizes[0], w.shape[0], *sizes[1:]))
    return np.moveaxis(made.reshape((*sizes, w.shape[0])), -1, 1)


def _of_frames(x: Any, w: Any, bias: Any, places: _Places, groups: int) -> Any:
    """Each frame with the frames that its windows reach, as channels of an image."""
    padded = np.pad(x, [(0, 0), (0, 0), places.sides[0], (0, 0), (0, 0)])
    depth = _Places(1, w.shape[2:3], places.strides[:1], 0, places.dilation[:1])
    n, channels, _, *image = padded.shape
    count = depth.sizes((padded.shape[2],))[0]
    taps = [
        padded[:, :, i * depth.dilation[0] :][:, :, : (count - 1) * depth.strides[0] + 1][
            :, :, :: depth.strides[0]
        ]
        for i in range(w.shape[2])
    ]
    frames = np.moveaxis(np.stack(taps, 2), 3, 1)  # (N, frames, C, taps, H, W)
    frames = frames.reshape((n * count, channels * w.shape[2], *image))
    kernels = w.reshape((w.shape[0], w.shape[1] * w.shape[2], *w.shape[3:]))
    flat = _Places(2, w.shape[3:], places.strides[1:], places.sides[1:], places.dilation[1:])
    made = _grouped(frames, kernels, bias, flat, groups)
    return np.moveaxis(made.reshape((n, count, *made.shape[1:])), 1, 2)


def _grouped(x: Any, w: Any, bias: Any, places: _Places, groups: int) -> Any:
    """Images of one or two axes."""
    is_row = x.ndim == 3
    if is_row:
        x, w = x[:, :, None], w[:, :, None]
        places = _Places(2, w.shape[2:], (1, *places.strides), (0, *places.sides),
                         (1, *places.dilation))  # fmt: skip
    bias = np.zeros(w.shape[0], np.float32) if bias is None else bias.astype(np.float32)
    if groups == w.shape[0] == x.shape[1]:
        made = _apply("depthwise_convolution", x, w[:, 0].astype(np.float32), bias, places)
    else:
        inputs, outputs = x.shape[1] // groups, w.shape[0] // groups
        parts = [
            _apply("convolution", x[:, g * inputs : (g + 1) * inputs],
                   w[g * outputs : (g + 1) * outputs], bias[g * outputs : (g + 1) * outputs],
                   places)
            for g in range(groups)
        ]  # fmt: skip
        made = np.concatenate(parts, 1) if groups > 1 else parts[0]
    return made[:, :, 0] if is_row else made


def _apply(op: str, x: Any, w: Any, bias: Any, places: _Places) -> Any:
    attrs: dict[str, Any] = {
        "strides": places.strides, "dilation": places.dilation,
        "padding": tuple(n for side in places.sides for n in side),
    }  # fmt: skip
    if not any(isinstance(a, TracedArray) for a in (x, w, bias)):
        wide = tuple(a.astype(np.float64) for a in (x, w, bias))
        return OPS[op].compute(wide, attrs).astype(x.dtype)
    tape = tape_of(x, w, bias)
    values = [traced(tape, a).value for a in (x, w, bias)]
    made: Array = fresh(tape, tape.emit(op, *values, **attrs), x.dtype)
    return made
