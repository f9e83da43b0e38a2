"""Element by element: arithmetic, comparisons, logic, bits, choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nki_dtypes import DType, bool_
from nki_dtypes import Kind as NumberKind
from nkigen_lite.ops._record import (
    ANY,
    BITS,
    FLOAT_ONLY,
    NUMBER,
    Engine,
    EngineOp,
    ErrorBound,
    Kind,
    Meaning,
    Op,
    broadcast,
    elementwise,
    mismatch,
    of_kinds,
)

_BOOL = (NumberKind.BOOL,)
_EXACT = ErrorBound(0, 0)
_HALF_ULP = ErrorBound(0.5, 0.5)


def _alu(name: str) -> EngineOp:
    return EngineOp(Engine.alu, name)


def _bits(name: str, meaning: np.ufunc, **fields: Any) -> Op:
    engine = EngineOp(Engine.bits, name)
    return elementwise(name, meaning, BITS, "x", "y", numpy=(name,), engine=engine, **fields)


def _compares(name: str, meaning: Meaning, mirrored: str) -> Op:
    def dtype(dtypes: tuple[DType, ...], attrs: Mapping[str, Any]) -> DType:
        of_kinds(*ANY)(dtypes, attrs)
        return bool_

    return Op(
        name, Kind.elementwise, ("x", "y"), meaning, broadcast, dtype,
        numpy=(name,), engine=_alu(name), mirrored=mirrored,
    )  # fmt: skip


def _logical(name: str, meaning: np.ufunc) -> Op:
    return elementwise(name, meaning, _BOOL, "x", "y", numpy=(name,), engine=_alu(name))


def _wide(dtypes: tuple[DType, ...], attrs: Mapping[str, Any]) -> DType:
    dtype = of_kinds(*BITS)(dtypes, attrs)
    if dtype.bits != 32:
        raise mismatch(f"{dtype} operands", expected="int32 or uint32")
    return dtype


def _exact(name: str, meaning: np.ufunc) -> Op:
    """Arithmetic of 32-bit integers whose results need no more bits; only `decompose` makes it."""
    return Op(
        f"exact_{name}", Kind.elementwise, ("x", "y"), meaning, broadcast, _wide,
        engine=EngineOp(Engine.exact, name),
    )  # fmt: skip


def _where_dtype(dtypes: tuple[DType, ...], attrs: Mapping[str, Any]) -> DType:
    condition, first, second = dtypes
    if condition is not bool_:
        raise mismatch("the condition is not bool_", expected="bool_ first")
    if first is not second:
        raise mismatch("operands differ in dtype", expected=f"twice {first}")
    return first


ARITHMETIC: tuple[Op, ...] = (
    elementwise(
        "add", np.add, NUMBER, "x", "y", numpy=("add",), engine=_alu("add"), mirrored="add",
        is_commutative=True, is_modular=True, on_bool="logical_or", error=_HALF_ULP,
    ),
    elementwise(
        "subtract", np.subtract, NUMBER, "x", "y", numpy=("subtract",), engine=_alu("subtract"),
        is_modular=True, error=_HALF_ULP,
    ),
    elementwise(
        "multiply", np.multiply, NUMBER, "x", "y", numpy=("multiply",), engine=_alu("multiply"),
        mirrored="multiply", is_commutative=True, is_modular=True, on_bool="logical_and",
        error=_HALF_ULP,
    ),
    elementwise(
        "divide", np.divide, FLOAT_ONLY, "x", "y", numpy=("true_divide",),
        decomposition=lambda x, y: x * y.call("reciprocal"), error=ErrorBound(1.5),
    ),
    elementwise("power", np.power, NUMBER, "x", "y", numpy=("power",), error=ErrorBound(2)),
    elementwise(
        "floor_divide", np.floor_divide, NUMBER, "x", "y", numpy=("floor_divide",), error=_EXACT
    ),
    elementwise("mod", np.mod, NUMBER, "x", "y", numpy=("remainder",), error=_EXACT),
    elementwise("negative", np.negative, NUMBER, "x", numpy=("negative",), is_modular=True),
    elementwise("abs", np.abs, NUMBER, "x", numpy=("absolute",)),
    elementwise(
        "sign", np.sign, NUMBER, "x", numpy=("sign",), engine=EngineOp(Engine.activation, "sign")
    ),
    elementwise(
        "square", np.square, NUMBER, "x", numpy=("square",), is_modular=True, error=_HALF_ULP,
        engine=EngineOp(Engine.activation, "square"),
    ),
    _exact("add", np.add),
    _exact("subtract", np.subtract),
    _exact("multiply", np.multiply),
)  # fmt: skip

EXTREMES: tuple[Op, ...] = tuple(
    elementwise(
        name, meaning, ANY, "x", "y", numpy=(name,), engine=_alu(name), mirrored=name,
        is_commutative=True, error=_EXACT,
    )
    for name, meaning in (("maximum", np.maximum), ("minimum", np.minimum))
)  # fmt: skip

COMPARISONS: tuple[Op, ...] = (
    _compares("equal", np.equal, "equal"),
    _compares("not_equal", np.not_equal, "not_equal"),
    _compares("less", np.less, "greater"),
    _compares("less_equal", np.less_equal, "greater_equal"),
    _compares("greater", np.greater, "less"),
    _compares("greater_equal", np.greater_equal, "less_equal"),
)

LOGICAL: tuple[Op, ...] = (
    _logical("logical_and", np.logical_and),
    _logical("logical_or", np.logical_or),
    _logical("logical_xor", np.logical_xor),
)

LOGICAL_NOT = elementwise("logical_not", np.logical_not, _BOOL, "x", numpy=("logical_not",))

BITWISE: tuple[Op, ...] = (
    _bits("bitwise_and", np.bitwise_and, is_modular=True, on_bool="logical_and"),
    _bits("bitwise_or", np.bitwise_or, is_modular=True, on_bool="logical_or"),
    _bits("bitwise_xor", np.bitwise_xor, is_modular=True, on_bool="logical_xor"),
    _bits("left_shift", np.left_shift, is_modular=True),
    _bits("right_shift", np.right_shift),
    elementwise(
        "invert", np.invert, BITS, "x", numpy=("invert",), is_modular=True, on_bool="logical_not"
    ),
)

WHERE = Op(
    "where", Kind.select, ("condition", "x", "y"), np.where, broadcast, _where_dtype,
    is_modular=True, error=_EXACT,
)  # fmt: skip
