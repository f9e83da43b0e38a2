"""The check as a whole: each call is shown to the detectors that its kind concerns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from neuroncore.checks.report import Report
from neuroncore.checks.traps.detector import Detector, Probe
from neuroncore.checks.traps.undefined_results import UndefinedResults
from neuroncore.instructions import Call
from neuroncore.machine.observe import Event, Watcher
from neuroncore.source_location import Place
from nki_dtypes import DType


@cache
def _detectors() -> list[type[Detector]]:
    """The `DETECTOR` of every module of this folder that has one, in alphabetical order."""
    names = sorted(m.name for m in iter_modules([str(Path(__file__).parent)]))
    modules = [import_module(f"{__package__}.{name}") for name in names]
    return [module.DETECTOR for module in modules if hasattr(module, "DETECTOR")]


_concerned: dict[Call, tuple[int, ...]] = {}
"""Calls, which cores share and keep, and the detectors that they concern."""


class Traps(Watcher):
    """Reports patterns that give the expected values here and not on a device."""

    def __init__(self, report: Report) -> None:
        self._report, self._undefined = report, UndefinedResults()
        self._detectors = [detector(report, self._undefined) for detector in _detectors()]
        self._probes: dict[Call, tuple[Probe, ...]] = {}

    def will(self, event: Event) -> None:
        probes = self._probes.get(event.call)
        if probes is None:
            probes = self._probes[event.call] = self._concerned(event.call)
        for probe in probes:
            probe(event)

    def _concerned(self, call: Call) -> tuple[Probe, ...]:
        """The probes of a call; which detectors it concerns is the same in every run."""
        numbers = _concerned.get(call)
        if numbers is None:
            found = [i for i, d in enumerate(self._detectors) if d.probe(call) is not None]
            numbers = _concerned[call] = tuple(found)
        probes = (self._detectors[i].probe(call) for i in numbers)
        return tuple(probe for probe in probes if probe is not None)

    def did(self, event: Event) -> None:
        self._undefined.overwrite()

    def launched(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        for detector in self._detectors:
            detector.launched(args, kwargs)

    def iteration(self, loop: str, place: Place | None) -> None:
        for detector in self._detectors:
            detector.iteration(loop, place)

    def state_changed(self, loop: str, what: str, place: Place | None) -> None:
        for detector in self._detectors:
            detector.state_changed(loop, what, place)

    def wrapped(self, dtype: DType, place: Place | None) -> None:
        for detector in self._detectors:
            detector.wrapped(dtype, place)

    def returned(self, value: Any) -> None:
        for detector in self._detectors:
            detector.returned(value)

    def ended(self, value: Any) -> None:
        for detector in self._detectors:
            detector.ended(value)
        for finding in self._undefined.returned(value):
            self._report.add(finding)
