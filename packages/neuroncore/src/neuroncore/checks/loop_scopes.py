"""Tensors that end with an iteration of a device loop, and their uses after it.

A device loop has one body, and what is declared in it is not visible outside (NKI 0.6). Python here
runs the body once a turn, so that a list or a closure may carry a tensor out, or into the next
turn: a device has no such tensor.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from neuroncore.checks.report import Report
from neuroncore.checks.tensor_labels import described, label
from neuroncore.checks.touched_operands import AccessedOperands, operand_of
from neuroncore.findings import Certainty, Finding, Severity
from neuroncore.machine.launch import RUNNING, Body
from neuroncore.machine.observe import Event
from neuroncore.memory import Storage, View
from neuroncore.source_location import Place, find_place

RULE = "NKI 0.6: loops on the device, tensors declared in the body are not visible outside"
_UNDOCUMENTED = "; no document of an earlier version says it"


class Bodies:
    """Follows the tensors of device loops and reports uses after their turn has ended."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._has_any = False

    def made(self, storage: Storage) -> None:
        """A program has come to where this tensor is made; more than one may share it."""
        launch = RUNNING.get()
        if launch is None or not launch.bodies:
            return
        assert storage.notes is not None
        self._has_any = True
        storage.notes.setdefault(self, {})[launch.program] = launch.bodies[-1]

    def forget(self, storage: Storage) -> None:
        """It is a register, which persists from turn to turn."""
        if storage.notes is not None:
            storage.notes.pop(self, None)

    def touched(self, event: Event, touched: AccessedOperands) -> None:
        """Report the operands of an instruction that have ended."""
        if self._has_any:
            for name in dict.fromkeys((*touched.reads, *touched.writes)):
                view = operand_of(event.call, event.views, name)
                self._look(view, name, event.place, event)

    def used(self, views: Iterable[View | None]) -> None:
        """Report tensors that have ended and that a language moves or shows by itself."""
        if self._has_any:
            for view in views:
                self._look(view, "the tensor", find_place())

    def returned(self, views: Iterable[View]) -> None:
        """Report results that have ended."""
        if self._has_any:
            for view in views:
                self._look(view, "the kernel's result", view.storage.place)

    def _look(
        self, view: object, what: str, place: Place | None, event: Event | None = None
    ) -> None:
        """Report a tensor whose turn has ended for the program that runs."""
        launch = RUNNING.get()
        if launch is None or not isinstance(view, View) or view.storage.notes is None:
            return
        body = view.storage.notes.get(self, {}).get(launch.program)
        if body is not None and not body.is_open:
            found = _finding(view.storage, body, what, place)
            if event is not None:
                found = replace(found, instruction=event.call.record.name, operand=what)
            self._report.add(found)


def _finding(storage: Storage, body: Body, what: str, place: Place | None) -> Finding:
    return Finding(
        "memory",
        f"{what} was made in the body of {body.loop}, in a turn that has ended",
        place,
        Severity.ERROR if body.is_documented else Severity.WARNING,
        certainty=Certainty.DOCUMENTED if body.is_documented else Certainty.ASSUMED,
        expected="a tensor made before the loop, or used in the turn that makes it",
        got=f"{label(storage)}: {described(storage)}",
        cure="make it before the loop and write it in the body",
        source=RULE if body.is_documented else RULE + _UNDOCUMENTED,
        code="body",
        notes=(f"allocated at {storage.place}", f"the loop is at {body.place}"),
    )
