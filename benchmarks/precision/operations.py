"""Each operation: its meaning in float64, the inputs it is measured on, and the stated error."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.precision import inputs
from benchmarks.precision.inputs import Inputs

import nkigen_lite
from nkigen_lite.ops import OPS
from nkigen_lite.tensors.ulps import ulp

Unit = Callable[..., np.ndarray]
"""(dtype, exact result, *inputs in float64) → what an error is counted in, per element."""


def of_the_element(dtype: Any, exact: np.ndarray, *given: np.ndarray) -> np.ndarray:
    """ulps of the element"""
    return ulp(exact, dtype)


def absolute(dtype: Any, exact: np.ndarray, *given: np.ndarray) -> np.ndarray:
    """absolute"""
    return np.ones_like(exact)


def of_the_argument(dtype: Any, exact: np.ndarray, x: np.ndarray) -> np.ndarray:
    """ulps of x"""
    return ulp(x, dtype)


def of_the_sum(dtype: Any, exact: np.ndarray, x: np.ndarray) -> np.ndarray:
    """ulps of Σ\\|x\\|"""
    return ulp(np.abs(x).sum(-1), dtype)


def of_the_mean(dtype: Any, exact: np.ndarray, x: np.ndarray) -> np.ndarray:
    """ulps of the mean of \\|x\\|"""
    return ulp(np.abs(x).mean(-1), dtype)


def of_the_products(dtype: Any, exact: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """ulps of Σ\\|a\\|\\|b\\|"""
    return ulp(np.abs(a) @ np.abs(b), dtype)


def of_the_row(dtype: Any, exact: np.ndarray, x: np.ndarray) -> np.ndarray:
    """ulps of the row's largest"""
    return ulp(np.abs(exact).max(-1, keepdims=True), dtype)


