"""The table of functions that implement NumPy's, filled by the modules of this package."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from difflib import get_close_matches
from operator import attrgetter
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

_REASONS = {
    "the shape of its result depends on values: keep the shape with np.where": (
        "nonzero argwhere flatnonzero unique unique_all unique_counts unique_inverse unique_values "
        "compress extract"
    ),
    "complex numbers have no dtype on the device: multiply by tables of cosines and sines": (
        "fft ifft fftn ifftn fft2 ifft2 rfft irfft rfftn irfftn hfft ihfft"
    ),
    "its steps depend on values (pivots, convergence): factorize outside of the kernel": (
        "cholesky det eig eigh eigvals eigvalsh inv lstsq matrix_rank pinv qr slogdet solve svd "
        "svdvals"
    ),
    "it needs values, which only exist when the kernel runs": (
        "byteswap ctypes data dump dumps getfield setfield tobytes tofile tostring from_dlpack"
    ),
    "an array of the kernel has its shape and its flags for good: make another one": (
        "resize setflags flags base"
    ),
    "the next number of a format depends on its bits: compute with np.finfo": "nextafter",
    "index the array: a[i, j], np.take, np.take_along_axis, np.where": "choose flat put view",
}
_REASON_OF = {name: reason for reason, names in _REASONS.items() for name in names.split()}
"""NumPy's name → why it is not translated."""


def implements(*names: str) -> Callable[[F], F]:
    """Make a function the implementation of NumPy's functions of these names."""

    def register(implementation: F) -> F:
        NAMES.update(names)
        for name in names:
            with suppress(AttributeError):  # of another NumPy than this one
                FUNCTIONS[attrgetter(name)(np)] = implementation
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
    reason = _REASON_OF.get(name.rpartition(".")[2])
    if reason is not None:
        return reason
    known = {n.rpartition(".")[2]: n for n in sorted(NAMES, reverse=True)}
    found = get_close_matches(name.rpartition(".")[2], known, 1, 0.76)
    most_like = f"the nearest that is: np.{known[found[0]]}; " if found else ""
    return f"{most_like}the README of nkigen-lite lists them all"
