"""nl functions element by element, made from tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from neuroncore.machine.trigonometry import TRIGONOMETRY
from nki_beta1.call import elementwise
from nki_beta1.call.apply import apply
from nki_beta1.tensor.creation import reject_unknown
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

    def function(x: Any, *, dtype: Any = None, mask: Any = None, **unknown: Any) -> Any:
        reject_unknown(name, unknown)
        return recipe(_Masked(mask), x, x.dtype if dtype is None else dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{recipe.__doc__}; the argument is reduced to [-π, π] first."
    return function


sin, cos, tan = map(_of_any_argument, ("sin", "cos", "tan"))


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


def _named(function: Callable[..., Any], name: str, meaning: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = meaning
    return function


def _unary(name: str) -> Callable[..., Any]:
    def function(x: Any, *, dtype: Any = None, mask: Any = None, **unknown: Any) -> Any:
        if unknown:
            reject_unknown(name, unknown)
        return elementwise.unary(name, x, dtype, mask)

    return _named(function, name, f"{name}(x), in x's dtype unless told otherwise.")


def _binary(name: str) -> Callable[..., Any]:
    def function(x: Any, y: Any, *, dtype: Any = None, mask: Any = None, **unknown: Any) -> Any:
        if unknown:
            reject_unknown(name, unknown)
        return elementwise.binary(name, x, y, dtype, mask)

    return _named(function, name, f"{name}(x, y), in the promoted dtype unless told otherwise.")


def _truth(name: str) -> Callable[..., Any]:
    def function(x: Any, y: Any, *, dtype: Any = bool, mask: Any = None, **unknown: Any) -> Any:
        if unknown:
            reject_unknown(name, unknown)
        return elementwise.binary(name, x, y, dtype, mask)

    return _named(function, name, f"{name}(x, y), in bool unless told otherwise.")


def reciprocal(x: Any, *, dtype: Any = None, mask: Any = None, **unknown: Any) -> Any:
    """1 / x"""
    reject_unknown("reciprocal", unknown)
    return apply("reciprocal", {"data": x}, {}, over="data", dtype=dtype, mask=mask)


def negative(x: Any, *, dtype: Any = None, mask: Any = None, **unknown: Any) -> Any:
    """-x"""
    reject_unknown("negative", unknown)
    return elementwise.negative(x, dtype, mask)


def invert(x: Any, *, dtype: Any = None, mask: Any = None, **unknown: Any) -> Any:
    """Every bit of x inverted."""
    reject_unknown("invert", unknown)
    return elementwise.invert(x, dtype, mask)


def logical_not(x: Any, *, dtype: Any = bool, mask: Any = None, **unknown: Any) -> Any:
    """1 where x is 0, else 0."""
    reject_unknown("logical_not", unknown)
    return elementwise.scalar_op(x, "equal", 0.0, dtype, mask)


def floor(x: Any, *, dtype: Any = None, mask: Any = None, **unknown: Any) -> Any:
    """The largest whole number that is not above x: x - (x mod 1), exact in float32."""
    reject_unknown("floor", unknown)
    kind = x.dtype if dtype is None else dtype
    rest = elementwise.scalar_op(x, "mod", 1.0, float32, mask)
    return elementwise.binary("subtract", x, rest, kind, mask)


def ceil(x: Any, *, dtype: Any = None, mask: Any = None, **unknown: Any) -> Any:
    """The smallest whole number that is not below x: -floor(-x)."""
    reject_unknown("ceil", unknown)
    kind = x.dtype if dtype is None else dtype
    below = floor(elementwise.negative(x, float32, mask), mask=mask)
    return elementwise.negative(below, kind, mask)


def trunc(x: Any, *, dtype: Any = None, mask: Any = None, **unknown: Any) -> Any:
    """x rounded towards 0: sign(x) · floor(|x|)."""
    reject_unknown("trunc", unknown)
    kind = x.dtype if dtype is None else dtype
    size = floor(elementwise.unary("abs", x, float32, mask), mask=mask)
    return elementwise.binary("multiply", size, elementwise.unary("sign", x), kind, mask)


def where(
    condition: Any, x: Any, y: Any, *, dtype: Any = None, mask: Any = None, **unknown: Any
) -> Any:
    """x where condition is not 0, else y, bit for bit."""
    reject_unknown("where", unknown)
    return elementwise.where(condition, x, y, dtype, mask)


def mod(x: Any, y: Any, dtype: Any = None, mask: Any = None, **unknown: Any) -> Any:
    """x - floor(x / y) · y, which has y's sign."""
    reject_unknown("mod", unknown)
    return elementwise.binary("mod", x, y, dtype, mask)


def fmod(x: Any, y: Any, dtype: Any = None, mask: Any = None, **unknown: Any) -> Any:
    """x - trunc(x / y) · y, which has x's sign: sign(x) · (|x| mod |y|)."""
    reject_unknown("fmod", unknown)
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


FUNCTIONS: dict[str, Callable[..., Any]] = (
    {name: _unary(name) for name in UNARY}
    | {name: _binary(name) for name in BINARY}
    | {name: _truth(name) for name in TRUTHS}
    | {f.__name__: f for f in (reciprocal, negative, invert, logical_not, floor, ceil, trunc)}
    | {"where": where, "mod": mod, "fmod": fmod, "sin": sin, "cos": cos, "tan": tan}
)
