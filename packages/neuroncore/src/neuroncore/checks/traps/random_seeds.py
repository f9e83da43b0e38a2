"""HW21: a seed that another engine than the one that draws may receive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from neuroncore.checks.report import Report
from neuroncore.checks.traps.detector import Detector, Probe
from neuroncore.checks.traps.undefined_results import UndefinedResults
from neuroncore.findings import Severity
from neuroncore.instructions import Call
from neuroncore.machine.observe import Event
from neuroncore.source_location import Place

FIRST_BOUND = 4  # generation from which both run on one engine [NKI 0.4 notes]
DRAWS = frozenset({"rng", "rand2", "dropout"})


class RandomSeeds(Detector):
    """Remembers whether a launch has set a seed."""

    def __init__(self, report: Report, undefined: UndefinedResults) -> None:
        super().__init__(report, undefined)
        self._seeded: Place | None = None

    def launched(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self._seeded = None

    def probe(self, call: Call) -> Probe | None:
        if call.target.generation >= FIRST_BOUND:
            return None
        if call.record.name == "set_rng_seed":
            return self._seed
        return self._draw if call.record.name in DRAWS else None

    def _seed(self, event: Event) -> None:
        self._seeded = event.place

    def _draw(self, event: Event) -> None:
        if self._seeded is not None:
            self.found_at(
                event, "HW21", "random numbers after a seed that has no engine", "engine",
                severity=Severity.WARNING,
                expected="one engine that is named for the seed and for the numbers",
                got=f"a seed at {self._seeded} on {event.call.target.name}",
            )  # fmt: skip


DETECTOR = RandomSeeds
