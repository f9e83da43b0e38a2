"""HW14: results of activation functions outside of their valid input range.

The `device` check reports them; here they become undefined where an option requests it.
"""

from __future__ import annotations

import numpy as np

from neuroncore.checks.traps.detector import Detector, Probe
from neuroncore.instructions import Call, TableInput
from neuroncore.machine.observe import Event


class ActivationRanges(Detector):
    """Finds the inputs for which a table gives garbage."""

    def probe(self, call: Call) -> Probe | None:
        table_input = call.record.table_input
        if call.options.undefined_results != "poison" or table_input is None:
            return None
        is_limited = bool(np.isfinite(call.op.valid).any())
        return (lambda event: self._leave(event, table_input)) if is_limited else None

    def _leave(self, event: Event, table_input: TableInput) -> None:
        function = event.call.op
        x = table_input(event.call, event.views)
        size = np.abs(x) if function.valid_of_magnitude else x
        low, high = function.valid
        dst = event.views["dst"]
        outside = np.logical_or(size < low, size > high).reshape(dst.shape)
        if outside.any():
            self.undefined.leave(event, dst, outside)


DETECTOR = ActivationRanges