def of_the_exponent(dtype: Any, exact: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """2 + \\|y ln x\\| ulps of the element"""
    with np.errstate(all="ignore"):
        return ulp(exact, dtype) * (2 + np.abs(y * np.log(np.abs(x))))


def of_the_distance(dtype: Any, exact: np.ndarray, x: np.ndarray) -> np.ndarray:
    """an ulp of the element, and 7 + max - x of its float32"""
    away = x.max(-1, keepdims=True) - x
    return ulp(exact, dtype) + (7 + away) * ulp(exact, np.float32)


@dataclass(frozen=True, slots=True)
class Operation:
    """What is measured.

    function: as a user writes it; exact: its meaning on float64 arrays, the function itself where
    NumPy has it. at_most: dtype of the inputs → the stated bound, in `unit` of the result's dtype.
    """

    name: str
    function: Callable[..., Any]
    inputs: Inputs
    at_most: Mapping[str, float]
    unit: Unit = of_the_element
    exact: Callable[..., Any] | None = None

    def truth(self, *arrays: np.ndarray) -> np.ndarray:
        """The result for these numbers in float64."""
        wide = (a.astype(np.float64) for a in arrays)
        with np.errstate(all="ignore"):
            return np.asarray((self.exact or self.function)(*wide))


def _erf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def _gelu(x: np.ndarray) -> np.ndarray:
    return x * np.vectorize(lambda v: math.erfc(-v / math.sqrt(2)) / 2, otypes=[np.float64])(x)


def _softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def _rmsnorm(x: Any) -> Any:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def _layernorm(x: Any) -> Any:
    away = x - np.mean(x, axis=-1, keepdims=True)
    return away / np.sqrt(np.mean(away * away, axis=-1, keepdims=True) + 1e-5)


def each(float32: float, narrow: float = 0.51) -> dict[str, float]:
    """The bound in float32, and where that is rounded once to fewer bits: half an ulp and a bit."""
    return {"float32": float32, "bfloat16": narrow, "float16": narrow}


def stated(name: str) -> dict[str, float]:
    """The bound that the operation's record states."""
    error = OPS[name].error
    assert error is not None
    return each(error.float32, error.narrow)


TURN = {"float32": 3e-7, "bfloat16": 2**-9 + 3e-7, "float16": 2**-12 + 3e-7}
"""Of numbers up to 1: 3e-7, and half an ulp of narrower results."""

OPERATIONS = (
    Operation("x + y, x - y", lambda x, y: x - y, inputs.pairs, stated("subtract")),
    Operation("x * y", lambda x, y: x * y, inputs.pairs, stated("multiply")),
    Operation("x / y", lambda x, y: x / y, inputs.divisors, stated("divide")),
    Operation("1 / x", lambda x: 1 / x, inputs.reciprocals, each(0.5, 0.5)),
    Operation("x // y", lambda x, y: x // y, inputs.quotients, stated("floor_divide")),
    Operation("x % y", lambda x, y: x % y, inputs.quotients, stated("mod")),
    Operation("floor", np.floor, inputs.halves, stated("floor")),
    Operation("ceil", np.ceil, inputs.halves, stated("ceil")),
    Operation("rint", np.rint, inputs.halves, stated("rint")),
    Operation("trunc", np.trunc, inputs.halves, stated("trunc")),
    Operation("maximum", np.maximum, inputs.pairs, stated("maximum")),
    Operation("where", lambda x, y: np.where(x < y, x, y), inputs.pairs, stated("where")),
    Operation("square", np.square, inputs.anything, stated("square")),
    Operation("x ** 3", lambda x: x**3, inputs.cubes, each(1.5)),
    Operation("x ** y", lambda x, y: x**y, inputs.powers, stated("power"), unit=of_the_exponent),
    Operation("sqrt", np.sqrt, inputs.roots, stated("sqrt")),
    Operation(
        "rsqrt", nkigen_lite.rsqrt, inputs.roots, stated("rsqrt"), exact=lambda x: 1 / np.sqrt(x),
    ),
    Operation("exp", np.exp, inputs.exponents, stated("exp")),
    Operation("log", np.log, inputs.logarithms, stated("log")),
    Operation("expm1", np.expm1, inputs.around_zero, stated("expm1")),
    Operation("log1p", np.log1p, inputs.above_minus_one, stated("log1p")),
    Operation("exp2", np.exp2, inputs.around_zero, each(6)),
    Operation("log2", np.log2, inputs.logarithms, each(6)),
    Operation("log10", np.log10, inputs.logarithms, each(6)),
    Operation("cbrt", np.cbrt, inputs.roots, each(3)),
    Operation("hypot", np.hypot, inputs.divisors, each(3)),
    Operation("fmod", np.fmod, inputs.quotients, each(0, 0)),
    Operation("sinh", np.sinh, inputs.around_zero, each(10)),
    Operation("cosh", np.cosh, inputs.around_zero, each(10)),
    Operation("arcsinh", np.arcsinh, inputs.around_zero, each(8)),
    Operation("arctan", np.arctan, inputs.around_zero, each(4)),
    Operation("arctan2", np.arctan2, inputs.divisors, each(4)),
    Operation("tanh", np.tanh, inputs.around_zero, stated("tanh")),
    Operation("sin", np.sin, inputs.angles, TURN, unit=absolute),
    Operation("cos", np.cos, inputs.angles, TURN, unit=absolute),
    Operation("sigmoid", nkigen_lite.sigmoid, inputs.exponents, stated("sigmoid"), exact=_sigmoid),
    Operation(
        "silu", nkigen_lite.silu, inputs.exponents, stated("silu"), exact=lambda x: x * _sigmoid(x),
    ),
    Operation("erf", nkigen_lite.erf, inputs.around_zero, stated("erf"), exact=_erf),
    Operation(
        "gelu", nkigen_lite.gelu, inputs.around_zero, stated("gelu"),
        unit=of_the_argument, exact=_gelu
    ),
    Operation("max", lambda x: np.max(x, axis=-1), inputs.rows, stated("max")),
    Operation("sum", lambda x: np.sum(x, axis=-1), inputs.rows, stated("sum"), unit=of_the_sum),
    Operation(
        "cumsum, last", lambda x: np.cumsum(x, axis=-1)[..., -1], inputs.rows, each(512),
        exact=lambda x: np.sum(x, axis=-1), unit=of_the_sum,
    ),
    Operation("mean", lambda x: np.mean(x, axis=-1), inputs.rows, stated("mean"), unit=of_the_mean),
    Operation("var", lambda x: np.var(x, axis=-1), inputs.rows, each(16)),
    Operation("std", lambda x: np.std(x, axis=-1), inputs.rows, each(16)),
    Operation("prod", lambda x: np.prod(x, axis=-1), inputs.short_rows, stated("prod")),
    Operation(
        "a @ b", np.matmul, inputs.matrices,
        {"float32": 8, "bfloat16": 8, "float16": 0.51}, unit=of_the_products,
    ),
    Operation("softmax", _softmax, inputs.rows, stated("softmax"), unit=of_the_distance),
    Operation("rms norm", _rmsnorm, inputs.rows, {"float32": 8}),
    Operation("layer norm", _layernorm, inputs.rows, {"float32": 8}, unit=of_the_row),
)  # fmt: skip
