"""The protocol of a trap detector, and the findings that it reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from neuroncore.checks.report import Report
from neuroncore.checks.traps.catalog import traps
from neuroncore.checks.traps.undefined_results import UndefinedResults
from neuroncore.findings import Finding, Position, Severity
from neuroncore.instructions import Call
from neuroncore.machine.observe import Event, Watcher

Probe = Callable[[Event], None]
"""What examines one instruction before it runs."""


class Detector(Watcher):
    """A part of the check, for the traps of one subject.

    `probe` decides once per call whether its executions are examined. `undefined` receives what
    an instruction leaves undefined on a device.
    """

    def __init__(self, report: Report, undefined: UndefinedResults) -> None:
        self.report = report
        self.undefined = undefined

    def probe(self, call: Call) -> Probe | None:
        """The function that examines each execution of the call; None where none does."""
        return None

    def found(
        self,
        trap: str,
        message: str,
        place: Position | None,
        *,
        expected: str | None = None,
        got: str | Callable[[], str] | None = None,
        severity: Severity = Severity.ERROR,
        instruction: str | None = None,
        operand: str | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        """Report a trap; the parts that its record has come from there."""
        finding = Finding(
            "traps", message, place, severity, code=trap, instruction=instruction, operand=operand
        )
        if self.report.again(finding):
            return
        record = traps()[trap]
        self.report.add(
            replace(
                finding,
                certainty=record.certainty,
                expected=expected,
                got=got() if callable(got) else got,
                cure=record.cure,
                source=record.source,
                notes=(f"device: {record.device}", *notes),
            )
        )

    def found_at(self, event: Event, trap: str, message: str, operand: str, **more: Any) -> None:
        """Report a trap of an instruction."""
        name = event.call.record.name
        self.found(trap, message, event.place, instruction=name, operand=operand, **more)
