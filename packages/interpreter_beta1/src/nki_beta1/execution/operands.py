"""Operands of instructions: their kinds, and the errors for other values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Never

import numpy as np

from neuroncore.errors import AccessError, Place, SignatureError
from neuroncore.instructions import Instruction, Operand
from neuroncore.machine.core import NeuronCore
from neuroncore.memory import View
from neuroncore.spec import Spec

Kind = Spec | type | None
"""What an operand contributes to a signature: a tensor its spec, a number its type."""

_NUMBERS = (int, float, np.integer, np.floating, np.bool_)
_LARGEST = int(np.finfo(np.float64).max)


def kinds_of(core: NeuronCore, operands: Sequence[Any]) -> list[Kind]:
    """The kinds of operands; a pending tensor is executed.

    Raises AccessError for a tensor of another core.
    """
    return [
        v.spec.initialized if isinstance(v, View) and (v.core is core or reject_foreign(v))
        else None if v is None else kind_of_number(v)
        for v in operands
    ]  # fmt: skip


def reject_foreign(tensor: View, place: Place | None = None) -> Never:
    """Raise AccessError for a tensor of an earlier launch or program."""
    raise AccessError(
        "a tensor of another launch, or of another program of the grid",
        expected="tensors that this program was given or made",
        got=repr(tensor),
        hint="return what a later kernel needs, and give it that as an argument",
        rule="NKI 0.1: tensors live as long as the program that made them",
        place=place,
    )


def kind_of_number(value: Any) -> type:
    """The class of a number or None; raises SignatureError for an int beyond floats."""
    kind = value.__class__
    if kind is int and not -_LARGEST <= value <= _LARGEST:
        raise SignatureError(
            f"a number of {value.bit_length()} bits",
            expected=f"numbers up to {np.finfo(np.float64).max:.3g}",
            rule="NKI 0.1: numbers",
        )
    return kind


def takes(operand: Operand, kind: Kind) -> bool:
    """Whether the operand takes a value of that kind."""
    if isinstance(kind, Spec):
        return operand.tile
    if kind is None:
        return operand.optional
    return operand.number and issubclass(kind, _NUMBERS)


def mismatch(record: Instruction, field: str, value: Any) -> SignatureError:
    """The error for a value that is not of its operand's kind."""
    operand = record.operands[field]
    kinds = ["a tile"] * operand.tile + ["a number"] * operand.number
    return SignatureError(
        f"{field} cannot be " + ("None" if value is None else f"a {type(value).__name__}"),
        expected=" or ".join(kinds),
        got=repr(value).partition("\n")[0][:80],
        hint="arrays become tensors as arguments of the kernel"
        if isinstance(value, np.ndarray)
        else None,
        operand=field,
        instruction=record.name,
    )


def without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for n in shape if n != 1)
