"""Along axes: sums, products, extremes, their places; and matrix products."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import prod
from typing import Any

import numpy as np

from nki_dtypes import DType, int32
from nki_dtypes import Kind as NumberKind
from nkigen_lite.ops._formula import Expr
from nkigen_lite.ops._record import (
    BOOL,
    DTYPE,
    INT,
    INTS,
    Engine,
    EngineOp,
    ErrorBound,
    Kind,
    Meaning,
    Op,
    given_dtype,
    mismatch,
    of_kinds,
    same_dtype,
)
from nkigen_lite.tensors.spec import Shape

_NUMBER = (NumberKind.FLOAT, NumberKind.INT, NumberKind.UINT)


def _reduced(shapes: tuple[Shape, ...], attrs: Mapping[str, Any]) -> Shape:
    (shape,), axes = shapes, attrs["axes"]
    if list(axes) != sorted(set(axes)) or any(not 0 <= a < len(shape) for a in axes):
        raise mismatch(f"axes {axes}", expected=f"ascending axes from 0 to {len(shape) - 1}")
    if attrs["keepdims"]:
        return tuple(1 if d in axes else n for d, n in enumerate(shape))
    return tuple(n for d, n in enumerate(shape) if d not in axes)


def _reduced_not_empty(shapes: tuple[Shape, ...], attrs: Mapping[str, Any]) -> Shape:
    if any(shapes[0][a] == 0 for a in attrs["axes"] if a < len(shapes[0])):
        raise mismatch("nothing to reduce along an axis of no elements")
    return _reduced(shapes, attrs)


def _place_shape(shapes: tuple[Shape, ...], attrs: Mapping[str, Any]) -> Shape:
    axes = {"axes": (attrs["axis"],), "keepdims": attrs["keepdims"]}
    return _reduced_not_empty(shapes, axes)


def _reduce(function: Meaning, x: np.ndarray, axes: Shape, keepdims: bool) -> np.ndarray:
    """Integers stay in their own type, modulo its range."""
    dtype = {"dtype": x.dtype} if x.dtype.kind in "iu" and function in (np.sum, np.prod) else {}
    return function(x, axis=axes, keepdims=keepdims, **dtype)


def _place(function: Meaning, x: np.ndarray, axis: int, keepdims: bool) -> np.ndarray:
    return function(x, axis=axis, keepdims=keepdims).astype(np.int32)


def _bool_only(dtypes: tuple[DType, ...], attrs: Mapping[str, Any]) -> DType:
    return of_kinds(NumberKind.BOOL)(dtypes, attrs)


def _place_dtype(dtypes: tuple[DType, ...], attrs: Mapping[str, Any]) -> DType:
    return int32


_AXES = {"axes": INTS, "keepdims": BOOL}
_AXIS = {"axis": INT, "keepdims": BOOL}


def _reduction(
    name: str, function: Meaning, dtype: Any, engine: str = "", empty: bool = True, **fields: Any
) -> Op:
    shape = _reduced if empty else _reduced_not_empty
    return Op(
        name, Kind.reduce, ("x",), partial(_reduce, function), shape, dtype, _AXES,
        engine=EngineOp(Engine.reduction, engine) if engine else None, **fields,
    )  # fmt: skip


def _mean(x: Expr, axes: Shape, keepdims: bool) -> Expr:
    total = x.call("sum", axes=axes, keepdims=keepdims)
    return total * (1.0 / prod(x.shape[a] for a in axes))


def _any(x: Expr, **axes: Any) -> Expr:
    return x.call("max", **axes) > 0.0


def _all(x: Expr, **axes: Any) -> Expr:
    return x.call("min", **axes) > 0.0


def _any_dtype(dtypes: tuple[DType, ...], attrs: Mapping[str, Any]) -> DType:
    return of_kinds(*_NUMBER, NumberKind.BOOL)(dtypes, attrs)


REDUCTIONS: tuple[Op, ...] = (
    _reduction("sum", np.sum, of_kinds(*_NUMBER), "add", is_modular=True, error=ErrorBound(8)),
    _reduction(
        "prod", np.prod, of_kinds(*_NUMBER), "multiply", is_modular=True, error=ErrorBound(16)
    ),
    _reduction(
        "mean", np.mean, of_kinds(NumberKind.FLOAT), decomposition=_mean, error=ErrorBound(8)
    ),
    _reduction("max", np.max, _any_dtype, "maximum", empty=False, error=ErrorBound(0, 0)),
    _reduction("min", np.min, _any_dtype, "minimum", empty=False, error=ErrorBound(0, 0)),
    _reduction("any", np.any, _bool_only, decomposition=_any),
    _reduction("all", np.all, _bool_only, decomposition=_all),
    Op(
        "argmax", Kind.reduce, ("x",), partial(_place, np.argmax), _place_shape, _place_dtype, _AXIS
    ),
    Op(
        "argmin", Kind.reduce, ("x",), partial(_place, np.argmin), _place_shape, _place_dtype, _AXIS
    ),
)


def _product_shape(shapes: tuple[Shape, ...], attrs: Mapping[str, Any]) -> Shape:
    a, b = shapes
    if len(a) < 2 or len(b) < 2:
        raise mismatch("an operand has fewer than two axes", expected="(…, M, K) and (…, K, N)")
    if a[-1] != b[-2]:
        raise mismatch(f"{a[-1]} columns meet {b[-2]} rows", expected="(…, M, K) and (…, K, N)")
    try:
        return (*np.broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-1])
    except ValueError:
        raise mismatch("batch axes do not broadcast") from None


def _product_dtype(dtypes: tuple[DType, ...], attrs: Mapping[str, Any]) -> DType:
    dtype = same_dtype(dtypes, attrs)
    if dtype.kind not in _NUMBER:
        raise mismatch(f"{dtype} operands", expected="numbers")
    if dtype.is_integer and attrs["dtype"] is not dtype:
        raise mismatch(f"{dtype} gives {dtype}", expected=f"dtype={dtype}")
    if dtype.is_float and not attrs["dtype"].is_float:
        raise mismatch(f"{dtype} gives {attrs['dtype']}", expected="a float dtype")
    return given_dtype(dtypes, attrs)


def _matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.matmul(a, b)


MATMUL = Op(
    "matmul", Kind.matmul, ("a", "b"), _matmul, _product_shape, _product_dtype,
    {"dtype": DTYPE}, frozenset({"dtype"}), is_modular=True,
)  # fmt: skip
"""(…, M, K) by (…, K, N), summed in float32 and rounded once to `dtype`."""
