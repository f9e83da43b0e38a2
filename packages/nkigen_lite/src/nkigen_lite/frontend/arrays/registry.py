"""The table of functions that implement NumPy's, filled by the modules of this package."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, TypeVar

import numpy as np

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)

NAMES: set[str] = set()
"""NumPy's names that are implemented, those included that this NumPy does not have."""
FUNCTIONS: dict[Function, Function] = {}
"""NumPy's function → the same function of traced arrays."""
UFUNCS: dict[np.ufunc, Function] = {}
"""Universal function → (tape, operands) → results, for functions that are not one operation."""

_VALUE_DEPENDENT = frozenset(
    {"nonzero", "argwhere", "flatnonzero", "unique", "compress", "extract"}
)


def implements(*names: str) -> Callable[[F], F]:
    """Make a function the implementation of NumPy's functions of these names."""

    def register(implementation: F) -> F:
        NAMES.update(names)
        for name in names:
            module, _, last = name.rpartition(".")
            function = getattr(getattr(np, module) if module else np, last, None)
            if function is not None:
                FUNCTIONS[function] = implementation
        return implementation

    return register


def implements_ufunc(*names: str) -> Callable[[F], F]:
    """Make a function of (tape, operands) the implementation of these universal functions."""

    def register(implementation: F) -> F:
        UFUNCS.update((getattr(np, name), implementation) for name in names if hasattr(np, name))
        NAMES.update(ufunc.__name__ for ufunc in UFUNCS)
        return implementation

    return register


def suggestion(name: str) -> str:
    """A hint for a NumPy name without implementation: the implemented name most like it."""
    if name.rpartition(".")[2] in _VALUE_DEPENDENT:
        return "the shape of its result depends on values: keep the shape with np.where"
    known = {n.rpartition(".")[2]: n for n in sorted(NAMES, reverse=True)}
    found = get_close_matches(name.rpartition(".")[2], known, 1, 0.76)
    most_like = f"the nearest that is: np.{known[found[0]]}; " if found else ""
    return f"{most_like}the README of nkigen-lite lists them all"
