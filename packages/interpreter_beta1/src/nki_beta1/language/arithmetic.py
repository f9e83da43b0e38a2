"""nl functions element by element, made from tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from neuroncore.machine.trigonometry import TRIGONOMETRY
from nki_beta1.call import elementwise
from nki_beta1.call.apply import apply
from nki_beta1.values.attributes import nl_function
from nki_dtypes import float32


@dataclass(frozen=True, slots=True)
class _Masked:
    """Functions on tiles under one mask."""

    mask: Any

    def unary(self, name: str, x: Any, dtype: Any) -> Any:
        return elementwise.unary(name, x, dtype, self.mask)

    def binary(self, name: str, x: Any, y: Any, dtype: Any) -> Any:
        return elementwise.binary(name, x, y, dtype, self.mask)

    def scalar(self, x: Any, op: str, operand: Any, dtype: Any, **more: Any) -> Any:
        return elementwise.scalar_op(x, op, operand, dtype, self.mask, **more)


def _of_any_argument(name: str) -> Callable[..., Any]:
    recipe = TRIGONOMETRY[name]

    def function(x: Any, *, dtype: Any = None, mask: Any = None) -> Any:
        return recipe(_Masked(mask), x, x.dtype if dtype is None else dtype)

    meaning = f"{recipe.__doc__}; the argument is reduced to [-π, π] first."
    return nl_function(function, name, meaning)


UNARY = (
    "exp", "log", "sqrt", "rsqrt", "square", "abs", "sign", "relu", "sigmoid", "tanh", "silu",
    "silu_dx", "gelu", "gelu_dx", "gelu_apprx_tanh", "gelu_apprx_sigmoid", "softplus", "mish",
    "erf", "erf_dx", "arctan",
)  # fmt: skip
"""Activation functions that nl offers under the same name."""

BINARY = (
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "bitwise_and",
    "bitwise_or", "bitwise_xor", "left_shift", "right_shift",
)  # fmt: skip

TRUTHS = (
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and",
    "logical_or", "logical_xor",
)  # fmt: skip
"""Those whose result is a truth value."""


def _unary(name: str) -> Callable[..., Any]:
    def function(x: Any, *, dtype: Any = None, mask: Any = None) -> Any:
        return elementwise.unary(name, x, dtype, mask)

    return nl_function(function, name, f"{name}(x), in x's dtype unless told otherwise.")


def _binary(name: str, kind: type | None, default: str) -> Callable[..., Any]:
    def function(x: Any, y: Any, *, dtype: Any = kind, mask: Any = None) -> Any:
        return elementwise.binary(name, x, y, dtype, mask)

    return nl_function(function, name, f"{name}(x, y), in {default} unless told otherwise.")


for _name in TRIGONOMETRY:
    _of_any_argument(_name)
for _name in UNARY:
    _unary(_name)
for _name in BINARY:
    _binary(_name, None, "the promoted dtype")
for _name in TRUTHS:
    _binary(_name, bool, "bool")


@nl_function
def reciprocal(x: Any, *, dtype: Any = None, mask: Any = None) -> Any:
    """1 / x"""
    return apply("reciprocal", {"data": x}, {}, over="data", dtype=dtype, mask=mask)


@nl_function
def negative(x: Any, *, dtype: Any = None, mask: Any = None) -> Any:
    """-x"""
    return elementwise.negative(x, dtype, mask)


@nl_function
def invert(x: Any, *, dtype: Any = None, mask: Any = None) -> Any:
    """Every bit of x inverted."""
    return elementwise.invert(x, dtype, mask)


@nl_function
def logical_not(x: Any, *, dtype: Any = bool, mask: Any = None) -> Any:
    """1 where x is 0, else 0."""
    return elementwise.scalar_op(x, "equal", 0.0, dtype, mask)


@nl_function
def floor(x: Any, *, dtype: Any = None, mask: Any = None) -> Any:
    """The largest whole number that is not above x: x - (x mod 1), exact in float32."""
    kind = x.dtype if dtype is None else dtype
    rest = elementwise.scalar_op(x, "mod", 1.0, float32, mask)
    return elementwise.binary("subtract", x, rest, kind, mask)


@nl_function
def ceil(x: Any, *, dtype: Any = None, mask: Any = None) -> Any:
    """The smallest whole number that is not below x: -floor(-x)."""
    kind = x.dtype if dtype is None else dtype
    below = floor(elementwise.negative(x, float32, mask), mask=mask)
    return elementwise.negative(below, kind, mask)


@nl_function
def trunc(x: Any, *, dtype: Any = None, mask: Any = None) -> Any:
    """x rounded towards 0: sign(x) · floor(|x|)."""
    kind = x.dtype if dtype is None else dtype
    size = floor(elementwise.unary("abs", x, float32, mask), mask=mask)
    return elementwise.binary("multiply", size, elementwise.unary("sign", x), kind, mask)


@nl_function
def where(condition: Any, x: Any, y: Any, *, dtype: Any = None, mask: Any = None) -> Any:
    """x where condition is not 0, else y, bit for bit."""
    return elementwise.where(condition, x, y, dtype, mask)


@nl_function
def mod(x: Any, y: Any, dtype: Any = None, mask: Any = None) -> Any:
    """x - floor(x / y) · y, which has y's sign."""
    return elementwise.binary("mod", x, y, dtype, mask)


@nl_function
def fmod(x: Any, y: Any, dtype: Any = None, mask: Any = None) -> Any:
    """x - trunc(x / y) · y, which has x's sign: sign(x) · (|x| mod |y|)."""
    kind = elementwise.promoted(x, y) if dtype is None else dtype
    above, below = (_magnitude(v, mask) for v in (x, y))
    rest = elementwise.binary("mod", above, below, float32, mask)
    if elementwise.is_number(x):
        return elementwise.scalar_op(rest, "multiply", -1.0 if x < 0 else 1.0, kind, mask)
    sign = elementwise.unary("sign", x, float32, mask)
    return elementwise.binary("multiply", rest, sign, kind, mask)


def _magnitude(value: Any, mask: Any) -> Any:
    if elementwise.is_number(value):
        return abs(value)
    return elementwise.unary("abs", value, float32, mask)
