"""Objects that are kernels, and their names."""

from __future__ import annotations

import functools
import inspect
import keyword
import unicodedata
from types import BuiltinFunctionType, MethodDescriptorType
from typing import Any

from neuroncore.errors import LaunchError

_NEVER = (type, BuiltinFunctionType, MethodDescriptorType)


def expect_kernel(value: Any, complaint: str, hint: str | None = None) -> None:
    """Raises LaunchError, which says `complaint`, unless `value` may be a kernel.

    A kernel is callable, neither a class nor a built-in function, and has a signature.
    NumPy's functions may be: a backend may take them.
    """
    if not _may_be_kernel(value):
        raise LaunchError(
            complaint,
            expected="a function, or what nki.jit made of one",
            got=repr(value)[:80] if callable(value) else type(value).__name__,
            hint=hint,
        )


def _may_be_kernel(value: Any) -> bool:
    if not callable(value) or isinstance(value, _NEVER):
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
    return python_name(getattr(kernel, "__name__", None), "kernel")


def python_name(wanted: Any, otherwise: str) -> str:
    """`wanted` as Python reads it in a source (NFKC), where a source may define it.

    Names that begin and end with two underscores are Python's own.
    """
    name = unicodedata.normalize("NFKC", wanted) if isinstance(wanted, str) else ""
    is_pythons = keyword.iskeyword(name) or (name.startswith("__") and name.endswith("__"))
    return name if name.isidentifier() and not is_pythons else otherwise
