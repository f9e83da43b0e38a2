"""The instructions of the machine: one record each, found by name in INSTRUCTIONS."""

from neuroncore.enums import MaskBehaviour
from neuroncore.instructions._cost import has_guessed_cost
from neuroncore.instructions._execute import plan
from neuroncore.instructions._limits import KernelWarning, check, check_recorded, warn_at_kernel
from neuroncore.instructions._record import (
    Attr,
    Call,
    Example,
    In,
    Instruction,
    Limit,
    Operand,
    Out,
    TableInput,
)
from neuroncore.instructions._registry import INSTRUCTIONS

__all__ = [
    "INSTRUCTIONS",
    "Attr",
    "Call",
    "Example",
    "In",
    "Instruction",
    "KernelWarning",
    "Limit",
    "MaskBehaviour",
    "Operand",
    "Out",
    "TableInput",
    "check",
    "check_recorded",
    "has_guessed_cost",
    "plan",
    "warn_at_kernel",
]
