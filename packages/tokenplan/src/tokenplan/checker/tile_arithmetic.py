"""Numbers and tiles that operations of a tile block calculate with NumPy."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

CONVERSIONS = ("assume", "exti", "trunci")
"""Operations that result in their operand, if its type can contain it."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that is not calculated; `owners`: the parameters that pointers in it point into."""

    owners: frozenset[int] = frozenset()


UNKNOWN = Unknown()
Calculation = Callable[[Any, Any], list[Any]]
"""The results of an operation, from the execution and the operation."""


def dtype_of(run: Any, op: Any) -> Any:
    return run.dtype(op.results[0].type["element"])


def bits_of(run: Any, op: Any, name: str) -> np.ndarray:
    """An operand; its bits as a number without a sign, if the operation takes it so."""
    found = np.asarray(run.value(op, name))
    given = op.attributes
    if given.get("unsigned") or given.get("signedness") == "unsigned":
        return found.view(f"u{found.itemsize}") if found.dtype.kind == "i" else found
    return found


def _lanes(calculate: Callable[..., Any], *names: str) -> Calculation:
    def execute(run: Any, op: Any) -> list[Any]:
        found = calculate(*(bits_of(run, op, name) for name in names))
        return [np.asarray(found).astype(dtype_of(run, op))]

    return execute


def _shaped(calculate: Callable[[np.ndarray, tuple[int, ...]], Any]) -> Calculation:
    def execute(run: Any, op: Any) -> list[Any]:
        return [calculate(np.asarray(run.value(op, "source")), op.results[0].type["shape"])]

    return execute


def _constant(run: Any, op: Any) -> list[Any]:
    kind = op.results[0].type
    shape, data = kind["shape"], np.frombuffer(op.attributes["value"], np.uint8)
    if kind["element"].kind == "i1":
        return [np.full(shape, bool(data[0]))]
    found = data.view(dtype_of(run, op))
    return [np.full(shape, found[0]) if found.size != prod(shape) else found.reshape(shape)]


def _mma(run: Any, op: Any) -> list[Any]:
    a, b, acc = (np.asarray(run.value(op, n)).astype(np.float32) for n in ("lhs", "rhs", "acc"))
    return [(a @ b + acc).astype(dtype_of(run, op))]


def _compare(run: Any, op: Any) -> list[Any]:
    compare = getattr(operator, op.attributes["comparison"])
    return [np.asarray(compare(bits_of(run, op, "lhs"), bits_of(run, op, "rhs")))]


def _divide(run: Any, op: Any) -> list[Any]:
    lhs, rhs = bits_of(run, op, "lhs"), bits_of(run, op, "rhs")
    found = {"negative_inf": lhs // rhs, "positive_inf": -(-lhs // rhs)}.get(
        op.attributes["rounding"], np.trunc(np.true_divide(lhs, rhs)))  # fmt: skip
    return [np.asarray(found).astype(dtype_of(run, op))]


def _iota(run: Any, op: Any) -> list[Any]:
    return [np.arange(prod(op.results[0].type["shape"]), dtype=dtype_of(run, op))]


def _permute(run: Any, op: Any) -> list[Any]:
    return [np.transpose(run.value(op, "source"), op.attributes["permutation"])]


def _cat(run: Any, op: Any) -> list[Any]:
    return [np.concatenate(run.all(op, "lhs") + run.all(op, "rhs"), op.attributes["dim"])]


def _bitcast(run: Any, op: Any) -> list[Any]:
    return [np.asarray(run.value(op, "source")).view(dtype_of(run, op))]


_TWO: Mapping[str, Callable[..., Any]] = {
    "addi": np.add, "subi": np.subtract, "muli": np.multiply, "andi": np.bitwise_and,
    "ori": np.bitwise_or, "xori": np.bitwise_xor, "shli": np.left_shift, "shri": np.right_shift,
    "mini": np.minimum, "maxi": np.maximum, "remi": np.fmod, "addf": np.add, "subf": np.subtract,
    "mulf": np.multiply, "divf": np.divide, "maxf": np.fmax, "minf": np.fmin,
}  # fmt: skip
_ONE: Mapping[str, Callable[..., Any]] = {
    "exp": np.exp, "exp2": np.exp2, "sqrt": np.sqrt, "negf": np.negative, "absf": np.abs,
    "rsqrt": lambda x: 1 / np.sqrt(x), "ftof": np.asarray, "itof": np.asarray, "exti": np.asarray,
    "trunci": np.asarray, "ftoi": np.trunc, "negi": np.negative, "log": np.log, "log2": np.log2,
    "tanh": np.tanh, "absi": np.abs, "ptr_to_ptr": np.asarray, "ptr_to_int": np.asarray,
    "int_to_ptr": np.asarray,
}  # fmt: skip
ARITHMETIC: dict[str, Calculation] = {
    **{name: _lanes(calculate, "lhs", "rhs") for name, calculate in _TWO.items()},
    **{name: _lanes(calculate, "source") for name, calculate in _ONE.items()},
    "select": _lanes(np.where, "condition", "if_true", "if_false"),
    "fma": _lanes(lambda a, b, c: a * b + c, "lhs", "rhs", "acc"),
    "reshape": _shaped(np.reshape), "broadcast": _shaped(np.broadcast_to), "permute": _permute,
    "assume": lambda run, op: [run.value(op, "value")],
    "constant": _constant, "iota": _iota, "mmaf": _mma, "cmpi": _compare, "cmpf": _compare,
    "divi": _divide, "cat": _cat, "bitcast": _bitcast,
}  # fmt: skip
