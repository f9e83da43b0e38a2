"""Records one core of a launch on several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from neuroncore.instructions import INSTRUCTIONS
from neuroncore.instructions import Call as MachineCall
from neuroncore.machine.launch import running
from neuroncore.machine.observe import Event
from neuroncore.memory import View
from neuroncore.program.recording.recorder import Recorder
from neuroncore.source_location import find_place


class CoreRecorder(Recorder):
    """Receives what one core of a launch on several does, for its time; of the others, the tensors.

    What arrives by sendrecv is a DMA from the other core's tensor. Waiting takes no time.
    """

    def __init__(self, kernel: Callable[..., Any], number: int, needs_values: bool) -> None:
        super().__init__(kernel, for_time=True, needs_values=needs_values)
        self.number = number

    def received(self, dst: View, src: View) -> None:
        record, core = INSTRUCTIONS["dma_copy"], dst.core
        attrs = {name: attr.default for name, attr in record.attrs.items()}
        specs = {"dst": dst.spec, "src": src.spec}
        call = MachineCall(record, specs, attrs, core.target, core.options)
        self.did(Event(call, {"dst": dst, "src": src}, find_place()))

    def arrived(self, data: View) -> None:
        pass


def _of_own_core(name: str) -> Callable[..., None]:
    """A watcher that ignores the other core."""
    method = getattr(CoreRecorder, name)

    def guarded(self: CoreRecorder, *event: Any) -> None:
        if running("a recorder").program == (self.number,):
            method(self, *event)

    return guarded


for _name in ("will", "did", "register", "moved", "told", "received", "arrived", "returned"):
    setattr(CoreRecorder, _name, _of_own_core(_name))
