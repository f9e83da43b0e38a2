"""Specs among the arguments of a kernel: shape and dtype of an array that nobody has made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroncore.core import as_dtype
from neuroncore.errors import KernelError, LaunchError

EXPECTED = "a (shape, dtype) pair, or an object with .shape and .dtype"


@dataclass(slots=True)
class Zeros:
    """Makes arrays of zeros of specs; `found` says whether there was one."""

    found: bool = False

    def to_arrays(self, value: Any) -> Any:
        """`value` with an array for every spec, also inside tuples, lists and dicts.

        Raises LaunchError for a spec of a shape or dtype that no tensor has.
        """
        if isinstance(value, (np.ndarray, np.generic)):
            return value
        if _names_a_dtype(value):
            if len(value) != 2:
                raise LaunchError(
                    f"a spec of {len(value)} parts", expected=EXPECTED, got=repr(value)[:80]
                )
            return self._zeros(value[0], value[1], value)
        if type(value) in (list, tuple):
            return type(value)(map(self.to_arrays, value))
        if type(value) is dict:
            return {key: self.to_arrays(item) for key, item in value.items()}
        if hasattr(value, "shape") and hasattr(value, "dtype"):
            return self._zeros(value.shape, value.dtype, value)
        return value

    def _zeros(self, shape: Any, dtype: Any, spec: Any) -> np.ndarray:
        self.found = True
        try:
            sizes = tuple(shape)
            if not all(isinstance(n, (int, np.integer)) and n > 0 for n in sizes):
                raise TypeError
            return np.zeros(sizes, as_dtype(dtype).storage)
        except (TypeError, ValueError):
            wrong, expected = f"shape {shape!r}", "positive ints"
        except KernelError as unknown:
            wrong, expected = unknown.what, unknown.expected or EXPECTED
        raise LaunchError(f"a spec of {wrong}", expected=expected, got=repr(spec)[:80])

    def copied(self, value: Any) -> Any:
        """`value` with copies of its arrays."""
        if isinstance(value, np.ndarray):
            copy = value.copy()
            copy.flags.writeable = value.flags.writeable
            return copy
        if type(value) in (list, tuple):
            return type(value)(map(self.copied, value))
        if type(value) is dict:
            return {key: self.copied(item) for key, item in value.items()}
        return value


def _names_a_dtype(value: Any) -> bool:
    """Whether it begins as (shape, dtype): ints first, then what is no number and no container."""
    if type(value) is not tuple or len(value) < 2 or type(value[0]) not in (tuple, list):
        return False
    numbers = all(isinstance(n, (int, np.integer)) for n in value[0])
    return numbers and not isinstance(value[1], (int, float, tuple, list, dict, np.ndarray))
