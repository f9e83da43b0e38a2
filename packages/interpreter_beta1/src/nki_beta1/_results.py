"""What a kernel may return, and has to."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from neuroncore.engines import HBM, Space
from neuroncore.errors import LaunchError, MemorySpaceError, Place
from neuroncore.memory import View
from nki_beta1._not_an_array import NotAnArray
from nki_beta1._words import described


def check_results(function: Callable[..., Any], result: Any) -> None:
    """Raise for a result that is no tensor in HBM; beside tensors, numbers may go."""
    _check_each(function, result)
    if result is not None and next(_tensors(result), None) is None:
        raise LaunchError(
            f"kernel {function.__name__} returns {described(result)} and no tensor",
            expected="a tensor in HBM, or nothing",
            got=repr(result).partition("\n")[0][:80],
            hint="what a kernel computes is stored to nl.ndarray(…, buffer=nl.shared_hbm)",
            place=_place_of_return(function),
            rule=_OUTPUTS,
        )


def _check_each(function: Callable[..., Any], result: Any) -> None:
    if isinstance(result, (tuple, list, dict)):
        for part in result.values() if isinstance(result, dict) else result:
            _check_each(function, part)
    elif isinstance(result, View) and result.buffer is Space.private_hbm:
        raise MemorySpaceError(
            f"kernel {function.__name__} returns a tensor in PRIVATE_HBM",
            expected="a tensor in SHARED_HBM",
            got=f"shape {result.spec!r}",
            hint="make it with nl.ndarray(…, buffer=nl.shared_hbm)",
            place=_place_of_return(function),
            rule=_OUTPUTS,
        )
    elif isinstance(result, View) and result.buffer not in HBM:
        raise MemorySpaceError(
            f"kernel {function.__name__} returns a tensor in {result.buffer.name.upper()}",
            expected="a tensor in HBM",
            got=f"shape {result.spec!r}",
            hint="store it to nl.ndarray(…, buffer=nl.shared_hbm) and return that",
            place=_place_of_return(function),
            rule=_OUTPUTS,
        )
    elif isinstance(result, (np.ndarray, NotAnArray)) and not isinstance(result, View):
        raise LaunchError(
            f"kernel {function.__name__} returns {described(result)}",
            expected="a tensor in HBM",
            got=repr(result).partition("\n")[0][:80],
            hint="what a kernel computes is stored to nl.ndarray(…, buffer=nl.shared_hbm)",
            place=_place_of_return(function),
            rule=_OUTPUTS,
        )


_OUTPUTS = "NKI 0.1: kernel outputs"


def _place_of_return(function: Callable[..., Any]) -> Place | None:
    """The return statement, where the kernel has one that gives something, else its first line."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:  # an object that is called
        return None
    steps = [i for i in dis.get_instructions(code) if i.opname == "RETURN_VALUE" and i.positions]
    found = {i.positions for i in steps if i.positions and i.positions.col_offset is not None}
    if len(found) != 1:
        return Place(code.co_filename, code.co_firstlineno)
    line, end_line, column, end_column = found.pop()
    return Place(code.co_filename, line or 0, column or 0, end_line, end_column)


class Written:
    """The tensors of parameters that a kernel may write, as they were before it ran."""

    def __init__(self, given: Mapping[str | int, Any]) -> None:
        tensors = {name: value for name, value in given.items() if isinstance(value, View)}
        self._before = [(name, view, view.array.copy()) for name, view in tensors.items()]

    def check_returned(self, function: Callable[..., Any], result: Any) -> None:
        """Raise LaunchError for one that has been changed and is not among the results."""
        returned = {id(view.storage) for view in _tensors(result)} if self._before else set()
        for name, view, before in self._before:
            if id(view.storage) in returned or np.array_equal(before, view.array, equal_nan=True):
                continue
            names = list(inspect.signature(function).parameters)
            shown = names[name] if isinstance(name, int) else name
            raise LaunchError(
                f"kernel {function.__name__} writes {shown} and does not return it",
                expected=f"{shown} among the results",
                got=f"shape {view.spec!r}",
                hint="what a kernel changes is its output: return it",
                place=_place_of_return(function),
                rule="NKI 0.1: nt.mutable_tensor is written and returned",
            )


def _tensors(result: Any) -> Iterator[View]:
    if isinstance(result, View):
        yield result
    elif isinstance(result, (tuple, list, dict)):
        for part in result.values() if isinstance(result, dict) else result:
            yield from _tensors(part)
