"""NumPy's universal functions on traced arrays."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np

from nki_dtypes import DType, bool_, int32, uint32
from nkigen_lite.frontend.arrays.arguments import called
from nkigen_lite.frontend.arrays.array import TracedArray
from nkigen_lite.frontend.arrays.promotion import (
    as_value,
    asked_dtype,
    cast_value,
    dtype_of,
    fresh,
    narrowed,
    operand,
    resolved,
    shape_of,
)
from nkigen_lite.frontend.arrays.registry import NAMES, UFUNCS, suggestion
from nkigen_lite.frontend.arrays.tape import Tape
from nkigen_lite.frontend.functions.linear_algebra import outer_of
from nkigen_lite.frontend.functions.out_arguments import broadcast_into
from nkigen_lite.frontend.functions.reduction_options import REDUCE
from nkigen_lite.frontend.functions.reductions import accumulated
from nkigen_lite.frontend.indexing.subscripts import add_at_keys
from nkigen_lite.ops import OPS, Op
from nkigen_lite.tensors.errors import (
    BroadcastError,
    UnsupportedFunctionError,
    UnsupportedKeywordError,
    ValueRangeError,
)

# uint32 beside signed integers: NumPy computes in int64, here are 32 bits and what is below 0.


_BEYOND = {  # operation → what a comparison with a number above, below the array's range gives
    "equal": (False, False), "not_equal": (True, True), "less": (True, False),
    "less_equal": (True, False), "greater": (False, True), "greater_equal": (False, True),
}  # fmt: skip
_INT64 = (np.dtype(np.int64), np.dtype(np.uint64))


def _are_mixed(given: tuple[Any, ...], takes: list[np.dtype]) -> bool:
    """Whether NumPy takes 64 bits because one operand is uint32 here and the other signed."""
    if len(given) != 2 or any(t not in _INT64 for t in takes):
        return False
    unsigned = [isinstance(x, TracedArray) and x.spec.dtype is uint32 for x in given]
    return sum(unsigned) == 1 and _is_signed(given[unsigned.index(False)])


def _is_signed(x: Any) -> bool:
    return not isinstance(dtype_of(x), type) and dtype_of(x).kind == "i"


def _compare_mixed(tape: Tape, op: str, given: tuple[Any, ...]) -> TracedArray:
    """The bits compared as uint32; what is below 0, or above 2³² - 1, is so for every uint32."""
    signed = next(n for n, x in enumerate(given) if _is_signed(x))
    other = given[1 - signed]
    above, below = _BEYOND[op if signed == 1 else OPS[op].mirrored or op]
    bits, is_below, is_above = _parts(tape, given[signed])
    pair = (other.value, bits) if signed == 1 else (bits, other.value)
    answer = tape.emit(op, *pair)
    for known, truth in ((is_below, below), (is_above, above)):
        if known is not None:
            answer = tape.emit("where", known, tape.fill(truth, bool_), answer)
    return fresh(tape, answer, np.dtype(bool), given)


def _parts(tape: Tape, x: Any) -> tuple[str, str | None, str | None]:
    """The low 32 bits; whether it is below 0; whether it is above 2³² - 1 (None: nowhere)."""
    if isinstance(x, TracedArray):
        below = tape.emit("less", x.value, tape.fill(0, x.spec.dtype))
        return cast_value(tape, x.value, uint32), below, None
    array = np.asarray(x)
    beyond = [
        tape.constant(truth, bool_) if truth.any() else None
        for truth in (array < 0, array > uint32.max)
    ]
    return tape.constant(array.astype(np.uint32), uint32), beyond[0], beyond[1]


def _mixed_power(tape: Tape, op: str, given: tuple[Any, ...]) -> TracedArray:
    """The low 32 bits of a power depend on the base's low 32 bits and the exponent alone."""
    base = cast_value(tape, as_value(tape, given[0], np.dtype(np.int64), "multiply"), uint32)
    exponent = as_value(tape, given[1], np.dtype(np.uint32), "np.power")
    value = cast_value(tape, tape.emit(op, base, exponent), int32)
    return fresh(tape, value, np.dtype(np.int64), given)


