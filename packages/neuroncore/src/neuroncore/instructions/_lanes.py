"""What instructions with one value per partition share: reading it, computing with it, limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from neuroncore.alu import AluOp
from neuroncore.errors import AttributeValueError
from neuroncore.instructions._numerics import reader
from neuroncore.instructions._record import Call
from neuroncore.instructions._shapes import per_partition
from neuroncore.spec import Spec
from nki_dtypes import ALL, float32

FLOAT32 = frozenset({float32})
FLOATS = frozenset(d for d in ALL if d.is_float and not d.is_packed)

Stage = Callable[[np.ndarray, Any, np.ndarray], np.ndarray]
"""stage(x, y, out): one operation on float32, into the float32 array `out`."""


def stage(op: AluOp, reverse: bool = False) -> Stage:
    """`op` as a stage: op(x, y), or op(y, x) when reversed; unary operations ignore y."""
    function = op.function
    if op.is_unary:
        return lambda x, y, out: function(x, out=out)
    if reverse:
        return lambda x, y, out: function(y, x, out=out)
    by_name = function in (np.maximum, np.minimum)  # NumPy deprecates their third by position
    if isinstance(function, np.ufunc) and not by_name:  # `out` by position costs less
        return function
    return lambda x, y, out: function(x, y, out=out)


def lane_value(given: Spec | type | None, shape: tuple[int, ...]) -> Callable[[Any], Any]:
    """How an operand that is a number or a (P, 1) tile becomes float32 against a tile of `shape`.

    None stays None.
    """
    if given is None:
        return lambda nothing: None
    if isinstance(given, Spec):
        return reader(given, per_partition(shape))
    return np.float32


def scalar_stage(c: Call, shape: tuple[int, ...]) -> Stage:
    """op0(x, operand0) into `out`; a unary operation takes None or 0."""
    compute, value = stage(c.op0, c.reverse0), lane_value(c.operand0, shape)
    if not c.op0.is_unary:
        return lambda x, operand0, out: compute(x, value(operand0), out)

    def unary(x: np.ndarray, operand0: Any, out: np.ndarray) -> np.ndarray:
        _zero_for_unary(c, operand0)
        return compute(x, None, out)

    return unary


def _zero_for_unary(c: Call, number: Any) -> None:
    """A unary operation's operand is None or 0; raises AttributeValueError otherwise."""
    if number is None or (isinstance(number, (int, float, np.number)) and number == 0):
        return
    raise AttributeValueError(
        f"{c.op0.name} takes one operand, operand0 is given", expected="None or 0",
        got=repr(number)[:80], operand="operand0", instruction=c.record.name,
        rule=f"NKI: {c.record.name}, unary operations",
    )  # fmt: skip
