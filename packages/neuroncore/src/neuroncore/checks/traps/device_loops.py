"""HW45, HW48, HW51: loops on the device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from neuroncore.checks.report import Report
from neuroncore.checks.tensor_labels import label
from neuroncore.checks.touched_operands import AccessedOperands, operand_of, touched_by
from neuroncore.checks.traps.detector import Detector, Probe
from neuroncore.checks.traps.python_state import changes_of_body
from neuroncore.checks.traps.undefined_results import UndefinedResults
from neuroncore.findings import Severity
from neuroncore.instructions import Call
from neuroncore.machine.launch import RUNNING
from neuroncore.machine.observe import Event
from neuroncore.memory import Storage, View
from neuroncore.source_location import Place

FIRST_ORDERED = (0, 4)  # version from which a loop waits for what comes before it [NKI 0.4 notes]

IN_TENSORS = "state in tensors: Python runs the body once"

_Program = tuple[int, ...]


class DeviceLoops(Detector):
    """Counts the iterations of each program, and reads what bodies do to Python objects."""

    def __init__(self, report: Report, undefined: UndefinedResults) -> None:
        super().__init__(report, undefined)
        self._read: set[Place | None] = set()
        self._has_changes = False
        self._counts: dict[Place | None, dict[_Program, int]] = defaultdict(dict)
        self._names: dict[Place | None, str] = {}
        self._programs: set[_Program] = set()
        self._before: dict[Storage, tuple[bool, Place | None]] = {}
        """What instructions outside of loops touched: whether one wrote it, and where."""

    def launched(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self._counts.clear()
        self._programs.clear()
        self._has_changes = False
        self._before.clear()

    def iteration(self, loop: str, place: Place | None) -> None:
        launch = RUNNING.get()
        if launch is not None:
            counts = self._counts[place]
            counts[launch.program] = counts.get(launch.program, 0) + 1
            self._names[place] = loop
        if place not in self._read and not self._has_changes:
            self._read.add(place)
            self._state(loop, place)

    def state_changed(self, loop: str, what: str, place: Place | None) -> None:
        self._has_changes = True
        self.found(
            "HW48", f"{what} in the body of {loop}", place, expected=IN_TENSORS,
            got="Python code that would give another value in each turn",
        )  # fmt: skip

    def returned(self, value: Any) -> None:
        launch = RUNNING.get()
        if launch is not None:
            self._programs.add(launch.program)

    def ended(self, value: Any) -> None:
        for place, counts in self._counts.items():
            every = {program: counts.get(program, 0) for program in sorted(self._programs)}
            if len(set(every.values())) > 1:
                self.found(
                    "HW45", f"the cores take different numbers of iterations of "
                    f"{self._names[place]}", place,
                    expected="one number of iterations on every core",
                    got=", ".join(f"{n} on core {p[0]}" for p, n in every.items()),
                )  # fmt: skip

    def _state(self, loop: str, loop_place: Place | None) -> None:
        for place, what in changes_of_body(loop_place):
            self.found(
                "HW48", f"{what} in the body of {loop}", place,
                expected=IN_TENSORS,
                got=f"the loop at {loop_place}",
            )  # fmt: skip

    def probe(self, call: Call) -> Probe | None:
        if (0, 2) <= call.version < FIRST_ORDERED:
            touched = touched_by(call)
            return lambda event: self._touched(event, touched)
        return None

    def _touched(self, event: Event, touched: AccessedOperands) -> None:
        launch = RUNNING.get()
        if launch is None:
            return
        for name in dict.fromkeys((*touched.reads, *touched.writes)):
            view = operand_of(event.call, event.views, name)
            if not isinstance(view, View):
                continue
            writes = name in touched.writes
            if not launch.bodies:
                wrote = self._before.get(view.storage, (False, None))[0]
                self._before[view.storage] = wrote or writes, event.place
                continue
            before = self._before.get(view.storage)
            if before is not None and (writes or before[0]):
                self.found_at(
                    event, "HW51", f"{name} in the body of {launch.bodies[-1].loop} is used before "
                    "the loop, too", name, severity=Severity.WARNING,
                    expected="a tensor of the loop alone", got=f"{label(view.storage)}, touched at "
                    f"{before[1]}",
                )  # fmt: skip


DETECTOR = DeviceLoops
