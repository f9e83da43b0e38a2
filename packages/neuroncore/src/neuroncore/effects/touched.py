"""What an executed instruction touched: storages and registers, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neuroncore.effects.declared import Touch
from neuroncore.effects.footprint import Footprint, footprint
from neuroncore.memory import Storage, View, dynamic_rows
from neuroncore.observe import Event

if TYPE_CHECKING:
    from neuroncore.instructions import Call


@dataclass(frozen=True, slots=True)
class Touched:
    """One place that an instruction touched, through one operand.

    `where` is the storage (in a program: the buffer's name), or the name of an engine's register,
    which has no footprints. A place without footprints that is no register was not touched: every
    index of its access was out of bounds.
    """

    touch: Touch
    operand: str
    where: Storage | str
    footprints: tuple[Footprint, ...]
    is_register: bool = False


def footprint_of(view: View) -> tuple[Footprint, ...]:
    """The bytes that a view names now.

    Of a dynamic view, those at the present values of its index; rows whose index is out of bounds
    are left out. Raises AccessError for a row that starts in bounds and leaves the tensor.
    """
    spec, width = view.spec, view.spec.dtype.itemsize
    strides = tuple([s * width for s in spec.strides])
    if view.dynamic is None or spec.indirect is None:
        return (footprint(view.offset * width, spec.shape, strides, width),)
    if spec.indirect.kind == "scalar":
        dynamic = view.dynamic
        index = int(dynamic.index.array.reshape(-1)[0])
        if not 0 <= index < dynamic.limit:
            return ()
        offset = view.offset + index * dynamic.stride
        return (footprint(offset * width, spec.shape, strides, width),)
    return tuple(_gathered(view, strides, width))


def _gathered(view: View, strides: tuple[int, ...], width: int) -> Iterator[Footprint]:
    """Rows at equal distances are one footprint."""
    elements, valid = dynamic_rows(view)
    first = (slice(None), *(0 for _ in view.shape[1:]))
    rows = np.unique(elements[first][valid]) * width
    start = 0
    while start < len(rows):
        count, step = _progression(rows, start)
        shape = (count, *view.shape[1:])
        yield footprint(int(rows[start]), shape, (step, *strides[1:]), width)
        start += count


def _progression(rows: np.ndarray, start: int) -> tuple[int, int]:
    """How many rows from `start` on lie at one distance, and the distance."""
    steps = np.diff(rows[start:])
    if not steps.size:
        return 1, 0
    other = np.flatnonzero(steps != steps[0])
    return (int(other[0]) if other.size else steps.size) + 1, int(steps[0])


def touched(event: Event | Call, views: Mapping[str, View | Any] | None = None) -> list[Touched]:
    """What an instruction touches, by its record, at the bytes that its operands name now.

    `event` is what a watcher gets, or a call with the `views` it works on. The index of a dynamic
    operand is read as operand "<name>.index".
    """
    call, views = (event.call, event.views) if isinstance(event, Event) else (event, views or {})
    return [
        Touched(e.touch, e.operand, e.operand, (), is_register=True)
        if e.is_register
        else _at(e.touch, e.operand, _operand(call, views, e.operand))
        for e in call.record.effects(call)
    ]


def _at(touch: Touch, operand: str, view: View) -> Touched:
    return Touched(touch, operand, view.storage, footprint_of(view))


def _operand(call: Call, views: Mapping[str, View | Any], name: str) -> View:
    name, _, index = name.partition(".")
    view = views[name]
    if not index:
        return call.touched_part(name, view)
    assert view.dynamic is not None
    return view.dynamic.index


def conflict(a: Touched, b: Touched) -> bool:
    """Whether the order of the two matters: they share a byte or register, and not both only read
    it or both only accumulate into it.
    """
    if a.touch is b.touch and a.touch is not Touch.write:
        return False
    if a.where != b.where or a.is_register is not b.is_register:
        return False
    return a.is_register or any(x.overlaps(y) for x in a.footprints for y in b.footprints)
