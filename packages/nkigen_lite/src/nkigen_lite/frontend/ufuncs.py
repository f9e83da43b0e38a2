"""NumPy's universal functions on traced arrays."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

from nki_dtypes import DType, bool_
from nkigen_lite.errors import (
    ArgumentError,
    BroadcastError,
    UnsupportedFunctionError,
    UnsupportedKeywordError,
    ValueRangeError,
)
from nkigen_lite.frontend import mixed
from nkigen_lite.frontend.array import TracedArray
from nkigen_lite.frontend.contracting import PRODUCTS, outer_of
from nkigen_lite.frontend.formulas import FORMULAS
from nkigen_lite.frontend.mixed import BEYOND, MIRRORED
from nkigen_lite.frontend.names import nearest
from nkigen_lite.frontend.promotion import (
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
from nkigen_lite.frontend.scanning import accumulated
from nkigen_lite.frontend.tape import Tape
from nkigen_lite.frontend.views import broadcast_to

# NumPy's names that differ from the operation's.
_OPERATIONS: dict[np.ufunc, str] = {
    np.true_divide: "divide",
    np.remainder: "mod",
    np.absolute: "abs",
    **{
        function: function.__name__
        for function in (
            np.add, np.subtract, np.multiply, np.floor_divide, np.power, np.maximum, np.minimum,
            np.negative, np.sign, np.square, np.exp, np.log, np.log1p, np.expm1, np.sqrt, np.sin,
            np.cos, np.tanh, np.floor, np.ceil, np.rint, np.trunc, np.reciprocal, np.equal,
            np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.bitwise_and,
            np.bitwise_or, np.bitwise_xor, np.invert, np.left_shift, np.right_shift,
            np.logical_and, np.logical_or, np.logical_xor, np.logical_not,
        )
    },
}  # fmt: skip

_LOGICAL = frozenset({"logical_and", "logical_or", "logical_xor", "logical_not"})
_WHOLE = frozenset({"floor", "ceil", "rint", "trunc"})  # nothing to do for integers
_OF_BOOL = {
    "bitwise_and": "logical_and", "bitwise_or": "logical_or", "bitwise_xor": "logical_xor",
    "invert": "logical_not", "add": "logical_or", "multiply": "logical_and",
}  # fmt: skip
"""What operations mean on bool."""


def call_ufunc(
    tape: Tape, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """`__array_ufunc__` of traced arrays."""
    name = ufunc.__name__
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
    given = tuple(operand(x) for x in inputs)
    if dtype is not None and ufunc in _COMPOSED:
        raise UnsupportedKeywordError(
            f"np.{name}: dtype= is not translated", hint="convert the operands with .astype"
        )
    composed = _COMPOSED.get(ufunc)
    result = composed(tape, given) if composed else _plain(tape, ufunc, given, dtype)
    if out[0] is None:
        return result
    if isinstance(result, tuple):
        return tuple(_broadcast_into(*p, name, where) for p in zip(out, result, strict=True))
    return _broadcast_into(out[0], result, name, where)


_DEFAULTS = (
    ("where", True), ("casting", "same_kind"), ("order", "K"), ("subok", True), ("dtype", None),
    ("out", None), ("signature", None),
)  # fmt: skip


def _is_default(keyword: str, value: Any) -> bool:
    plain = value is None or isinstance(value, (bool, str))
    return any(k == keyword and (v is value or (plain and v == value)) for k, v in _DEFAULTS)


def _broadcast_into(target: Any, result: TracedArray, name: str, where: Any) -> TracedArray:
    """`out=` of a universal function: its operands and its mask are broadcast to it."""
    check_mask(where, f"np.{name}")
    if not isinstance(target, TracedArray):
        return into(target, result, name)
    if target.is_scalar:
        raise ArgumentError(f"np.{name}: return arrays must be of ArrayType", got="a number")
    if _broadcast(result.shape, shape_of(where), target.shape) == target.shape:
        result = broadcast_to(result, target.shape)
    _check_into(target, result, name)
    if where is not True:
        given: Any = result.astype(target.dtype)
        chosen: Any = np.where(where, given, target)
        result = chosen
    return into(target, result, name)


def _broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def check_mask(where: Any, name: str) -> None:
    """Raises ArgumentError for what is no array of bool."""
    if dtype_of(operand(where)) not in (bool, np.bool_):
        raise ArgumentError(f"{name}: where= is no array of bool", got=str(dtype_of(where)))


def into(target: Any, result: TracedArray, name: str, casting: Any = "same_kind") -> TracedArray:
    """`out=`: what an in-place operation does."""
    from nkigen_lite.frontend.indexing import put

    if not isinstance(target, TracedArray):
        result.__array__()
    _check_into(target, result, name, casting)
    put(target, ..., result)
    return target


def _check_into(
    target: TracedArray, result: TracedArray, name: str, casting: Any = "same_kind"
) -> None:
    """Raises what NumPy raises for a result of another kind or shape."""
    if not np.can_cast(result.dtype, target.dtype, casting):
        raise ArgumentError(
            f"np.{name}: {result.dtype} results do not go into {target.dtype} in place",
            hint="write x = x + y, or convert with .astype first",
        )
    if result.shape != target.shape:
        raise BroadcastError(
            f"np.{name}: the result does not have the shape of the output",
            expected=str(target.shape), got=str(result.shape),
        )  # fmt: skip


def _plain(tape: Tape, ufunc: np.ufunc, given: tuple[Any, ...], dtype: Any = None) -> TracedArray:
    """One operation, its operands in the types that NumPy resolves, for results of `dtype`."""
    op = _OPERATIONS.get(ufunc)
    if op is None:
        raise UnsupportedFunctionError(
            f"np.{ufunc.__name__} is not translated",
            hint=nearest(ufunc.__name__),
        )
    _check_shapes(ufunc.__name__, given)
    kinds = (*map(dtype_of, given), *(None,) * ufunc.nout)
    asked = None if dtype is None else asked_dtype(dtype)[0]
    signature = (*(None,) * ufunc.nin, asked)
    *takes, makes = resolved(
        f"np.{ufunc.__name__}", lambda: ufunc.resolve_dtypes(kinds, signature=signature)
    )
    known = _out_of_range(tape, op, given, takes) if op in BEYOND else None
    if known is not None:
        return known
    if op == "power" and takes[0].kind in "iub":
        _check_exponent(given[1])
    if op in (*BEYOND, "power") and mixed.are_mixed(given, takes):
        return mixed.power(tape, given) if op == "power" else mixed.compare(tape, op, given)
    values = [as_value(tape, x, t, op) for x, t in zip(given, takes, strict=True)]
    return fresh(tape, _operation(tape, op, values, makes), makes, given)


def _operation(tape: Tape, op: str, values: list[str], makes: np.dtype) -> str:
    dtype = tape.spec(values[0]).dtype
    if (op in _WHOLE and not dtype.is_float) or (op == "abs" and dtype is bool_):
        return values[0]
    if op == "reciprocal" and not dtype.is_float and dtype is not bool_:
        return _whole_reciprocal(tape, values[0], dtype)
    if op in _LOGICAL:
        values = [cast_value(tape, v, bool_) for v in values]
    op = _OF_BOOL.get(op, op) if dtype is bool_ else op
    value = tape.emit(op, *values)
    return cast_value(tape, value, narrowed(makes))


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
    tape: Tape, op: str, given: tuple[Any, ...], takes: list[np.dtype]
) -> TracedArray | None:
    """A comparison with a Python integer outside the other's type, which NumPy knows."""
    for number, x in enumerate(given):
        if type(x) is int and takes[number].kind in "iu":
            info = np.iinfo(takes[number])
            if not info.min <= x <= info.max:
                seen = op if number == 1 else MIRRORED.get(op, op)
                above, below = BEYOND[seen]
                shape = np.broadcast_shapes(*map(shape_of, given))
                answer = tape.fill(above if x > info.max else below, bool_, shape)
                return fresh(tape, answer, np.dtype(bool), given)
    return None


