"""Lower bounds of float values, proved from what computes them."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np

from nkigen_lite.ir import Builder, Node

_FARTHEST = 24
"""Operations that a proof goes back."""
_SLACK = 1 - 2.0**-20
"""What the rounded sum of equal numbers, times a rounded 1/n, may lose."""
_AT_LEAST_ZERO = frozenset({"square", "abs", "exp", "sqrt", "sigmoid", "softmax"})
_MOVES = frozenset({"transpose", "reshape", "broadcast_to", "slice", "concatenate"})


def least(build: Builder, value: str) -> float:
    """No element of the value is less, except NaN; -inf where nothing is known."""
    return _Bounds(build).of(value, _FARTHEST)


def is_never_zero(build: Builder, value: str) -> bool:
    """Whether no element is 0: all are larger, or ones have been put where zeros were."""
    node = build.by_name.get(value)
    return least(build, value) > 0 or (node is not None and _replaces_zeros(build, node))


def _made_by(build: Builder, value: str, op: str) -> Node | None:
    """The node that makes the value, if it is of this operation."""
    node = build.by_name.get(value)
    return node if node is not None and node.op == op else None


def _replaces_zeros(build: Builder, node: Node) -> bool:
    """(x == 0) + x."""
    if node.op != "add":
        return False
    truth, x = node.operands
    known = _made_by(build, truth, "convert")
    condition = _made_by(build, known.operands[0], "equal") if known else None
    if condition is None or condition.operands[0] != x:
        return False
    number = _made_by(build, condition.operands[1], "constant")
    return number is not None and number.attrs["value"].uniform == 0


class _Bounds:
    """The bounds of one graph's values, each proved once."""

    def __init__(self, build: Builder) -> None:
        self.build = build
        self.known: dict[str, float] = {}

    def of(self, value: str, farthest: int) -> float:
        if value not in self.known:
            found = self._proved(value, farthest)
            self.known[value] = -inf if np.isnan(found) else found
        return self.known[value]

    def _proved(self, value: str, farthest: int) -> float:
        node = self.build.by_name.get(value)
        if node is None or not farthest or not node.spec.dtype.is_float:
            return -inf
        if node.op in _AT_LEAST_ZERO:
            return 0.0
        if node.op == "constant":
            array = node.attrs["value"].array
            return float(np.min(array.astype(np.float64))) if array.size else -inf
        if node.op == "sum" and _has_one(self.build, node):
            return 1.0
        bound = _BOUNDS.get(node.op)
        if bound is None:
            return -inf
        with np.errstate(all="ignore"):
            found = bound(*(self._operand(o, farthest - 1) for o in node.operands))
            return found if found == -inf else float(np.asarray(found).astype(node.spec.storage))

    def _operand(self, value: str, farthest: int) -> float:
        """Unsigned integers and bool are at least 0."""
        dtype = self.build.specs[value].dtype
        return self.of(value, farthest) if dtype.is_float else 0.0 if dtype.min >= 0 else -inf


def _has_one(build: Builder, node: Node) -> bool:
    """Whether the sum is of e^(x - max x) over the axes of the maximum."""
    exponential = _made_by(build, node.operands[0], "exp")
    difference = _made_by(build, exponential.operands[0], "subtract") if exponential else None
    if difference is None:
        return False
    x, largest = difference.operands
    found = build.by_name.get(largest)
    while found is not None and found.op in ("reshape", "broadcast_to"):
        found = build.by_name.get(found.operands[0])
    if found is None or found.op != "max" or found.operands != (x,):
        return False
    return bool(found.attrs["axes"] == node.attrs["axes"])


# ------------------------------------------------------------------- by operation


# Rounding keeps the order: a rounded result is not less than the rounded result of the bounds.


def _multiply(a: float, b: float) -> float:
    return a * b if a >= 0 and b >= 0 else -inf


def _average(of: float) -> float:
    return of * _SLACK if of >= 0 else -inf


_BOUNDS: dict[str, Callable[..., float]] = {
    "add": lambda a, b: a + b,
    "multiply": _multiply,
    "divide": lambda a, b: 0.0 if a >= 0 and b > 0 else -inf,
    **dict.fromkeys(("reciprocal", "rsqrt"), lambda of: 0.0 if of > 0 else -inf),
    "maximum": max,
    "minimum": min,
    "where": lambda condition, a, b: min(a, b),
    "sum": lambda of: of if of >= 0 else -inf,
    "mean": _average,
    **dict.fromkeys(("cast", "convert", "max", "min", *_MOVES), lambda *of: min(of)),
}
"""Operation → the bound of its result from its operands' bounds, before it is rounded."""
