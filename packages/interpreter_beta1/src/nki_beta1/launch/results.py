"""Outputs of kernels: parameters that they may write, tensors that they may or have to return."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Never

import numpy as np

from neuroncore.enums import HBM, MemorySpace
from neuroncore.errors import ImmutableError, KernelError, LaunchError, MemorySpaceError, Place
from neuroncore.machine.core import NeuronCore
from neuroncore.machine.launch import RUNNING
from neuroncore.memory import View
from nki_beta1.access.access import Access
from nki_beta1.execution.operands import reject_foreign
from nki_beta1.values.special_methods import NotAnArray, described


def mutable_parameters(function: Callable[..., Any]) -> set[str | int]:
    """Parameters annotated with nt.mutable_tensor or nt.tensor[nt.mutable], by name and position.

    Annotations may be strings (`from __future__ import annotations`).
    """
    found: set[str | int] = set()
    for position, (name, parameter) in enumerate(inspect.signature(function).parameters.items()):
        if "mutable" in str(parameter.annotation):
            found |= {name, position}
    return found


def immutable(dst: Any, instruction: str) -> ImmutableError:
    """The error for a write to a parameter that is not, or cannot be, mutable."""
    tensor = dst.base if isinstance(dst, Access) else dst
    core: Any = tensor.core
    launch = RUNNING.get()
    if launch is not None and id(tensor.storage) in launch.copied_arguments:
        return ImmutableError(
            "two arguments share memory, and the kernel writes one of them",
            expected="distinct arrays, one array twice, or C-contiguous arrays",
            got=launch.copied_arguments[id(tensor.storage)],
            hint="pass a copy of one, or give the kernel one parameter for both",
            operand="dst",
            instruction=instruction,
        )
    is_array = id(tensor.storage) in core.of_read_only_arrays
    return ImmutableError(
        "dst is a kernel parameter, and the caller's array is read-only"
        if is_array
        else "dst is a kernel parameter, which is read-only",
        got=f"shape {dst.shape}",
        hint="pass a copy of the array, which can be written"
        if is_array
        else "store to nl.ndarray(…, buffer=nl.shared_hbm) and return it, or annotate the "
        "parameter with nt.mutable_tensor",
        operand="dst",
        instruction=instruction,
        rule="NKI 0.1: kernel parameters are immutable",
    )


def check_results(function: Callable[..., Any], result: Any, core: NeuronCore) -> None:
    """Raise for a result that is not a tensor in HBM; numbers may accompany tensors.

    Raises AccessError for a tensor of another launch than that of `core`.
    """
    for part in _parts(result):
        if isinstance(part, View):
            _check_tensor(function, part, core)
        elif isinstance(part, (np.ndarray, NotAnArray)):
            _reject(function, described(part), part, "a tensor in HBM", _STORED)
    if result is not None and next(tensors_in(result), None) is None:
        expected = "a tensor in HBM, or nothing"
        _reject(function, f"{described(result)} and no tensor", result, expected, _STORED)


def _check_tensor(function: Callable[..., Any], tensor: View, core: NeuronCore) -> None:
    if tensor.core is not core:
        reject_foreign(tensor, _place_of_return(function))
    space = tensor.buffer
    if space is MemorySpace.private_hbm:
        expected, hint = "a tensor in SHARED_HBM", f"make it with {_OUTPUT}"
    elif space not in HBM:
        expected, hint = "a tensor in HBM", f"store it to {_OUTPUT} and return that"
    else:
        return
    _reject(function, f"a tensor in {space.name.upper()}", tensor, expected, hint, MemorySpaceError)


def _reject(
    function: Callable[..., Any],
    returned: str,
    value: Any,
    expected: str,
    hint: str,
    kind: type[KernelError] = LaunchError,
) -> Never:
    raise kind(
        f"kernel {function.__name__} returns {returned}",
        expected=expected,
        got=f"shape {value.spec!r}" if isinstance(value, View) else _first_line(value),
        hint=hint,
        place=_place_of_return(function),
        rule="NKI 0.1: kernel outputs",
    )


def _first_line(value: Any) -> str:
    return repr(value).partition("\n")[0][:80]


_OUTPUT = "nl.ndarray(…, buffer=nl.shared_hbm)"
_STORED = f"what a kernel computes is stored to {_OUTPUT}"


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
        returned = list(tensors_in(result)) if self._before else []
        for name, view, before in self._before:
            if any(np.may_share_memory(view.array, one.array) for one in returned):
                continue
            if np.array_equal(before, view.array, equal_nan=True):
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


def read_only(given: Mapping[str | int, Any]) -> set[int]:
    """The storages (by id) of tensors among these that may not be written."""
    tensors = [tensor for value in given.values() for tensor in tensors_in(value)]
    return {id(tensor.storage) for tensor in tensors if not tensor.spec.mutable}


def tensors_in(result: Any) -> Iterator[View]:
    """The tensors in tuples, lists and dicts, nested ones included."""
    return (part for part in _parts(result) if isinstance(part, View))


def _parts(result: Any) -> Iterator[Any]:
    """The items of tuples, lists and dicts, nested ones included."""
    if isinstance(result, (tuple, list, dict)):
        for part in result.values() if isinstance(result, dict) else result:
            yield from _parts(part)
    else:
        yield result
