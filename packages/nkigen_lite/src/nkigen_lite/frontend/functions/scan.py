"""Loops over the first axis of arrays, on traced arrays and on NumPy's own alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nkigen_lite.tensors.errors import ValueRangeError


def scan(
    step: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any = None,
    length: int | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """(carry after the last step, what every step left, stacked), as `jax.lax.scan`.

    `step(carry, x)` gives (next carry, y); x is element t of `xs` along its first axis, of each
    array where `xs` is a tuple, None where it is None. y is an array, a tuple of them or None.
    A Python loop over time steps becomes the same kernel.

    >>> scan(lambda total, x: (total + x, total), 0, np.arange(4))[1]
    array([0, 0, 1, 3])
    """
    steps = _steps(xs, length)
    carry, left = init, []
    for t in range(steps):
        carry, y = step(carry, _map(lambda x, t=t: x[t], xs))
        left.append(y)
    if left and isinstance(left[0], tuple):
        return carry, tuple(np.stack(ys) for ys in zip(*left, strict=True))
    return carry, None if not left or left[0] is None else np.stack(left)


def _map(change: Callable[[Any], Any], xs: Any) -> Any:
    if isinstance(xs, tuple):
        return tuple(_map(change, x) for x in xs)
    return None if xs is None else change(xs)


def _steps(xs: Any, length: int | None) -> int:
    """Steps; all arrays must have as many elements. Raises ValueRangeError."""
    found = list(_lengths(xs)) + ([] if length is None else [length])
    if len(set(found)) != 1:
        raise ValueRangeError(
            "scan: arrays of different lengths" if found else "scan: the steps are not counted",
            got=", ".join(map(str, found)) or "no xs and no length",
            hint="give arrays of one first axis, or length=",
        )  # fmt: skip
    return found[0]


def _lengths(xs: Any) -> list[int]:
    if isinstance(xs, tuple):
        return [n for x in xs for n in _lengths(x)]
    return [] if xs is None else [len(xs)]
