"""What every reference starts with: its inputs as they are, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def wide(x: Any) -> Array:
    """The values of an array in float64."""
    return np.asarray(x, np.float64)