def _check_exponent(exponent: Any) -> None:
    """Of an exponent that is not known here, NumPy's error cannot be raised: powers of integers to
    negative integers have no meaning in the kernel."""
    if not isinstance(exponent, TracedArray) and np.any(np.asarray(exponent) < 0):
        raise ValueRangeError("Integers to negative integer powers are not allowed.")


# ------------------------------------------------------- written with others


def _matmul(tape: Tape, given: tuple[Any, ...]) -> Any:
    from nkigen_lite.frontend.products import matmul

    return matmul(tape, *given)


_COMPOSED: dict[np.ufunc, Callable[[Tape, tuple[Any, ...]], Any]] = {
    **FORMULAS, **PRODUCTS, np.matmul: _matmul,
}  # fmt: skip

UFUNCS = frozenset(_OPERATIONS) | frozenset(_COMPOSED)
"""Universal functions that are translated."""


def _method(ufunc: np.ufunc, method: str, inputs: Any, keywords: dict[str, Any]) -> Any:
    """`np.add.reduce` and its kin."""
    if method == "reduce":
        return _reduce(ufunc, inputs, keywords)
    keywords = {k: v for k, v in keywords.items() if not _is_default(k, v)}
    if method == "outer" and not keywords:
        return outer_of(ufunc, inputs)
    if method == "accumulate" and keywords.keys() <= {"axis", "dtype"}:
        return accumulated(ufunc, *inputs, **keywords)
    raise UnsupportedFunctionError(f"np.{ufunc.__name__}.{method} is not translated")


