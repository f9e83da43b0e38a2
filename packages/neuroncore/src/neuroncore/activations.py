"""The activation functions of ScalarE: meaning, valid range, table set, first version.

Every function works on float32 and on float64 arrays alike and computes in the dtype it is given.
Source: NKI reference, supported activation functions; `conventional` marks formulas that the
documents leave unsaid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import erf as exact_erf
from math import inf, pi, sqrt
from typing import Any

import numpy as np

from neuroncore.errors import AttributeValueError

Function = Callable[..., np.ndarray]

_SQRT2 = sqrt(2.0)
_TWO_OVER_SQRT_PI = 2.0 / sqrt(pi)
_ONE_OVER_SQRT_TAU = 1.0 / sqrt(2.0 * pi)


@dataclass(frozen=True, slots=True, eq=False)
class Activation:
    """One function of the table."""

    name: str
    function: Function
    valid: tuple[float, float] = (-inf, inf)
    """The documented input range; outside it hardware gives garbage."""
    valid_of_magnitude: bool = False
    """`valid` bounds |x|."""
    simple: bool = False
    """Needs no table of its own. (A guess: which functions share a table set is not published.)"""
    since: tuple[int, int] = (0, 1)
    conventional: bool = False
    takes_slope: bool = False
    """`function` has a second argument, activate2's relu_param."""

    @property
    def table(self) -> str | None:
        """The table set that must be loaded first."""
        return None if self.simple else self.name

    @property
    def has_out(self) -> bool:
        """Whether `function` is a NumPy ufunc and takes `out=`."""
        return isinstance(self.function, np.ufunc)

    def is_valid(self, x: np.ndarray) -> bool:
        """Whether every element is in the documented range."""
        if self.valid == (-inf, inf):
            return True
        seen = np.abs(x) if self.valid_of_magnitude else x
        return bool(((seen >= self.valid[0]) & (seen <= self.valid[1])).all())

    def __repr__(self) -> str:
        return self.name


def _identity(x: np.ndarray) -> np.ndarray:
    return x


def _relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def _prelu(x: np.ndarray, slope: Any = 0.0) -> np.ndarray:
    return np.where(x < 0, x * slope, x)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    e = np.exp(-np.abs(x))  # never overflows
    return np.where(x >= 0, 1, e) / (1 + e)


def _silu(x: np.ndarray) -> np.ndarray:
    return x * _sigmoid(x)


def _silu_dx(x: np.ndarray) -> np.ndarray:
    s = _sigmoid(x)
    return s * (1 + x * (1 - s))


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _mish(x: np.ndarray) -> np.ndarray:
    return x * np.tanh(_softplus(x))


def _erf(x: np.ndarray) -> np.ndarray:
    """Taylor's series of degree 4 around the nearest of 512 exact points, in float64."""
    points, values, slopes = _erf_table()
    clipped = np.clip(np.asarray(x, np.float64), -_ERF_END, _ERF_END)
    nearest = np.nan_to_num(np.rint((clipped + _ERF_END) / _ERF_STEP)).astype(np.intp)
    a = points[nearest]
    d = clipped - a
    series = d * (1 + d * (-a + d * ((2 * a * a - 1) / 3 + d * (a * (3 - 2 * a * a) / 6))))
    return (values[nearest] + slopes[nearest] * series).astype(x.dtype)


_ERF_END = 6.0  # erf(6) differs from 1 by 2e-17
_ERF_STEP = 1.0 / 64


@cache
def _erf_table() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    points = np.linspace(-_ERF_END, _ERF_END, round(2 * _ERF_END / _ERF_STEP) + 1)
    values = np.array([exact_erf(p) for p in points])
    return points, values, _TWO_OVER_SQRT_PI * np.exp(-points * points)


def _erf_dx(x: np.ndarray) -> np.ndarray:
    return _TWO_OVER_SQRT_PI * np.exp(-x * x)


def _gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + _erf(x / _SQRT2))


def _gelu_dx(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + _erf(x / _SQRT2)) + x * _ONE_OVER_SQRT_TAU * np.exp(-0.5 * x * x)


def _gelu_apprx_tanh(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x)))


def _gelu_apprx_sigmoid(x: np.ndarray) -> np.ndarray:
    return x * _sigmoid(1.702 * x)


def _gelu_apprx_sigmoid_dx(x: np.ndarray) -> np.ndarray:
    s = _sigmoid(1.702 * x)
    return s + 1.702 * x * s * (1 - s)


def _sin(x: np.ndarray) -> np.ndarray:
    """sin inside [-π, π]; outside, the cubic around ±π goes on (sin(9.0) is about 27.65)."""
    beyond = np.abs(x) > pi
    if not beyond.any():
        return np.sin(x)
    d = np.abs(x) - pi
    return np.where(beyond, np.sign(x) * (d * d * d / 6 - d), np.sin(x)).astype(x.dtype)


def _rsqrt(x: np.ndarray) -> np.ndarray:
    return 1 / np.sqrt(x)


ACTIVATIONS: dict[str, Activation] = {
    a.name: a
    for a in (
        Activation("copy", _identity, simple=True),
        Activation("identity", _identity, simple=True),
        Activation("square", np.square, simple=True),
        Activation("abs", np.abs, simple=True),
        Activation("sign", np.sign, simple=True),
        Activation("relu", _relu, simple=True),
        Activation("prelu", _prelu, simple=True, since=(0, 4), takes_slope=True),
        Activation("exp", np.exp),
        Activation("log", np.log, (2.0**-64, 2.0**64)),
        Activation("sqrt", np.sqrt, (2.0**-116, 2.0**118)),
        Activation("rsqrt", _rsqrt, (2.0**-87, 2.0**97)),
        Activation("reciprocal", np.reciprocal, (2.0**-42, 2.0**42), valid_of_magnitude=True),
        Activation("sin", _sin, (-pi, pi)),
        Activation("arctan", np.arctan, (-pi / 2, pi / 2)),
        Activation("tanh", np.tanh),
        Activation("sigmoid", _sigmoid),
        Activation("silu", _silu),
        Activation("silu_dx", _silu_dx),
        Activation("softplus", _softplus),
        Activation("mish", _mish),
        Activation("erf", _erf),
        Activation("erf_dx", _erf_dx),
        Activation("gelu", _gelu, conventional=True),
        Activation("gelu_dx", _gelu_dx, conventional=True),
        Activation("gelu_apprx_tanh", _gelu_apprx_tanh, conventional=True),
        Activation("gelu_apprx_sigmoid", _gelu_apprx_sigmoid, conventional=True),
        Activation(
            "gelu_apprx_sigmoid_dx", _gelu_apprx_sigmoid_dx, since=(0, 2), conventional=True
        ),
    )
}

_NUMPY_NAMES = {"absolute": "abs", "atan": "arctan"}


def activation_function(given: Any) -> Activation:
    """The function that `given` names: an Activation, `nl.exp`, "exp" or (0.1) `np.exp`.

    Raises AttributeValueError for anything else.
    """
    if isinstance(given, Activation):
        return given
    name = given if isinstance(given, str) else getattr(given, "__name__", "")
    found = ACTIVATIONS.get(_NUMPY_NAMES.get(name, name))
    if found is None:
        raise AttributeValueError(
            f"{given!r} is not an activation function",
            expected="one of " + ", ".join(ACTIVATIONS),
            got=repr(given),
            operand="op",
            rule="NKI: supported activation functions",
        )
    return found