_MIXED = {**dict.fromkeys(_BEYOND, _compare_mixed), "power": _mixed_power}


# ----------------------------------------------------------------- __array_ufunc__


_OPERATIONS: dict[np.ufunc, Op] = {
    getattr(np, name): op for op in OPS.values() for name in op.numpy
}
"""The universal functions that are one operation of the graph."""

_LOGICAL = frozenset({"logical_and", "logical_or", "logical_xor", "logical_not"})
_WHOLE = frozenset({"floor", "ceil", "rint", "trunc"})  # nothing to do for integers


NAMES.update(ufunc.__name__ for ufunc in _OPERATIONS)


def call_ufunc(
    self: TracedArray, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any
) -> Any:
    """`__array_ufunc__` of traced arrays."""
    tape, name = self.tape, ufunc.__name__
    if method != "__call__":
        return _method(ufunc, method, inputs, keywords)
    keywords = {k: v for k, v in keywords.items() if not _is_default(k, v)}
    out = keywords.pop("out", (None,))
    dtype = keywords.pop("dtype", None)
    where = keywords.pop("where", True)
    if where is not True and out[0] is None:
        raise UnsupportedKeywordError(
            f"np.{name}: where= without out= leaves elements without values", operand="where",
            hint="np.where(mask, …, other), or out=",
        )  # fmt: skip
    for keyword in keywords:
        raise UnsupportedKeywordError(f"np.{name}: {keyword}= is not translated", operand=keyword)
    given = tuple(map(operand, inputs))
    if dtype is not None and ufunc in UFUNCS:
        raise UnsupportedKeywordError(
            f"np.{name}: dtype= is not translated", hint="convert the operands with .astype"
        )
    composed = UFUNCS.get(ufunc)
    result = composed(tape, given) if composed else _plain(tape, ufunc, given, dtype)
    return result if out[0] is None else _into(out, result, name, where)


def _into(out: tuple[Any, ...], result: Any, name: str, where: Any) -> Any:
    """Writes to the arrays of `out=`."""
    if isinstance(result, tuple):
        return tuple(broadcast_into(*p, name, where) for p in zip(out, result, strict=True))
    return broadcast_into(out[0], result, name, where)


_DEFAULTS = (
    ("where", True), ("casting", "same_kind"), ("order", "K"), ("subok", True), ("dtype", None),
    ("out", None), ("signature", None),
)  # fmt: skip


def _is_default(keyword: str, value: Any) -> bool:
    plain = value is None or isinstance(value, (bool, str))
    return any(k == keyword and (v is value or (plain and v == value)) for k, v in _DEFAULTS)


def _plain(tape: Tape, ufunc: np.ufunc, given: tuple[Any, ...], dtype: Any = None) -> TracedArray:
    """One operation, its operands in the types that NumPy resolves, for results of `dtype`."""
    record = _OPERATIONS.get(ufunc)
    if record is None:
        raise UnsupportedFunctionError(
            f"np.{ufunc.__name__} is not translated",
            hint=suggestion(ufunc.__name__),
        )
    op = record.name
    _check_shapes(ufunc.__name__, given)
    kinds = (*map(dtype_of, given), *(None,) * ufunc.nout)
    asked = None if dtype is None else asked_dtype(dtype)[0]
    signature = (*(None,) * ufunc.nin, asked)
    *takes, makes = resolved(
        f"np.{ufunc.__name__}", lambda: ufunc.resolve_dtypes(kinds, signature=signature)
    )
    known = _out_of_range(tape, record, given, takes) if op in _BEYOND else None
    if known is not None:
        return known
    if op == "power" and takes[0].kind in "iub":
        _check_exponent(given[1])
    if op in _MIXED and _are_mixed(given, takes):
        return _MIXED[op](tape, op, given)
    values = [as_value(tape, x, t, op) for x, t in zip(given, takes, strict=True)]
    return fresh(tape, _operation(tape, op, values, makes), makes, given)


