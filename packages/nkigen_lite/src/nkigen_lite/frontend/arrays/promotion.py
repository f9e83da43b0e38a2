"""NumPy's result types, and operands as the types in which NumPy computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from nki_dtypes import DType, resolve
from nki_dtypes.formats import bool_, int32, uint32
from nkigen_lite.frontend.arrays.array import TracedArray
from nkigen_lite.frontend.arrays.memory import Memory
from nkigen_lite.frontend.arrays.tape import Tape
from nkigen_lite.ops import OPS
from nkigen_lite.tensors.errors import (
    ArgumentError,
    IntegerRangeError,
    UnsupportedFunctionError,
    ValueRangeError,
)
from nkigen_lite.tensors.spec import narrow, numpy_dtype
from nkigen_lite.tensors.strides import contiguous

PYTHON_NUMBERS = (bool, int, float)


def operand(given: Any) -> Any:
    """A traced array, a NumPy array, or a Python number; what else NumPy takes becomes an array.

    Raises UnsupportedFunctionError for objects, strings, complex numbers and the like.
    """
    if isinstance(given, TracedArray) or type(given) in PYTHON_NUMBERS:
        return given
    array = np.asarray(given)
    if array.dtype.kind in "OSUcmM" or array.dtype.names is not None:
        raise UnsupportedFunctionError(
            f"an array of dtype {array.dtype} takes no part in a kernel",
            expected="numbers or bool", got=repr(given)[:80],
        )  # fmt: skip
    return array


def as_array(given: Any) -> Any:
    """As `operand`, where NumPy makes an array of a number first: its dtype is not weak."""
    found = operand(given)
    return found if isinstance(found, TracedArray) else np.asarray(found)


def dtype_of(given: Any) -> Any:
    """As `ufunc.resolve_dtypes` takes it: a dtype, or the Python type of a weak number."""
    if type(given) is bool:
        return np.dtype(bool)
    return given.dtype if hasattr(given, "dtype") else type(given)


def shape_of(given: Any) -> tuple[int, ...]:
    return tuple(getattr(given, "shape", ()))


def narrowed(dtype: np.dtype) -> DType:
    """`narrow`. Raises UnsupportedFunctionError for dtypes without a format here."""
    try:
        return narrow(dtype)
    except (ValueError, TypeError) as unknown:
        raise UnsupportedFunctionError(f"dtype {dtype} has no format here: {unknown}") from None


def resolved(function: str, resolve_dtypes: Callable[[], Any]) -> Any:
    """The dtypes that NumPy resolves, its errors raised at the user's line."""
    try:
        return resolve_dtypes()
    except TypeError as error:
        raise ArgumentError(f"{function}: {error}") from None
    except OverflowError as error:
        raise IntegerRangeError(f"{function}: {error}") from None
    except ValueError as error:
        raise ValueRangeError(f"{function}: {error}") from None


def check_casting(function: str, given: Any, dtype: np.dtype, casting: Any) -> None:
    """Raises what NumPy raises where `casting` does not let an operand become this dtype."""
    source = np.zeros(0, given.dtype) if hasattr(given, "dtype") else given
    resolved(function, lambda: np.copyto(np.zeros(0, dtype), source, casting=casting))


def asked_dtype(given: Any) -> tuple[np.dtype, DType]:
    """The dtype that a user names: as NumPy computes with it, and as the graph holds it."""
    if isinstance(given, TracedArray):
        raise ArgumentError("a dtype is needed, not an array", got=repr(given))
    if not isinstance(given, (str, DType)):
        try:
            given = np.dtype(given)
        except TypeError as unknown:
            raise ArgumentError(str(unknown)) from None
    given = _named(given) if isinstance(given, str) else given
    if isinstance(given, np.dtype):
        return given, narrowed(given)
    return numpy_dtype(given), given


def _named(name: str) -> np.dtype | DType:
    """A format by its name, else what NumPy calls so (float64, i8, d). Raises ArgumentError with
    near names."""
    try:
        return resolve(name)
    except (ValueError, TypeError) as unknown:
        with suppress(ValueError, TypeError):
            return np.dtype(name)
        raise ArgumentError(str(unknown)) from None


def as_value(tape: Tape, given: Any, dtype: np.dtype, function: str) -> str:
    """The operand as a value of the format that holds `dtype`, converted as NumPy casts."""
    target = narrowed(dtype)
    if isinstance(given, TracedArray):
        source = given.spec.dtype
        if source is uint32 and dtype == np.int64 and not _is_modular(function):
            raise UnsupportedFunctionError(
                f"{function}: NumPy takes uint32 with signed integers as int64, which 32 bits "
                "do not hold",
                got=f"uint32 beside {target}", hint="convert one operand: .astype(np.uint32)",
            )  # fmt: skip
        return cast_value(tape, given.value, target)
    return constant_value(tape, given, dtype, function)


def _is_modular(function: str) -> bool:
    """Whether the low 32 bits of results depend on the operands' low 32 bits alone."""
    return function in OPS and OPS[function].is_modular


def cast_value(tape: Tape, value: str, target: DType) -> str:
    """The value in another format; nothing to do in its own."""
    return value if tape.spec(value).dtype is target else tape.emit("cast", value, dtype=target)


def constant_value(tape: Tape, given: Any, dtype: np.dtype, function: str) -> str:
    """A number or array of NumPy's as a constant of the format that holds `dtype`."""
    target = narrowed(dtype)
    try:
        with np.errstate(all="ignore"):
            wide = (
                np.asarray(given).astype(dtype)
                if hasattr(given, "dtype")
                else np.asarray(given, dtype)
            )
            held = wide.astype(np.bool_ if target is bool_ else target.storage)
    except OverflowError as error:
        raise IntegerRangeError(f"{function}: {error}") from None
    lost = target in (int32, uint32) and dtype.itemsize == 8 and bool(np.any(held != wide))
    if lost and not _is_modular(function):
        raise IntegerRangeError(
            f"{function}: a constant does not fit into {target}",
            expected=f"{target.min} … {target.max}", got=f"{wide.min()} … {wide.max()}",
        )  # fmt: skip
    if held.ndim == 0:
        return tape.fill(held, target)
    return tape.constant(held, target, named=given)


def fresh(
    tape: Tape, value: str, dtype: np.dtype, sources: tuple[Any, ...] = (), scalar: bool = True
) -> TracedArray:
    """A new array. Its memory order is C's where that of all `sources` is."""
    spec = tape.spec(value)
    known = all(s.is_contiguous for s in sources if isinstance(s, TracedArray))
    strides = contiguous(spec.shape) if known else None
    return TracedArray(tape, Memory(value), (), spec, dtype, strides, scalar and not spec.shape)


def traced(tape: Tape, given: Any) -> TracedArray:
    """A user's argument where an array is needed."""
    given = operand(given)
    if isinstance(given, TracedArray):
        return given
    dtype = np.asarray(given).dtype
    return fresh(tape, constant_value(tape, given, dtype, "a constant"), dtype, scalar=False)


def tape_of(*given: Any) -> Tape:
    """The tape of the first traced array."""
    return next(x.tape for x in given if isinstance(x, TracedArray))


def common_dtype(function: str, given: Sequence[Any]) -> np.dtype:
    """np.result_type, where Python numbers do not count for more than their kind."""
    kinds = [x if type(x) in PYTHON_NUMBERS else dtype_of(x) for x in given]
    return resolved(function, lambda: np.result_type(*kinds))
