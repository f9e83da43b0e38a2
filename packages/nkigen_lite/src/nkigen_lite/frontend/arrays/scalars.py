"""Results of rank 0 that are numbers: `y += 1` makes another number, but writes an array."""

from __future__ import annotations

from typing import Any

from nkigen_lite.frontend.arrays.array import TracedArray
from nkigen_lite.frontend.arrays.promotion import fresh

_NUMBERS = frozenset({
    "around", "array_equal", "clip", "einsum", "inner", "kron", "linalg.norm", "linalg.vecdot",
    "nanmax", "nanmin", "round", "sinc", "take",
})  # fmt: skip
_NUMBERS_IN_PLACE = frozenset({"nan_to_num"})
"""Functions that give a number of what they wrote into an array of rank 0."""
_ARRAYS = frozenset({"cross", "linalg.cross", "select", "where"})
_LIKE_THEIR_ARRAY = frozenset({"moveaxis", "reshape", "squeeze", "transpose"})
_METHODS_OF_NUMBERS = frozenset({
    "all", "amax", "amin", "any", "argmax", "argmin", "around", "clip", "max", "mean", "min",
    "prod", "round", "std", "sum", "take", "var",
})  # fmt: skip
"""Functions that call the method, which for numbers gives a number for any `out=`."""


def as_numpy_has_it(name: str, given: dict[str, Any], result: Any) -> Any:
    """The result of np.`name` for `given`, a number or an array of rank 0 where NumPy gives one."""
    if not isinstance(result, TracedArray):
        return result
    first = next(iter(given.values()))
    if name in _NUMBERS_IN_PLACE:
        return as_number(result)
    if any(result is g for g in given.values()):  # out=
        return like(first, result) if name in _METHODS_OF_NUMBERS else result
    if name in _LIKE_THEIR_ARRAY:
        return like(first, result)
    if _is_number(name, given):
        return as_number(result)
    if name in _ARRAYS and result.is_scalar:
        return fresh(result.tape, result.value, result.dtype, scalar=False)
    return result


def _is_number(name: str, given: dict[str, Any]) -> bool:
    """Whether NumPy gives a number: not of a planned einsum of several operands."""
    if name == "einsum" and given.get("optimize"):
        return len(given["operands"]) <= 2
    return name in _NUMBERS


def like(x: Any, result: Any) -> Any:
    """A number where `x` is one: what its methods give."""
    is_number = isinstance(x, TracedArray) and x.is_scalar
    return as_number(result) if is_number else result


def as_number(result: Any) -> Any:
    """`result`, of rank 0 a number: a copy of what it holds now."""
    if isinstance(result, TracedArray) and not result.ndim:
        return fresh(result.tape, result.value, result.dtype)
    return result
