"""Element by element: arithmetic, functions, comparisons, logic, bits, choice, casts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from neuroncore.activations import ACTIVATIONS
from nki_dtypes import DType, bool_
from nki_dtypes import Kind as NumberKind
from nkigen_lite.ops.record import (
    DTYPE,
    Kind,
    Meaning,
    Op,
    broadcast,
    given_dtype,
    misfit,
    of_kinds,
)

_FLOAT, _NUMBER = (NumberKind.FLOAT,), (NumberKind.FLOAT, NumberKind.INT, NumberKind.UINT)
_BITS, _ANY = (NumberKind.INT, NumberKind.UINT), (*_NUMBER, NumberKind.BOOL)


def _elementwise(name: str, meaning: Meaning, kinds: tuple[NumberKind, ...], *operands: str) -> Op:
    return Op(name, Kind.elementwise, operands, meaning, broadcast, of_kinds(*kinds))


def _compares(name: str, meaning: Meaning) -> Op:
    def dtype(dtypes: tuple[DType, ...], attrs: Mapping[str, Any]) -> DType:
        of_kinds(*_ANY)(dtypes, attrs)
        return bool_

    return Op(name, Kind.elementwise, ("x", "y"), meaning, broadcast, dtype)


def _chosen_dtype(dtypes: tuple[DType, ...], attrs: Mapping[str, Any]) -> DType:
    condition, first, second = dtypes
    if condition is not bool_:
        raise misfit("the condition is not bool_", expected="bool_ first")
    if first is not second:
        raise misfit("operands differ in dtype", expected=f"twice {first}")
    return first


def _wide(dtypes: tuple[DType, ...], attrs: Mapping[str, Any]) -> DType:
    dtype = of_kinds(*_BITS)(dtypes, attrs)
    if dtype.bits != 32:
        raise misfit(f"{dtype} operands", expected="int32 or uint32")
    return dtype


def _narrower(dtypes: tuple[DType, ...], attrs: Mapping[str, Any]) -> DType:
    old, new = of_kinds(*_BITS)(dtypes, attrs), attrs["dtype"]
    if not new.is_integer or new.bits >= old.bits:
        raise misfit(f"the low bits of {old} as {new}", expected="a narrower integer")
    return given_dtype(dtypes, attrs)


def _rsqrt(x: np.ndarray) -> np.ndarray:
    return 1 / np.sqrt(x)


def _reciprocal(x: np.ndarray) -> np.ndarray:
    return 1 / x


def _in_float64(name: str) -> Meaning:
    """What an engine's table gives: exact, then rounded; its formula loses digits in float32."""
    function = ACTIVATIONS[name].function
    return lambda x: function(x.astype(np.float64))


def _cast(x: np.ndarray) -> np.ndarray:
    return x


_UNARY_FLOAT: dict[str, Meaning] = {
    "exp": np.exp, "log": np.log, "log1p": np.log1p, "expm1": np.expm1, "sqrt": np.sqrt,
    "rsqrt": _rsqrt, "reciprocal": _reciprocal, "sin": np.sin, "sin_reduced": np.sin,
    "cos": np.cos, "tanh": np.tanh,
    "floor": np.floor, "ceil": np.ceil, "rint": np.rint, "trunc": np.trunc,
    "sigmoid": _in_float64("sigmoid"), "silu": _in_float64("silu"),
    "gelu": _in_float64("gelu"), "erf": _in_float64("erf"),
}  # fmt: skip
_UNARY_NUMBER: dict[str, Meaning] = {
    "negative": np.negative, "abs": np.abs, "sign": np.sign, "square": np.square,
}  # fmt: skip
_BINARY_NUMBER: dict[str, Meaning] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "power": np.power,
    "floor_divide": np.floor_divide, "mod": np.mod,
}  # fmt: skip
_EXTREMES: dict[str, Meaning] = {"maximum": np.maximum, "minimum": np.minimum}
_COMPARISONS: dict[str, Meaning] = {
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
    "greater": np.greater, "greater_equal": np.greater_equal,
}  # fmt: skip
_EXACT: dict[str, Meaning] = {
    "exact_add": np.add, "exact_subtract": np.subtract, "exact_multiply": np.multiply,
}  # fmt: skip
_LOGICAL: dict[str, Meaning] = {
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
}  # fmt: skip
_BITWISE: dict[str, Meaning] = {
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "left_shift": np.left_shift, "right_shift": np.right_shift,
}  # fmt: skip

ELEMENTWISE: tuple[Op, ...] = (
    *(_elementwise(n, f, _FLOAT, "x") for n, f in _UNARY_FLOAT.items()),
    *(_elementwise(n, f, _NUMBER, "x") for n, f in _UNARY_NUMBER.items()),
    *(_elementwise(n, f, _NUMBER, "x", "y") for n, f in _BINARY_NUMBER.items()),
    *(_elementwise(n, f, _ANY, "x", "y") for n, f in _EXTREMES.items()),
    *(_elementwise(n, f, _BITS, "x", "y") for n, f in _BITWISE.items()),
    *(_elementwise(n, f, (NumberKind.BOOL,), "x", "y") for n, f in _LOGICAL.items()),
    *(_compares(n, f) for n, f in _COMPARISONS.items()),
    *(Op(n, Kind.elementwise, ("x", "y"), f, broadcast, _wide) for n, f in _EXACT.items()),
    _elementwise("divide", np.divide, _FLOAT, "x", "y"),
    _elementwise("invert", np.invert, _BITS, "x"),
    _elementwise("logical_not", np.logical_not, (NumberKind.BOOL,), "x"),
    Op("where", Kind.select, ("condition", "x", "y"), np.where, broadcast, _chosen_dtype),
    Op(
        "cast", Kind.elementwise, ("x",), _cast, broadcast, given_dtype,
        {"dtype": DTYPE}, frozenset({"dtype"}),
    ),
    Op(
        "convert", Kind.elementwise, ("x",), _cast, broadcast, given_dtype,
        {"dtype": DTYPE}, frozenset({"dtype"}),
    ),
    Op(
        "low_bits", Kind.elementwise, ("x",), _cast, broadcast, _narrower,
        {"dtype": DTYPE}, frozenset({"dtype"}),
    ),
)  # fmt: skip
"""`cast` is NumPy's astype: floats become integers by truncation, integers wrap. `convert` is the
machine's: floats are rounded to the nearest even integer, and everything saturates
(`nki_dtypes.cast`). `decompose` leaves only `convert`. Only `decompose` makes these: `sin_reduced`,
the sine of |x| ≤ π, the range of the engine's; `low_bits`, an integer modulo the range of a
narrower one; `exact_…`, arithmetic of 32-bit integers whose results need no more bits."""
