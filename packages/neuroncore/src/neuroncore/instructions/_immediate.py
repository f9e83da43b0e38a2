"""Immediate operands: the numbers that an instruction takes in place of a tile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from neuroncore.errors import SignatureError, Violation
from neuroncore.instructions._record import Call

LARGEST = int(np.finfo(np.float64).max)
"""Largest int that an instruction takes: immediates pass through floats."""


def is_beyond(value: Any) -> bool:
    """Whether it is an int that no float comes near to."""
    return isinstance(value, int) and not -LARGEST <= value <= LARGEST


def too_large(name: str, value: int) -> Violation:
    """What is wrong with such an int as the operand called `name`."""
    return Violation(
        SignatureError, f"{name} is a number of {value.bit_length()} bits", name,
        expected=f"numbers up to {float(LARGEST):.3g}", rule="NKI: compile-time constants",
    )  # fmt: skip


def bounded(call: Call, execute: Callable[..., Any]) -> Callable[..., Any]:
    """`execute`, with an error of ours for ints that are too large; without ints, as it is."""
    places = [(i, name) for i, (name, kind) in enumerate(call.specs.items()) if kind is int]
    if not places:
        return execute

    def run(*operands: Any) -> Any:
        try:
            return execute(*operands)
        except OverflowError:
            wrong = next(
                (too_large(n, operands[i]) for i, n in places if is_beyond(operands[i])), None
            )
            if wrong is None:
                raise
        raise wrong.error(
            wrong.what, expected=wrong.expected, rule=wrong.rule, operand=wrong.operand,
            instruction=call.record.name,
        )  # fmt: skip

    return run
