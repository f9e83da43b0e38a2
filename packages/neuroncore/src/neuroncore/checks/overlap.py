"""`overlap`: tensors at explicit addresses that take one another's content away.

Two such tensors may share bytes as long as no one looks at what the other has written over: a
content lives from the write that made it to its last read, and a tensor that is written anew is as
good as new. Inside one instruction a result may lie exactly where an operand lies, element on
element, if the instruction works element by element. Where a tensor without an address will lie is
the compiler's to decide, so such tensors are left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from neuroncore._caret import Place
from neuroncore.checks._in_place import disturbs
from neuroncore.checks._owners import Memory, Tensor, tensor_of
from neuroncore.checks._tensors import Lines
from neuroncore.checks._touched import Touched, kept, operand_of, touched_by
from neuroncore.checks.findings import Finding, Report
from neuroncore.engines import Space
from neuroncore.instructions import Call
from neuroncore.launch import RUNNING
from neuroncore.memory import Storage, View
from neuroncore.observe import Event, Watcher

RULE = "NKI direct allocation guide: tensors that are alive together do not share memory"


class Overlap(Watcher):
    """Follows which tensor wrote last where, and who looks for something else."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self._memories: dict[tuple[int, Space], Memory] = {}
        """Of the running program of each launch, by its number."""
        self._touched: dict[Call, Touched] = {}
        self._number = 0
        self._lines = Lines()

    def allocated(self, storage: Storage) -> None:
        if storage.address is None or not storage.space.on_chip or RUNNING.get() is None:
            return
        self._number += 1
        assert storage.notes is not None
        storage.notes[self] = tensor_of(storage, self._number, self._lines.made(storage))

    def will(self, event: Event) -> None:
        call, views = event.call, event.views
        if not any(isinstance(v, View) and v.storage.address for v in views.values()):
            return
        touched = self._touched.get(call)
        if touched is None:
            touched = self._touched[call] = touched_by(call)
        chosen = None if touched.covers else call.record.chooses(call, views)
        for name in touched.reads:
            view = operand_of(call, views, name)
            if isinstance(view, View) and (chosen is None or name not in touched.writes):
                where = None if event.mask is None else kept(event.mask, view.shape)
                if not self._is_lost(view, where, event.place):
                    for result in touched.writes:
                        self._in_place(event, result, name, view)
        for name in touched.writes:
            self._written(operand_of(call, views, name), event.mask if chosen is None else chosen)

    def moved(
        self,
        dst: View,
        src: View | None,
        at: np.ndarray | None = None,
        of: np.ndarray | None = None,
    ) -> None:
        if src is not None:
            self._is_lost(src, _chosen(src, of), None)
        self._written(dst, _chosen(dst, at))

    def returned(self, value: Any) -> None:
        launch = RUNNING.get()
        if launch is not None:
            for space in (Space.sbuf, Space.psum):
                self._memories.pop((launch.number, space), None)

    # -- what it means ----------------------------------------------------------------------------

    def _tensor(self, view: View) -> Tensor | None:
        notes = view.storage.notes
        return notes.get(self) if notes else None

    def _written(self, view: View, where: np.ndarray | None) -> None:
        tensor, launch = self._tensor(view), RUNNING.get()
        if tensor is not None and launch is not None:
            key = launch.number, view.storage.space
            self._memories.setdefault(key, Memory()).write(tensor, view, where)

    def _is_lost(self, view: View, where: np.ndarray | None, place: Place | None) -> bool:
        """Whether a read at `place` looks for what has been overwritten; reported."""
        earlier = self._tensor(view)
        later = None if earlier is None else earlier.overwriter(view, where)
        if earlier is None or later is None:
            return False
        memory = view.storage.space.name.upper()
        found = Finding(
            "overlap",
            f"{later.called} overwrites {earlier.called}, which is used afterwards",
            later.place,
            expected=f"another address, or {earlier.called} written again before it is used"
            + (f" ({place})" if place else ""),
            got=f"{later.called} at {later} of {memory}; {earlier.called} at {earlier} of {memory}",
            rule=RULE,
            notes=(f"{earlier.called} is allocated at {earlier.place}",),
        )
        self.report.add(found)
        return True

    def _in_place(self, event: Event, result: str, name: str, operand: View) -> None:
        """Report an instruction that writes over what it has yet to read."""
        written = event.views[result]
        to, of = self._tensor(written), self._tensor(operand)
        if to is None or of is None or to is of or not to.shares_with(of):
            return
        if operand.storage.space is not written.storage.space:
            return
        found = Finding(
            "overlap", f"{result} overwrites {name} while it is read", event.place,
            instruction=event.call.record.name, operand=result,
        )  # fmt: skip
        if disturbs(event.call, written, operand) and not self.report.again(found):
            memory = written.storage.space.name.upper()
            self.report.add(
                replace(
                    found,
                    expected="another address, or an instruction that works element by element "
                    "and a result exactly where its operand lies",
                    got=f"{to.called} at {to} of {memory}; {of.called} at {of} of {memory}",
                    rule=RULE,
                )
            )


def _chosen(view: View, numbers: np.ndarray | None) -> np.ndarray | None:
    """Where in a view the elements of these numbers are."""
    if numbers is None:
        return None
    where = np.zeros(view.size, np.bool_)
    where[numbers] = True
    return where.reshape(view.shape)
