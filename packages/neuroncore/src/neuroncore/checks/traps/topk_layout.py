"""HW25: elements of topk's results that hold no result.

One problem per group of 16 partitions; result j is at partition j % 16, column j // 16.
"""

from __future__ import annotations

import numpy as np

from neuroncore.checks.report import Report
from neuroncore.checks.tensor_labels import label
from neuroncore.checks.touched_operands import operand_of, touched_by
from neuroncore.checks.traps.detector import Detector, Probe
from neuroncore.checks.traps.undefined_results import UndefinedResults
from neuroncore.findings import Severity
from neuroncore.instructions import Call
from neuroncore.machine.observe import Event
from neuroncore.memory import Shadow, Storage, View
from neuroncore.source_location import Place
from neuroncore.targets import GPSIMD_PARTITIONS

RESULTS = ("val_dst", "idx_dst")


class TopkLayout(Detector):
    """Remembers which elements topk leaves undefined, until something writes them."""

    def __init__(self, report: Report, undefined: UndefinedResults) -> None:
        super().__init__(report, undefined)
        self._undefined: dict[Storage, tuple[Shadow, Place | None]] = {}

    def ended(self, value: object) -> None:
        self._undefined.clear()

    def probe(self, call: Call) -> Probe | None:
        return self._ranked if call.record.name == "topk" else self._touched

    def _ranked(self, event: Event) -> None:
        self._touched(event)
        for name in RESULTS:
            view = event.views[name]
            flags = Shadow.beside(view.storage, False)
            has_none = np.logical_not(is_result(view))
            flags.put(view, True, has_none)
            self.undefined.leave(event, view, has_none)
            self._undefined[view.storage] = flags, event.place

    def _touched(self, event: Event) -> None:
        if not self._undefined:
            return
        touched = touched_by(event.call)
        for name in touched.reads:
            view = operand_of(event.call, event.views, name)
            known = self._undefined.get(view.storage) if isinstance(view, View) else None
            if known is not None:
                self._read(event, name, view, *known)
        for name in touched.writes:
            view = operand_of(event.call, event.views, name)
            if view.storage in self._undefined:
                self._undefined[view.storage][0].put(view, False)

    def _read(
        self, event: Event, name: str, view: View, undefined: Shadow, place: Place | None
    ) -> None:
        read = undefined.get(view)
        if read is None or not read.any():
            return
        is_stated = event.call.version >= (0, 7)
        self.found_at(
            event, "HW25", f"{name} reads elements of topk's result that hold none", name,
            severity=Severity.ERROR if is_stated else Severity.WARNING,
            expected="result j of 16 partitions at partition j % 16, column j // 16",
            got=f"{label(view.storage)}, written by topk at {place}",
        )  # fmt: skip


def is_result(view: View) -> np.ndarray:
    """Which elements of a result of topk are results."""
    rows, k = view.shape[0], view.size // view.shape[0]
    number = np.arange(k) * GPSIMD_PARTITIONS + np.arange(rows)[:, None] % GPSIMD_PARTITIONS
    return (number < k).reshape(view.shape)


DETECTOR = TopkLayout
