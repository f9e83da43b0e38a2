"""Accesses of an executed instruction: storages and registers, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neuroncore.effects.declared import Touch
from neuroncore.effects.footprint import Footprint, footprint
from neuroncore.machine.observe import Event
from neuroncore.memory import Storage, StridedView, View, dynamic_rows, offsets_of
from neuroncore.targets import GPSIMD_PARTITIONS

if TYPE_CHECKING:
    from neuroncore.instructions import Call


@dataclass(frozen=True, slots=True)
class Touched:
    """One place that an instruction touched, through one operand.

    `where` is the storage (in a program: the buffer's name), or the name of an engine's register,
    which has no footprints. A place that has no footprints and is not a register was
    not touched: every index of its access was out of bounds.
    """

    touch: Touch
    operand: str
    where: Storage | str
    footprints: tuple[Footprint, ...]
    is_register: bool = False


def footprint_of(view: StridedView) -> tuple[Footprint, ...]:
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
    found = _picked if spec.indirect.kind == "free" else _gathered
    return tuple(found(view, strides, width))


def _gathered(view: StridedView, strides: tuple[int, ...], width: int) -> Iterator[Footprint]:
    """Rows at equal distances are one footprint."""
    elements, valid = dynamic_rows(view)
    first = (slice(None), *(0 for _ in view.shape[1:]))
    rows = np.unique(elements[first][valid]) * width
    for start, count, step in _progressions(rows):
        yield footprint(start, (count, *view.shape[1:]), (step, *strides[1:]), width)


def _picked(view: StridedView, strides: tuple[int, ...], width: int) -> Iterator[Footprint]:
    """Offsets hold for a group of partitions: those at equal distances are one footprint."""
    assert view.spec.indirect is not None
    for group, offsets in enumerate(offsets_of(view)[::GPSIMD_PARTITIONS]):
        first = view.offset * width + group * GPSIMD_PARTITIONS * strides[0]
        for start, count, step in _progressions(np.unique(offsets)):
            far = view.spec.indirect.stride * width
            yield footprint(
                first + start * far, (GPSIMD_PARTITIONS, count), (strides[0], step * far), width
            )


def _progressions(numbers: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """Rising numbers as (first, how many, distance)."""
    at = 0
    while at < len(numbers):
        count, step = _progression(numbers, at)
        yield int(numbers[at]), count, step
        at += count


def _progression(rows: np.ndarray, start: int) -> tuple[int, int]:
    """How many rows from `start` on lie at one distance, and the distance."""
    steps = np.diff(rows[start:])
    if not steps.size:
        return 1, 0
    other = np.flatnonzero(steps != steps[0])
    return (int(other[0]) if other.size else steps.size) + 1, int(steps[0])


def touched(event: Event | Call, views: Mapping[str, View | Any] | None = None) -> list[Touched]:
    """Accesses of an instruction, by its record, to the bytes that its operands name now.

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


def _at(touch: Touch, operand: str, view: StridedView) -> Touched:
    return Touched(touch, operand, view.storage, footprint_of(view))


def _operand(call: Call, views: Mapping[str, View | Any], name: str) -> StridedView:
    name, _, index = name.partition(".")
    view = views[name]
    if not index:
        return call.touched_part(name, view)
    assert view.dynamic is not None
    return view.dynamic.index


def conflict(a: Touched, b: Touched) -> bool:
    """Whether the order of the two matters: they share a byte or register, and do not both only
    read it, accumulate into it or clobber it.
    """
    if a.touch is b.touch and a.touch is not Touch.write:
        return False
    if a.where != b.where or a.is_register is not b.is_register:
        return False
    return a.is_register or any(x.overlaps(y) for x in a.footprints for y in b.footprints)
