"""A kernel's parameters: which of them it may write."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from neuroncore.errors import ImmutableError
from neuroncore.machine.launch import RUNNING
from nki_beta1.access.access import Access


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
