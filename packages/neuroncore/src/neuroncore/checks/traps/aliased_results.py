"""HW40: two results of one instruction that share bytes."""

from __future__ import annotations

from itertools import combinations

from neuroncore.checks.tensor_labels import label
from neuroncore.checks.traps.detector import Detector, Probe
from neuroncore.instructions import Call
from neuroncore.machine.accesses import footprint_of
from neuroncore.machine.observe import Event


class AliasedResults(Detector):
    """Compares the results of instructions that have more than one."""

    def probe(self, call: Call) -> Probe | None:
        results = [name for name in call.record.outputs if name in call.tiles]
        pairs = tuple(combinations(results, 2))
        return (lambda event: self._look(event, pairs)) if pairs else None

    def _look(self, event: Event, pairs: tuple[tuple[str, str], ...]) -> None:
        for first, second in pairs:
            one, other = event.views[first], event.views[second]
            if one.storage is not other.storage:
                continue
            if any(a.overlaps(b) for a in footprint_of(one) for b in footprint_of(other)):
                tensor = label(one.storage)
                self.undefined.leave(event, other)
                self.found_at(
                    event, "HW40", f"{second} is part of {first}", second,
                    expected="results that share no element",
                    got=f"{first} of shape {one.shape} and {second} of shape {other.shape} "
                    f"of {tensor}",
                )  # fmt: skip


DETECTOR = AliasedResults
