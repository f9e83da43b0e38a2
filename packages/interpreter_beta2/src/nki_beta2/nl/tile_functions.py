"""`nl` functions on tiles (0.3 and later): each is made of instructions with new tiles.

Results are in SBUF and in the operands' dtype, where the documents do not say otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import prod
from typing import Any

from neuroncore.activations import ACTIVATIONS
from neuroncore.alu import ALU_OPS, AluKind
from neuroncore.enums import Engine
from neuroncore.errors import AttributeValueError, ShapeError
from neuroncore.machine import trigonometry
from neuroncore.machine.core import as_shape
from neuroncore.memory import View
from nki_beta2.nl import arithmetic
from nki_beta2.nl.arithmetic import RULE, binary, copy, isa, new, reduced, repeat, scalar, spread
from nki_dtypes import float32, int32, uint8

_WHOLE = 2.0**23  # float32 numbers from here on are whole


def _unary(name: str) -> Callable[..., View]:
    def function(x: View, dtype: Any = None) -> View:
        return arithmetic.unary(name, x, dtype)

    return _named(function, name, f"{name}(x), element by element.")


def rsqrt_since_0_5(x: View, dtype: Any = None) -> View:
    """1 / sqrt(x) by GpSimdE, which does not reach PSUM [NKI 0.5: release notes]."""
    return scalar(x, "rsqrt", 0.0, dtype, engine=Engine.gpsimd)


def _binary(name: str) -> Callable[..., View]:
    def function(x: Any, y: Any, dtype: Any = None) -> View:
        arithmetic.check_shapes(x, y)
        return binary(name, x, y, dtype)

    return _named(function, name, f"{name}(x, y), element by element.")


def _reduction(name: str, op: str) -> Callable[..., View]:
    def function(x: View, axis: Any, dtype: Any = None, keepdims: bool = False) -> View:
        return reduced(op, x, axis, dtype, keepdims)

    return _named(function, name, f"`{op}` over the trailing free axes that `axis` names.")


def _of_any_argument(name: str) -> Callable[..., View]:
    recipe = trigonometry.TRIGONOMETRY[name]

    def function(x: View, dtype: Any = None) -> View:
        return recipe(sys.modules[arithmetic.__name__], x, dtype or x.dtype)  # type: ignore[arg-type]

    return _named(function, name, f"{recipe.__doc__}; the argument is reduced to [-π, π] first.")


def _named(function: Callable[..., View], name: str, meaning: str) -> Callable[..., View]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = meaning
    return function


# -- element by element ---------------------------------------------------------------------------


def reciprocal(x: View, dtype: Any = None) -> View:
    """1 / x"""
    out = new(x.shape, dtype or x.dtype)
    isa("reciprocal")(out, x)
    return out


def negative(x: View, dtype: Any = None) -> View:
    """-x"""
    return scalar(x, "multiply", -1.0, dtype)


def invert(x: View, dtype: Any = None) -> View:
    """Every bit of x inverted."""
    return scalar(x, "invert", None, dtype)


def logical_not(x: View, dtype: Any = None) -> View:
    """1 where x is 0, else 0."""
    return scalar(x, "equal", 0.0, dtype)


def floor(x: View, dtype: Any = None) -> View:
    """The largest whole number that is not above x, of every float32."""
    near = copy(scalar(x, "add", 0.0, int32), float32)  # rounded to nearest
    below = binary("subtract", near, binary("greater", near, x, float32), float32)
    small = scalar(arithmetic.unary("abs", x, float32), "less", _WHOLE, uint8)
    return _chosen(small, below, x, dtype or x.dtype)


def ceil(x: View, dtype: Any = None) -> View:
    """The smallest whole number that is not below x: -floor(-x)."""
    return negative(floor(negative(x, float32)), dtype or x.dtype)


def trunc(x: View, dtype: Any = None) -> View:
    """x rounded towards 0: sign(x) · floor(|x|)."""
    size = floor(arithmetic.unary("abs", x, float32))
    return binary("multiply", size, arithmetic.unary("sign", x, float32), dtype or x.dtype)


def fmod(x: Any, y: Any, dtype: Any = None) -> View:
    """x - trunc(x / y) · y, which has x's sign: sign(x) · (|x| mod |y|). Fails on hardware."""
    arithmetic.check_shapes(x, y)
    kind = dtype or arithmetic.kind_of(x, y)
    rest = binary("mod", _magnitude(x), _magnitude(y), float32)
    if not isinstance(x, View):
        return scalar(rest, "multiply", -1.0 if x < 0 else 1.0, kind)
    return binary("multiply", rest, arithmetic.unary("sign", x, float32), kind)


def _magnitude(value: Any) -> Any:
    return arithmetic.unary("abs", value, float32) if isinstance(value, View) else abs(value)


def where(condition: View, x: Any, y: Any, dtype: Any = None) -> View:
    """x where condition is not 0, else y: bit for bit, NaN and infinity included."""
    chosen = scalar(condition, "not_equal", 0.0, uint8)
    return _chosen(chosen, x, y, dtype or arithmetic.kind_of(x, y))


