"""HW22: comparisons into bytes, in rows that are not whole words."""

from __future__ import annotations

from neuroncore.checks.traps.detector import Detector, Probe
from neuroncore.findings import Severity
from neuroncore.instructions import Call
from neuroncore.machine.observe import Event

WORD_BYTES = 4


class ByteResults(Detector):
    """Checks the width of results of `equal`."""

    def probe(self, call: Call) -> Probe | None:
        if call.record.name != "tensor_tensor" or call.op.name != "equal":
            return None
        is_odd = call.dst.dtype.itemsize == 1 and call.dst.free % WORD_BYTES
        return self._compared if is_odd else None

    def _compared(self, event: Event) -> None:
        free = event.call.dst.free
        self.found_at(
            event, "HW22", f"equal gives {free} bytes in each partition", "dst",
            severity=Severity.NOTE, expected=f"a multiple of {WORD_BYTES} bytes",
            got=f"shape {event.call.dst!r}",
        )  # fmt: skip


DETECTOR = ByteResults
