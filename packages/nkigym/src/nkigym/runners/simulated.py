"""Runners without a device: the timeline's estimate, and the values of an execution here."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence

from neuroncore.errors import KernelError
from neuroncore.program import execute_program
from neuroncore.timeline import Constants, estimate
from nkigym.runners.protocol import Case, Measurement, with_values


class Timeline:
    """The model's latency, also with other constants; no value is computed."""

    name, hidden_s = "timeline", 0.0

    def __init__(self, constants: Constants | None = None) -> None:
        self._constants = constants

    def measure(self, cases: Sequence[Case], watch: Callable[[Measurement], None]) -> None:
        for case in cases:
            ns = estimate(case.program, mode="as_written", constants=self._constants).total_ns
            watch(Measurement(case.key, "ok", p50_ns=ns, p99_ns=ns, predicted_ns=case.predicted_ns))


class Interpreter:
    """Values of the program, executed with all checks of the machine; no latency."""

    name, hidden_s = "interpreter", 0.0

    def measure(self, cases: Sequence[Case], watch: Callable[[Measurement], None]) -> None:
        for case in cases:
            watch(self._measure(case))

    def _measure(self, case: Case) -> Measurement:
        found = Measurement(case.key, "ok", predicted_ns=case.predicted_ns)
        try:
            outputs = execute_program(case.program, [array.copy() for array in case.inputs])
        except KernelError as wrong:
            log = traceback.format_exc()
            return Measurement(case.key, "error", str(wrong), log, predicted_ns=case.predicted_ns)
        return with_values(case, found, outputs)