def _chosen(predicate: View, x: Any, y: Any, dtype: Any) -> View:
    out = _filled(y, predicate.shape, dtype)
    if isinstance(x, View) and (x.dtype is not out.dtype or x.shape != out.shape):
        x = _filled(x, predicate.shape, dtype)
    isa("tensor_copy_predicated")(out, x, predicate)
    return out


def _filled(value: Any, shape: tuple[int, ...], dtype: Any) -> View:
    """A new tile with a tile's elements, or with a number everywhere."""
    out = new(shape, dtype)
    if isinstance(value, View):
        isa("tensor_copy")(out, repeat(value, arithmetic.common_shape(value, out)))
    else:
        isa("memset")(out, value)
    return out


# -- along axes -----------------------------------------------------------------------------------


def all_true(x: View, axis: Any, dtype: Any = None) -> View:
    """1 where all elements over the trailing free axes differ from 0, else 0."""
    return reduced("logical_and", x, axis, dtype)


def mean(x: View, axis: Any, dtype: Any = None, keepdims: bool = False) -> View:
    """The mean over trailing free axes: in float32, rounded once."""
    total = reduced("add", x, axis, float32, keepdims)
    return scalar(total, "multiply", 1.0 / _count(x, axis), dtype or x.dtype)


def var(x: View, axis: Any, dtype: Any = None, keepdims: bool = False) -> View:
    """The population variance over trailing free axes, which stay with extent 1.

    keepdims is documented to be without effect.
    """
    center = mean(x, axis, float32, True)
    squares = arithmetic.unary("square", binary("subtract", x, center, float32))
    return mean(squares, axis, dtype or x.dtype, True)


def softmax(x: View, axis: Any = -1, dtype: Any = None) -> View:
    """exp(x - max(x)) / sum(exp(x - max(x))) over trailing free axes, in float32."""
    top = reduced("maximum", x, axis, float32, True)
    powers = arithmetic.unary("exp", binary("subtract", x, top, float32))
    total = reduced("add", powers, axis, float32, True)
    return binary("divide", powers, total, dtype or x.dtype)


def rms_norm(
    x: View, w: View, axis: Any, n: float, epsilon: float = 1e-6, dtype: Any = None,
    compute_dtype: Any = None,
) -> View:  # fmt: skip
    """x / sqrt(sum(x², axis) / n + epsilon) · w; w may have one partition."""
    if not n:
        raise AttributeValueError(
            f"n={n!r}, and the sum of squares is divided by it", expected="the number of elements",
            operand="n", position=3, rule=RULE,
        )  # fmt: skip
    inside = compute_dtype or float32
    squares = reduced("add", arithmetic.unary("square", x, inside), axis, float32, True)
    shifted = scalar(squares, "multiply", 1.0 / n, float32, op1="add", operand1=float(epsilon))
    normal = binary("multiply", x, arithmetic.unary("rsqrt", shifted), inside)
    return binary("multiply", normal, spread(w, x.shape[0]), dtype or x.dtype)


def _count(x: View, axis: Any) -> int:
    return prod(x.shape[a] for a in (axis if isinstance(axis, (tuple, list)) else (axis,)))


def broadcast_to(x: View, shape: Any, dtype: Any = None) -> View:
    """x with axes of extent 1 repeated, as a new tile; x itself where nothing changes."""
    wanted = as_shape(shape, position=1)
    fits = len(wanted) == x.ndim and all(m in (1, n) for m, n in zip(x.shape, wanted, strict=True))
    if not fits:
        raise ShapeError(
            f"a tile of shape {x.shape} does not broadcast to {wanted}",
            expected="the same rank, and on every axis the same extent or 1", operand="shape",
            position=1, rule=RULE,
        )  # fmt: skip
    if wanted == x.shape and dtype is None:
        return x
    return copy(repeat(spread(x, wanted[0]), wanted), dtype or x.dtype)


def expand_dims(x: View, axis: int) -> View:
    """A view of x with an axis of extent 1 at `axis`."""
    return View.expand_dim(x, axis + x.ndim + 1 if axis < 0 else axis)


def _functions() -> dict[str, Callable[..., Any]]:
    unaries = {name: _unary(name) for name in ACTIVATIONS if name not in ("identity", "prelu")}
    binaries = {
        name: _binary(name)
        for name, op in ALU_OPS.items()
        if op.kind is not AluKind.unary and name != "invert"
    }
    reductions = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}
    own = (reciprocal, negative, invert, logical_not, floor, ceil, trunc, fmod, where, mean, var,
           softmax, rms_norm, broadcast_to, expand_dims)  # fmt: skip
    return (
        unaries
        | binaries
        | {name: _reduction(name, op) for name, op in reductions.items()}
        | {name: _of_any_argument(name) for name in trigonometry.TRIGONOMETRY}
        | {f.__name__: f for f in own}
        | {"all": all_true}
    )


FUNCTIONS = _functions()
"""By name, for every version that has functions on tiles."""
