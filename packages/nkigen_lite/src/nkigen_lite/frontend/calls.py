"""Calls that NumPy refuses before it asks a traced array: wrong names and numbers of arguments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import numpy as np

from neuroncore.errors import place_of
from nkigen_lite.errors import ArgumentError

_OF_ARGUMENTS = re.compile(r"(\w+)\(\) (got an unexpected|got multiple|takes |missing \d|got some)")
"""As Python says of the arguments of a call."""


@contextmanager
def numpys_refusals() -> Iterator[None]:
    """Raises ArgumentError, at the user's line, for calls of NumPy's functions that do not fit
    their signatures. All else is left as it is."""
    try:
        yield
    except TypeError as refused:
        said = _OF_ARGUMENTS.match(str(refused))
        called = _numpys(said[1]) if said and type(refused) is TypeError else None
        if called is None or refused.__traceback__ is None:
            raise
        innermost = _last(refused.__traceback__)
        if not innermost.tb_frame.f_globals.get("__name__", "").startswith("nkigen_lite."):
            place = place_of(innermost.tb_frame, innermost.tb_lasti)
            raise ArgumentError(
                f"np.{refused}", expected=_signature(called), place=place,
                hint="write it as NumPy's documentation has it",
            ) from None  # fmt: skip
        raise


def _numpys(name: str) -> Callable[..., Any] | None:
    found = (getattr(owner, name, None) for owner in (np, np.linalg, np.ufunc))
    return next((f for f in found if f is not None), None)


def _last(trace: TracebackType) -> TracebackType:
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def _signature(called: Callable[..., Any]) -> str | None:
    try:
        return f"{called.__name__}{inspect.signature(called)}"
    except ValueError:  # of C functions that do not say it
        return None


def bound(name: str, takes: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> None:
    """Raises ArgumentError for arguments that do not fit what the method takes."""
    try:
        inspect.signature(takes).bind(*args, **kwargs)
    except TypeError as refused:
        raise ArgumentError(f"{name}: {refused}") from None
