"""Calls that NumPy rejects before it calls a traced array: wrong names and numbers of arguments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import TracebackType
from typing import Any

import numpy as np

from neuroncore.errors import place_of
from nkigen_lite.frontend.arrays.registry import Function
from nkigen_lite.tensors.errors import ArgumentError, UnsupportedKeywordError

_OF_ARGUMENTS = re.compile(r"(\w+)\(\) (got an unexpected|got multiple|takes |missing \d|got some)")
"""As Python says of the arguments of a call."""


@contextmanager
def numpy_argument_errors() -> Iterator[None]:
    """Raises ArgumentError, at the user's line, for calls of NumPy's functions that do not fit
    their signatures. All else is left as it is."""
    try:
        yield
    except TypeError as error:
        said = _OF_ARGUMENTS.match(str(error))
        called = _numpys(said[1]) if said and type(error) is TypeError else None
        if called is None or error.__traceback__ is None:
            raise
        innermost = _last(error.__traceback__)
        if not innermost.tb_frame.f_globals.get("__name__", "").startswith("nkigen_lite."):
            place = place_of(innermost.tb_frame, innermost.tb_lasti)
            raise ArgumentError(
                f"np.{error}", expected=_signature(called), place=place,
                hint="write it as NumPy's documentation has it",
            ) from None  # fmt: skip
        raise


def _numpys(name: str) -> Function | None:
    found = (getattr(owner, name, None) for owner in (np, np.linalg, np.ufunc))
    return next((f for f in found if f is not None), None)


def _last(trace: TracebackType) -> TracebackType:
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def _signature(called: Function) -> str | None:
    try:
        return f"{called.__name__}{inspect.signature(called)}"
    except ValueError:  # of C functions that do not say it
        return None


def bound(name: str, takes: Function, args: Any, kwargs: dict[str, Any]) -> None:
    """Raises ArgumentError for arguments that do not fit what the method takes."""
    try:
        inspect.signature(takes).bind(*args, **kwargs)
    except TypeError as error:
        raise ArgumentError(f"{name}: {error}") from None


# Arguments that change nothing when they are given like this. Never order=, copy=, casting=, mode=.
_HARMLESS: dict[str, tuple[Any, ...]] = {
    "out": (None,), "subok": (False, True),
    "where": (True, np._NoValue), "initial": (np._NoValue,), "keepdims": (np._NoValue,),
    "device": (None, "cpu"), "mean": (np._NoValue,),
    "correction": (np._NoValue,), "min": (np._NoValue,), "max": (np._NoValue,),
    "a_min": (np._NoValue,), "a_max": (np._NoValue,),
    "optimize": (False, True, "greedy", "optimal"),
}  # fmt: skip


def called(
    ours: Function,
    name: str,
    theirs: inspect.Signature,
    args: Any,
    kwargs: dict[str, Any],
) -> Any:
    """Our function with NumPy's arguments. An argument that it does not take is rejected."""
    try:
        given = theirs.bind(*args, **kwargs).arguments
    except TypeError as error:
        raise ArgumentError(f"{name}: {error}") from None
    takes = parameters_of(ours)
    plain, keywords = [], {}
    for parameter, value in given.items():
        if is_default(parameter, value):
            continue
        kind = theirs.parameters[parameter].kind
        if kind is kind.VAR_POSITIONAL:
            plain += value
        elif kind is kind.VAR_KEYWORD:
            keywords |= value
        else:
            keywords[parameter] = value
    for wrong in keywords.keys() - takes:
        raise UnsupportedKeywordError(f"{name}: {wrong}= is not translated", operand=wrong)
    return ours(*plain, **keywords)


def is_default(parameter: str, value: Any) -> bool:
    """Whether the argument changes nothing."""
    if parameter not in _HARMLESS:
        return False
    return any(value is h or (isinstance(h, str) and value == h) for h in _HARMLESS[parameter])


@cache
def parameters_of(function: Function) -> frozenset[str]:
    """The names of the parameters that the function takes."""
    return frozenset(inspect.signature(function).parameters)
