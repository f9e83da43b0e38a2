"""What may be a kernel, and what it is called."""

from __future__ import annotations

import functools
import inspect
import keyword
from types import BuiltinFunctionType
from typing import Any

from neuroncore.errors import LaunchError


def expect_kernel(value: Any, complaint: str, hint: str | None = None) -> None:
    """Raises LaunchError, which says `complaint`, unless `value` may be a kernel.

    A kernel is called, is no class and none of Python's own functions, and says what it takes.
    """
    if not _may_be_kernel(value):
        raise LaunchError(
            complaint,
            expected="a function, or what nki.jit made of one",
            got=repr(value)[:80] if callable(value) else type(value).__name__,
            hint=hint,
        )


def _may_be_kernel(value: Any) -> bool:
    if not callable(value) or isinstance(value, (type, BuiltinFunctionType)):
        return False
    try:
        inspect.signature(value)
    except (TypeError, ValueError):  # some functions written in C
        return False
    return True


def name_of(kernel: Any) -> str:
    """The kernel's name where it is one that Python can define, else `kernel` (a lambda, say)."""
    while isinstance(kernel, functools.partial):
        kernel = kernel.func
    name = getattr(kernel, "__name__", "")
    return name if can_be_assigned(name) else "kernel"


def can_be_assigned(name: str) -> bool:
    """Whether Python takes it as the name of a variable or function."""
    return name.isidentifier() and not keyword.iskeyword(name) and name != "__debug__"
