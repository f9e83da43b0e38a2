"""Sums of products over windows of images: channels together, or each on its own."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from nki_dtypes import DType, float32
from nkigen_lite.ops._record import INTS, ErrorBound, Kind, Op, mismatch, same_dtype
from nkigen_lite.tensors.spec import Shape


def output_sizes(image: Shape, kernel: Shape, attrs: Mapping[str, Any]) -> Shape:
    """Places of the kernel along each axis."""
    padding, axes = attrs["padding"], range(len(image))
    spans = [(kernel[d] - 1) * attrs["dilation"][d] + 1 for d in axes]
    return tuple(
        (image[d] + padding[2 * d] + padding[2 * d + 1] - spans[d]) // attrs["strides"][d] + 1
        for d in axes
    )


def _shape(shapes: tuple[Shape, ...], attrs: Mapping[str, Any], is_depthwise: bool) -> Shape:
    x, w, bias = shapes
    if len(x) != 4 or len(w) != (3 if is_depthwise else 4) or bias != w[:1]:
        raise mismatch("operands of another rank", expected="(N, C, H, W), a kernel, a bias")
    if x[1] != w[0 if is_depthwise else 1]:
        raise mismatch(f"a kernel of {w} for {x[1]} channels")
    sizes = output_sizes(x[2:], w[-2:], attrs)
    if min(sizes) < 1:
        raise mismatch("the kernel is larger than the padded image")
    return (x[0], w[0], *sizes)


def _dtype(dtypes: tuple[DType, ...], attrs: Mapping[str, Any]) -> DType:
    if dtypes[2] is not float32:
        raise mismatch(f"a bias of {dtypes[2]}", expected="float32")
    return same_dtype(dtypes[:2], attrs)


def _depthwise_dtype(dtypes: tuple[DType, ...], attrs: Mapping[str, Any]) -> DType:
    if dtypes[1:] != (float32, float32):
        raise mismatch(f"a kernel of {dtypes[1]}, a bias of {dtypes[2]}", expected="float32")
    return dtypes[0]


def _windows(
    x: np.ndarray, kernel: Shape, strides: Shape, padding: Shape, dilation: Shape
) -> np.ndarray:  # fmt: skip
    """(N, C, *places, *kernel)."""
    sides = [(0, 0), (0, 0), *zip(padding[::2], padding[1::2], strict=True)]
    spans = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True))
    axes = tuple(range(2, x.ndim))
    every = np.lib.stride_tricks.sliding_window_view(np.pad(x, sides), spans, axes)
    steps = (slice(None, None, s) for s in (*strides, *dilation))
    return every[(slice(None), slice(None), *steps)]


def _convolve(formula: str, x: Any, w: Any, bias: Any, **attrs: Shape) -> np.ndarray:
    found = np.einsum(formula, _windows(x, w.shape[-2:], **attrs), w, optimize=True)
    return found + bias[:, None, None]


_ATTRS = {"strides": INTS, "padding": INTS, "dilation": INTS}

CONVOLUTIONS: tuple[Op, ...] = (
    Op(
        "convolution", Kind.indirect, ("x", "w", "bias"), partial(_convolve, "ncyxij,ocij->noyx"),
        partial(_shape, is_depthwise=False), _dtype, _ATTRS, error=ErrorBound(8),
    ),
    Op(
        "depthwise_convolution", Kind.indirect, ("x", "w", "bias"),
        partial(_convolve, "ncyxij,cij->ncyx"), partial(_shape, is_depthwise=True),
        _depthwise_dtype, _ATTRS, error=ErrorBound(8),
    ),
)  # fmt: skip
"""(N, C, H, W) by (O, C, Kh, Kw), or by (C, Kh, Kw) each channel with its own; `padding` is low and
high of each axis. Summed in float32 and rounded once."""
