"""Operations of a decoded Tile IR function on tiles, as NumPy calculates them.

Each takes the execution, which has the values of operands, and the operation.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

Calculation = Callable[[Any, Any], list[Any]]


def _dtype(run: Any, op: Any) -> Any:
    return run.dtype(op.results[0].type["element"])


def _lanes(calculate: Callable[..., Any], *names: str) -> Calculation:
    def execute(run: Any, op: Any) -> list[Any]:
        found = calculate(*(run.value(op, name) for name in names))
        return [np.asarray(found).astype(_dtype(run, op))]

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
    found = data.view(_dtype(run, op))
    return [np.full(shape, found[0]) if found.size != prod(shape) else found.reshape(shape)]


def _mma(run: Any, op: Any) -> list[Any]:
    a, b, acc = (np.asarray(run.value(op, n)).astype(np.float32) for n in ("lhs", "rhs", "acc"))
    return [(a @ b + acc).astype(_dtype(run, op))]


def _compare(run: Any, op: Any) -> list[Any]:
    compare = getattr(operator, op.attributes["comparison"])
    return [np.asarray(compare(run.value(op, "lhs"), run.value(op, "rhs")))]


def _divide(run: Any, op: Any) -> list[Any]:
    lhs, rhs = run.value(op, "lhs"), run.value(op, "rhs")
    found = {"negative_inf": lhs // rhs, "positive_inf": -(-lhs // rhs)}.get(
        op.attributes["rounding"], np.trunc(np.true_divide(lhs, rhs)))  # fmt: skip
    return [np.asarray(found).astype(_dtype(run, op))]


def _iota(run: Any, op: Any) -> list[Any]:
    return [np.arange(prod(op.results[0].type["shape"]), dtype=_dtype(run, op))]


def _permute(run: Any, op: Any) -> list[Any]:
    return [np.transpose(run.value(op, "source"), op.attributes["permutation"])]


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
    "tanh": np.tanh,
}  # fmt: skip
ARITHMETIC: dict[str, Calculation] = {
    **{name: _lanes(calculate, "lhs", "rhs") for name, calculate in _TWO.items()},
    **{name: _lanes(calculate, "source") for name, calculate in _ONE.items()},
    "select": _lanes(np.where, "condition", "if_true", "if_false"),
    "fma": _lanes(lambda a, b, c: a * b + c, "lhs", "rhs", "acc"),
    "reshape": _shaped(np.reshape), "broadcast": _shaped(np.broadcast_to), "permute": _permute,
    "assume": lambda run, op: [run.value(op, "value")],
    "constant": _constant, "iota": _iota, "mmaf": _mma, "cmpi": _compare, "cmpf": _compare,
    "divi": _divide,
}  # fmt: skip
