"""`memory`: reads of bytes that nothing has written.

What a tensor holds before its first write is undefined on a device: the machine shows NaN, which a
maximum, a select or an integer may hide. Every element of a read is looked up in flags that writes
set, one per element (per byte where views see the bytes in other sizes).

In 0.1 undefined elements are carried through VectorE and ScalarE (see
neuroncore.machine.undefined). What a loop on the device makes is undefined once its turn has ended
(see `loop_scopes`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from neuroncore.checks._check import Check
from neuroncore.checks.loop_scopes import Bodies
from neuroncore.checks.report import Report
from neuroncore.checks.tensor_labels import Lines, Made, described, label, tensors_in
from neuroncore.checks.touched_operands import (
    AccessedOperands,
    chosen_by,
    kept,
    operand_of,
    tensors_read,
    touched_by,
)
from neuroncore.findings import Finding
from neuroncore.instructions import Call
from neuroncore.machine.observe import Event, Watcher
from neuroncore.machine.undefined import carries, comes_by_element, defined
from neuroncore.memory import (
    Shadow,
    Storage,
    View,
    first_byte,
    is_gathered,
    is_whole,
    named_elements,
    resolve_scalar,
)

RULE = "NKI language guide: the content of a new tensor is undefined"
RUNS_SHOWN = 4  # boxes of rows that an index names, in a message


@dataclass(slots=True)
class _Content:
    """The written part of a tensor: all, nothing, or flags."""

    written: bool | Shadow
    made: Made

    def flags(self, storage: Storage) -> Shadow:
        if isinstance(self.written, bool):
            self.written = Shadow.beside(storage, self.written)
        return self.written


@dataclass(frozen=True, slots=True)
class _Plan:
    """The effects of one call on memory."""

    touched: AccessedOperands
    carries: bool
    """Whether what it makes of undefined elements is undefined, instead of a finding."""
    by_element: bool
    """Whether an element of the result comes from the one in its place, else from its row."""


class Memory(Watcher):
    """Follows which bytes have been written and reports reads of others.

    With `spreads`, what any instruction makes of undefined elements row by row is undefined,
    instead of a finding.
    """

    def __init__(self, report: Report, spreads: bool = False) -> None:
        self.report = report
        self._spreads = spreads
        self._bodies = Bodies(report)
        self._lines = Lines()
        self._plans: dict[Call, _Plan] = {}

    # -- what happens -----------------------------------------------------------------------------

    def allocated(self, storage: Storage) -> None:
        assert storage.notes is not None
        storage.notes[self] = _Content(not storage.fresh, self._lines.made(storage))
        if not storage.constant:  # a constant is there before the kernel runs
            self._bodies.made(storage)

    def shared(self, storage: Storage) -> None:
        if not storage.constant:
            self._bodies.made(storage)

    def register(self, cell: View) -> None:
        self._bodies.forget(cell.storage)

    def will(self, event: Event) -> None:
        call, views = event.call, event.views
        plan = self._plans.get(call)
        if plan is None:
            plan = self._plans[call] = _plan(call, self._spreads)
        touched = plan.touched
        self._bodies.touched(event, touched)
        chosen = chosen_by(event, touched)
        undefined: list[np.ndarray] = []
        for name, view in tensors_read(event, touched, chosen):
            missing = self._missing(event, view)
            if missing is None:
                continue
            if plan.carries and _same_rows(view, views[touched.writes[0]]):
                undefined.append(missing)
            else:
                self._report(event, name, view, missing)
        for name in touched.writes:
            view = operand_of(call, views, name)
            content = _content(self, view.storage)
            if content.written is not True or undefined:
                where = event.mask if chosen is None else chosen
                self._write(view, content, where, defined(plan.by_element, undefined, view.shape))

    def moved(
        self,
        dst: View,
        src: View | None,
        at: np.ndarray | None = None,
        of: np.ndarray | None = None,
    ) -> None:
        self._bodies.used((dst, src))
        content = _content(self, dst.storage)
        arriving: Any = True
        if src is not None:
            source = _content(self, src.storage)
            if source.written is not True:
                arriving = _per_element(source.flags(src.storage).of(src), src).reshape(-1)
                arriving = arriving if of is None else arriving[of]
        if arriving is True and (at is None and is_whole(dst)):
            content.written = True
            return
        flags = content.flags(dst.storage).of(dst)
        assert flags is not None
        numbers = np.arange(dst.size) if at is None else at
        if flags.ndim > dst.ndim and arriving is not True:
            arriving = arriving[:, None]
        flags[np.unravel_index(numbers, dst.shape)] = arriving

    def shown(self, view: View) -> None:
        self._bodies.used((view,))

    def returned(self, value: Any) -> None:
        self._bodies.returned(tensors_in(value))

    def ended(self, value: Any) -> None:
        for view in tensors_in(value):
            content = _content(self, view.storage)
            if content.written is not True:
                self._returned(view, content)

    # -- what it means ----------------------------------------------------------------------------

    def unwritten(self, view: View) -> np.ndarray | None:
        """The elements of a view that nothing has written, as bool; None where there is none."""
        content = _content(self, view.storage)
        if content.written is True:
            return None
        if content.written is False:
            return np.ones(view.shape, np.bool_)
        flags = content.flags(view.storage).get(view)
        if flags is None:
            return None
        if flags.all():
            if is_whole(view):
                content.written = True
            return None
        return np.logical_not(_per_element(flags, view))

    def _missing(self, event: Event, view: View) -> np.ndarray | None:
        """The elements of a read that nothing has written; None where there is none."""
        missing = self.unwritten(view)
        counts = None if missing is None else kept(event.mask, view.shape)
        if missing is None or counts is None:
            return missing
        missing = np.logical_and(missing, counts)
        return missing if missing.any() else None

    def _write(
        self, view: View, content: _Content, where: np.ndarray | None, sound: np.ndarray | None
    ) -> None:
        if sound is None and where is None and is_whole(view):
            content.written = True
        elif sound is None:
            content.flags(view.storage).put(view, True, where)
        else:
            chosen = sound if where is None else np.logical_and(sound, where)
            lost = np.logical_not(sound)
            lost = lost if where is None else np.logical_and(lost, where)
            content.flags(view.storage).put(view, True, chosen)
            content.flags(view.storage).put(view, False, lost)

    def _report(self, event: Event, name: str, view: View, missing: np.ndarray | None) -> None:
        found = Finding(
            "memory", f"{name} reads elements that nothing has written", event.place,
            instruction=event.call.record.name, operand=name,
        )  # fmt: skip
        if self.report.again(found):
            return
        made = view.storage.place
        self.report.add(
            replace(
                found,
                message=f"{name} reads {_count(view, missing)} that nothing has written",
                expected="every element written before it is read",
                got=f"{_where(view, missing)}, unwritten",
                cure="write it first (nisa.memset), or read only the part that was written",
                source=RULE,
                notes=()
                if made is None
                else (f"allocated at {made}{_content(self, view.storage).made}",),
            )
        )

    def _returned(self, view: View, content: _Content) -> None:
        flags = None if content.written is False else content.flags(view.storage).of(view)
        if flags is not None and flags.all():
            return
        missing = None if flags is None else np.logical_not(_per_element(flags, view))
        self.report.add(
            Finding(
                "memory",
                f"the kernel returns {_count(view, missing)} that nothing has written",
                view.storage.place,
                expected="every element of a result written",
                got=f"{_where(view, missing)}, unwritten",
                source=RULE,
                code="result",
            )
        )


def _plan(call: Call, spreads: bool) -> _Plan:
    touched = touched_by(call)
    is_carried = (spreads or carries(call)) and bool(touched.writes)
    return _Plan(touched, is_carried, comes_by_element(call))


def _content(watcher: Memory, storage: Storage) -> _Content:
    assert storage.notes is not None
    return storage.notes[watcher]


def _per_element(flags: np.ndarray | None, view: View) -> np.ndarray:
    """Whether all bytes of each element are flagged."""
    assert flags is not None
    return np.all(flags, axis=-1) if flags.ndim > view.ndim else flags


def _same_rows(view: View, result: View) -> bool:
    """Whether row p of a result is made of row p of an operand."""
    return view.shape[0] == result.shape[0]


# -- words ----------------------------------------------------------------------------------------


def _count(view: View, missing: np.ndarray | None) -> str:
    if missing is None or missing.all():
        return f"{view.size:,} element" + "s" * (view.size > 1)
    return f"{np.count_nonzero(missing):,} of {view.size:,} elements"


def _where(view: View, missing: np.ndarray | None) -> str:
    """The unwritten elements as boxes of the tensor: acc[0:128, 256:512]; elements that an index
    names, row by row.
    """
    storage = view.storage
    if missing is None:
        return f"{label(storage)}: {described(storage)}"
    numbers = np.unique(_named(view, missing) // storage.flat.itemsize)
    runs = [numbers]
    if is_gathered(view):
        rows = numbers // (storage.flat.size // storage.shape[0])
        runs = np.split(numbers, np.flatnonzero(np.diff(rows) > 1) + 1)
    shown = ", ".join(_box(storage, run) for run in runs[:RUNS_SHOWN])
    more = f" and {len(runs) - RUNS_SHOWN} more" if len(runs) > RUNS_SHOWN else ""
    return f"{shown}{more} of {described(storage)}"


def _named(view: View, missing: np.ndarray) -> np.ndarray:
    """Where in the storage the bytes of these elements begin."""
    if not is_gathered(view):
        now = view if view.dynamic is None else resolve_scalar(view, skips=True) or view
        return first_byte(now) + np.argwhere(missing) @ np.asarray(view.array.strides)
    elements, valid = named_elements(view)
    missing = missing[valid] if len(missing) == len(valid) else missing
    return elements[valid][missing] * view.array.itemsize


def _box(storage: Storage, numbers: np.ndarray) -> str:
    """The box around elements, and how many there are where they do not fill it."""
    places = np.unravel_index(numbers, storage.shape)
    box = [(int(p.min()), int(p.max()) + 1) for p in places]
    text = ", ".join(str(low) if high - low == 1 else f"{low}:{high}" for low, high in box)
    full = np.prod([high - low for low, high in box]) == len(numbers)
    return f"{label(storage)}[{text}]" + ("" if full else f" ({len(numbers):,} elements in it)")


CHECK = Check(
    "memory",
    "no instruction reads an element that nothing has written, or uses a tensor of a device "
    "loop's body after it",
    Memory,
)
