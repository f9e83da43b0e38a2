"""What to tell someone whose arguments do not fit an instruction's signature."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from neuroncore.instructions import Operand
from neuroncore.surface import VERSIONS, Signature, signature, span


def kinds(operand: Operand) -> str:
    """What an operand may be, in words."""
    named = ["a tensor"] if operand.tile else []
    named += ["a number"] if operand.number else []
    named += ["None"] if operand.optional else []
    return " or ".join(named)


def describe(value: Any) -> str:
    """A value on one short line."""
    if isinstance(value, np.ndarray):
        return f"a NumPy array of shape {value.shape}, {value.dtype}"
    return repr(value).partition("\n")[0][:80]


def is_function(value: Any) -> bool:
    """Whether someone else's function stands where an operation of the language belongs."""
    numpys = type(value).__module__.partition(".")[0] == "numpy" and callable(value)
    return numpys or isinstance(value, (FunctionType, BuiltinFunctionType))


def array_hint(value: Any) -> str | None:
    """A NumPy array is a tensor only as an argument of the kernel."""
    if isinstance(value, np.ndarray):
        return "arrays become tensors as arguments of the kernel: pass it to the kernel's call"
    return None


def unknown_hint(given: Signature, name: str) -> str | None:
    """About a parameter that this version lacks: who has it, or which name may be meant."""
    if name in ("mask", "dtype"):
        return "mask= and dtype= ended with 0.1: clamp slices with min(), and put the dtype on dst"
    having = versions_where(given.name, lambda s: any(p.name == name for p in s.params))
    if having:
        return f"{name} is a parameter in NKI {span(having)}"
    near = difflib.get_close_matches(name, [p.name for p in given.params], n=1)
    return f"did you mean {near[0]}?" if near else None


def order_hint(given: Signature, position: int) -> str | None:
    """Another version that has something else at this position: the call may be written for it."""

    def at(s: Signature) -> str | None:
        return s.params[position].name if position < len(s.params) else None

    others = versions_where(given.name, lambda s: at(s) not in (None, at(given)))
    if not others:
        return None
    other = signature(given.name, others[-1])
    return f"by position? NKI {span(others)} took {other}"


def versions_where(name: str, holds: Callable[[Signature], bool]) -> list[str]:
    """The versions from 0.2 on in which instruction `name` has a signature like that."""
    found = {v: signature(name, v) for v in VERSIONS if v != "0.1"}
    return [v for v, s in found.items() if s is not None and holds(s)]
