"""Memory that views of an array share. A write makes a new version of the whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from nkigen_lite.frontend.arrays.tape import Tape
from nkigen_lite.tensors.errors import UnsupportedFunctionError, ValueRangeError


@dataclass(slots=True, eq=False)
class Memory:
    """The name of the newest version; and, where writing is not translated, why not."""

    value: str
    unclear: bool = False
    """A reshape of it may be a copy or a view: NumPy's memory order is not known here."""


@dataclass(frozen=True, slots=True)
class ViewStep:
    """From an array to a view of it: one operation of kind view."""

    op: str
    attrs: Mapping[str, Any]
    read_only_by: str = ""
    """The function of NumPy's whose result is not written to, if it is one."""
    operands: tuple[str, ...] = ()
    """The values beside the array: the index of a view at a computed place."""


def values_along(tape: Tape, memory: Memory, path: tuple[ViewStep, ...]) -> list[str]:
    """The value of the whole and of the part after each step."""
    values = [memory.value]
    for step in path:
        values.append(tape.emit(step.op, values[-1], *step.operands, **step.attrs))
    return values


def write(tape: Tape, memory: Memory, path: tuple[ViewStep, ...], value: str) -> None:
    """Leave `value`, which has the spec of the part, in the memory."""
    for step in path:
        if step.read_only_by:
            raise ValueRangeError(
                "assignment destination is read-only",
                hint=f"take .copy() of what {step.read_only_by} gives",
            )
    if memory.unclear:
        raise UnsupportedFunctionError(
            "this write may or may not be seen by another array: NumPy makes a view or a copy of "
            "it by the order of its memory",
            hint="take .copy() before reshaping what is written to later",
        )
    wholes = values_along(tape, memory, path)
    for step, whole in zip(reversed(path), reversed(wholes[:-1]), strict=True):
        if step.operands:
            value = tape.emit("scatter", whole, *step.operands, value, **step.attrs)
        else:
            value = PUT_BACK[step.op](tape, whole, value, step.attrs)
    memory.value = value


# ------------------------------------------------------- the way back of each view


def _slice(tape: Tape, whole: str, part: str, attrs: Mapping[str, Any]) -> str:
    shape, sizes = tape.spec(whole).shape, attrs["sizes"]
    everywhere = all(
        a == 0 and s == 1 for a, s in zip(attrs["starts"], attrs["steps"], strict=True)
    )
    if not prod(sizes):
        return whole
    if shape == sizes and everywhere:
        return part
    return tape.emit("update", whole, part, starts=attrs["starts"], steps=attrs["steps"])


def _transpose(tape: Tape, whole: str, part: str, attrs: Mapping[str, Any]) -> str:
    axes = attrs["axes"]
    return tape.emit("transpose", part, axes=sorted(range(len(axes)), key=axes.__getitem__))


def _reshape(tape: Tape, whole: str, part: str, attrs: Mapping[str, Any]) -> str:
    return tape.emit("reshape", part, shape=tape.spec(whole).shape)


PUT_BACK: dict[str, Callable[[Tape, str, str, Mapping[str, Any]], str]] = {
    "slice": _slice,
    "transpose": _transpose,
    "reshape": _reshape,
}
"""Per view that is written to: the whole's next version, from its last and the part's new value."""
