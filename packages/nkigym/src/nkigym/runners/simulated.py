"""Runners without a device: the timeline's estimate, and the values of an execution here."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from neuroncore.errors import KernelError
from neuroncore.program import execute_program, parse_program
from neuroncore.timeline import Constants, estimate
from nkigym.runners.background import Run, failure
from nkigym.runners.protocol import Case, Measurement, with_values
from tokenplan.executors import Event, Failed, Finished, Job, Report, pool


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

    def __init__(self, jobs: int = 1) -> None:
        self.jobs = jobs

    def measure(self, cases: Sequence[Case], watch: Callable[[Measurement], None]) -> None:
        for case in cases:
            watch(self._measure(case))

    def begin(self, watch: Callable[[Measurement], None]) -> Run:
        """Cases that processes execute as they are submitted."""
        return _Executed(watch, pool(self.jobs, preload=__name__))

    def _measure(self, case: Case) -> Measurement:
        found = Measurement(case.key, "ok", predicted_ns=case.predicted_ns)
        try:
            outputs = execute_program(case.program, [array.copy() for array in case.inputs])
        except KernelError as wrong:
            log = traceback.format_exc()
            return Measurement(case.key, "error", str(wrong), log, predicted_ns=case.predicted_ns)
        return with_values(case, found, outputs)


class _Executed(Run):
    def submit(self, case: Case) -> None:
        self.cases[case.key] = case
        payload = str(case.program), case.inputs
        self.pools[0].submit(Job(case.key, f"{__name__}:execute_text", payload))

    def step(self, wait_s: float) -> None:
        self.pools[0].step(self._ran, wait_s)

    def _ran(self, event: Event) -> None:
        if not isinstance(event, Finished | Failed):
            return
        self.has_spent(event)
        case = self.cases[event.key]
        if isinstance(event, Failed):
            found = failure(event, "execution")
        else:
            found = with_values(case, Measurement(event.key, "ok"), event.value)
        self.watch(replace(found, predicted_ns=case.predicted_ns))


def execute_text(payload: tuple[str, Sequence[np.ndarray]], report: Report) -> list[np.ndarray]:
    """The outputs of a program that is text."""
    text, inputs = payload
    outputs = execute_program(parse_program(text), [array.copy() for array in inputs])
    return [np.asarray(output) for output in outputs]