def _operation(tape: Tape, op: str, values: list[str], makes: np.dtype) -> str:
    dtype = tape.spec(values[0]).dtype
    if not dtype.is_float:
        if op in _WHOLE or (op == "abs" and dtype is bool_):
            return values[0]
        if op == "reciprocal" and dtype is not bool_:
            return _whole_reciprocal(tape, values[0], dtype)
    if op in _LOGICAL:
        values = [cast_value(tape, v, bool_) for v in values]
    value = tape.emit(_operation_on(dtype, op), *values)
    return cast_value(tape, value, narrowed(makes))


def _operation_on(dtype: DType, op: str) -> str:
    return OPS[op].on_bool or op if dtype is bool_ else op


def _whole_reciprocal(tape: Tape, x: str, dtype: DType) -> str:
    """1 / x without its fraction: ±1 of ±1, else 0."""
    size = tape.emit("abs", x) if dtype.min < 0 else x
    is_one = tape.emit("equal", size, tape.fill(1, dtype))
    return tape.emit("where", is_one, x, tape.fill(0, dtype))


def _check_shapes(name: str, given: tuple[Any, ...]) -> None:
    try:
        np.broadcast_shapes(*map(shape_of, given))
    except ValueError:
        shapes = " and ".join(str(shape_of(x)) for x in given)
        raise BroadcastError(
            f"np.{name}: operands could not be broadcast together",
            got=shapes,
            expected="equal lengths from the last axis on, or 1",
            hint="add axes of one element where they belong: x[:, None]",
        ) from None


def _out_of_range(
    tape: Tape, record: Op, given: tuple[Any, ...], takes: list[np.dtype]
) -> TracedArray | None:
    """A comparison with a Python integer outside the other's type, whose result is constant."""
    for number, x in enumerate(given):
        if type(x) is int and takes[number].kind in "iu":
            info = np.iinfo(takes[number])
            if not info.min <= x <= info.max:
                seen = record.name if number == 1 else record.mirrored or record.name
                above, below = _BEYOND[seen]
                shape = np.broadcast_shapes(*map(shape_of, given))
                answer = tape.fill(above if x > info.max else below, bool_, shape)
                return fresh(tape, answer, np.dtype(bool), given)
    return None


def _check_exponent(exponent: Any) -> None:
    """Of an exponent that is not known here, NumPy's error cannot be raised: powers of integers to
    negative integers have no meaning in the kernel."""
    if not isinstance(exponent, TracedArray) and np.any(np.asarray(exponent) < 0):
        raise ValueRangeError("Integers to negative integer powers are not allowed.")


def _method(ufunc: np.ufunc, method: str, inputs: Any, keywords: dict[str, Any]) -> Any:
    """`np.add.reduce` and its kin."""
    if method == "reduce":
        return _reduce(ufunc, inputs, keywords)
    if method == "at" and ufunc is np.add and not keywords:
        return add_at_keys(*inputs)
    keywords = {k: v for k, v in keywords.items() if not _is_default(k, v)}
    if method == "outer" and not keywords:
        return outer_of(ufunc, inputs)
    if method == "accumulate" and keywords.keys() <= {"axis", "dtype"}:
        return accumulated(ufunc, *inputs, **keywords)
    raise UnsupportedFunctionError(f"np.{ufunc.__name__}.{method} is not translated")


def _reduce(ufunc: np.ufunc, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """`np.add.reduce(x, axis=0)` is np.sum."""
    if ufunc not in REDUCE:
        raise UnsupportedFunctionError(
            f"np.{ufunc.__name__}.reduce is not translated",
            expected=", ".join(f"np.{u.__name__}.reduce" for u in REDUCE),
        )
    array, *rest = inputs
    keywords = dict(zip(("axis", "dtype", "out", "keepdims"), rest, strict=False)) | keywords
    if isinstance(keywords.get("out"), tuple):
        (keywords["out"],) = keywords["out"]
    keywords = {k: v for k, v in keywords.items() if not _is_default(k, v)}
    name, like_sum = f"np.{ufunc.__name__}.reduce", signature(np.sum)
    return called(REDUCE[ufunc], name, like_sum, (array,), {"axis": 0, **keywords})