def _reduce(ufunc: np.ufunc, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """`np.add.reduce(x, axis=0)` is np.sum."""
    from nkigen_lite.frontend.functions import called
    from nkigen_lite.frontend.reduction_options import REDUCE

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


def in_place(ufunc: np.ufunc) -> Callable[[TracedArray, Any], Any]:
    """`x += y`: into x's memory, except where x is a number, which names no memory."""

    def operator(self: TracedArray, other: Any) -> Any:
        return ufunc(self, other) if self.is_scalar else ufunc(self, other, out=(self,))

    return operator


def binary(ufunc: np.ufunc) -> Callable[[TracedArray, Any], Any]:
    """`x + y`."""
    return lambda self, other: ufunc(self, other)


def reflected(ufunc: np.ufunc) -> Callable[[TracedArray, Any], Any]:
    """`y + x`."""
    return lambda self, other: ufunc(other, self)


BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power, "matmul": np.matmul,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "lshift": np.left_shift,
    "rshift": np.right_shift,
}  # fmt: skip
COMPARE = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip
UNARY = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}


def _power(self: TracedArray, other: Any) -> Any:
    """`x ** 2` is np.square to NumPy, which for bool has another type than np.power."""
    is_square = type(other) is int and other == 2 and not self.is_scalar
    return np.square(self) if is_square else np.power(self, other)


OPERATORS: dict[str, Callable[..., Any]] = {
    **{f"__{n}__": binary(f) for n, f in (BINARY | COMPARE).items()},
    **{f"__r{n}__": reflected(f) for n, f in BINARY.items()},
    **{f"__i{n}__": in_place(f) for n, f in BINARY.items()},
    **{f"__{n}__": lambda self, ufunc=f: ufunc(self) for n, f in UNARY.items()},
    "__pow__": _power,
    "__divmod__": lambda self, other: (self // other, self % other),
    "__rdivmod__": lambda self, other: (other // self, other % self),
}
"""Python's operators; each is one universal function."""
