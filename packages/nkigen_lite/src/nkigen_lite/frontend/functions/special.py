"""Functions of neural networks that NumPy lacks: on traced arrays and on NumPy's own alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from nkigen_lite.frontend.arrays.array import TracedArray
from nkigen_lite.frontend.arrays.promotion import as_value, fresh, narrowed, operand, resolved
from nkigen_lite.ops import OPS


def _special(name: str, x: Any) -> Any:
    """Types as of np.sqrt. NumPy arrays are computed in float64 and rounded once."""
    given = operand(x)
    if not isinstance(given, TracedArray):
        array = np.asarray(given)
        (_, makes) = np.sqrt.resolve_dtypes((array.dtype, None))
        return OPS[name].compute((array.astype(np.float64),), {}).astype(makes)[()]
    takes, makes = resolved(name, lambda: np.sqrt.resolve_dtypes((given.dtype, None)))
    value = as_value(given.tape, given, takes, name)
    assert narrowed(takes) is narrowed(makes)
    return fresh(given.tape, given.tape.emit(name, value), makes, (given,))


def rsqrt(x: Any) -> Any:
    """1 / √x."""
    return _special("rsqrt", x)


def sigmoid(x: Any) -> Any:
    """1 / (1 + e⁻ˣ)."""
    return _special("sigmoid", x)


def silu(x: Any) -> Any:
    """x · sigmoid(x)."""
    return _special("silu", x)


def gelu(x: Any) -> Any:
    """x · (1 + erf(x / √2)) / 2."""
    return _special("gelu", x)


def erf(x: Any) -> Any:
    """2/√π · ∫₀ˣ e^(-t²) dt."""
    return _special("erf", x)
