"""HW17, HW22: results whose dtype or width a device does not take."""

from __future__ import annotations

from neuroncore.checks.traps.detector import Detector, Probe
from neuroncore.findings import Severity
from neuroncore.instructions import Call
from neuroncore.machine.observe import Event
from nki_dtypes import float32

WORD_BYTES = 4


class ResultFormats(Detector):
    """Checks the results of range_select and of comparisons into bytes."""

    def probe(self, call: Call) -> Probe | None:
        if call.record.name == "range_select" and "reduce_res" in call.tiles:
            return None if call.reduce_res.dtype is float32 else self._narrow_maximum
        if call.record.name == "tensor_tensor" and call.op.name == "equal":
            is_row = call.dst.dtype.itemsize == 1 and call.dst.partitions == 1
            return self._odd_width if is_row and call.dst.free % WORD_BYTES else None
        return None

    def _narrow_maximum(self, event: Event) -> None:
        self.found_at(
            event, "HW17", f"reduce_res is {event.call.reduce_res.dtype}", "reduce_res",
            expected="float32, which holds the fill of a masked row",
            got=f"shape {event.call.reduce_res!r}",
        )  # fmt: skip

    def _odd_width(self, event: Event) -> None:
        free = event.call.dst.free
        self.found_at(
            event, "HW22", f"equal gives a row of {free} bytes", "dst",
            severity=Severity.NOTE, expected=f"a multiple of {WORD_BYTES} bytes",
            got=f"shape {event.call.dst!r}",
        )  # fmt: skip


DETECTOR = ResultFormats
