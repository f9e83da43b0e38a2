"""HW08, HW09, HW29, HW33, HW35: transpositions on TensorE and by DMA."""

from __future__ import annotations

import numpy as np

from neuroncore.checks.tensor_labels import described, label
from neuroncore.checks.traps.detector import Detector, Probe
from neuroncore.enums import Engine, OobMode
from neuroncore.findings import Severity
from neuroncore.instructions import Call
from neuroncore.machine.observe import Event
from neuroncore.memory import dynamic_rows

FIRST_EXACT = 3  # generation from which TensorE moves bits [NKI: nc_transpose]


class Transpositions(Detector):
    """Examines what is transposed, and from where."""

    def probe(self, call: Call) -> Probe | None:
        name = call.record.name
        if name == "nc_transpose" and call.engine is Engine.tensor:
            return self._on_tensor_engine(call)
        if name == "nc_matmul" and call.is_transpose and _is_narrow(call, "stationary"):
            return lambda event: self._narrow(event, "stationary")
        if name == "dma_transpose":
            return self._by_dma(call)
        if name == "dma_copy" and _transposes(call):
            return self._loaded
        return None

    def _on_tensor_engine(self, call: Call) -> Probe | None:
        if _is_narrow(call, "data"):
            return lambda event: self._narrow(event, "data")
        looks = call.options.trap_values != "skip" and call.data.dtype.is_float
        return self._multiplied if looks and call.target.generation < FIRST_EXACT else None

    def _narrow(self, event: Event, operand: str) -> None:
        self.found_at(
            event, "HW09", "8-bit floats are transposed on TensorE", operand,
            severity=Severity.WARNING, expected="bfloat16, float16 or float32",
            got=str(event.call.tiles[operand].dtype),
        )  # fmt: skip

    def _multiplied(self, event: Event) -> None:
        data = event.views["data"]
        if data.storage.fresh:
            return  # nothing was written: the memory check reports it
        values = data.array.astype(np.float32, copy=False)
        if not np.isfinite([values.min(), values.max()]).all():
            spreads = ~np.isfinite(values)
            count = int(np.count_nonzero(spreads))
            rows = spreads.reshape(len(spreads), -1).any(axis=0)
            dst = event.views["dst"]
            self.undefined.leave(event, dst, rows.reshape(-1, *(1,) * (dst.ndim - 1)))
            self.found_at(
                event, "HW08", f"{count:,} of {data.size:,} elements are NaN or infinite", "data",
                expected="finite elements where TensorE multiplies with an identity",
                got=f"{label(data.storage)} on {event.call.target.name}",
            )  # fmt: skip

    def _by_dma(self, call: Call) -> Probe | None:
        skips = call.attrs.get("oob_mode") is OobMode.skip
        if skips and call.src.indirect is not None and call.src.indirect.kind == "vector":
            return self._skipping
        if call.version == (0, 2) and call.src.rank == 2:
            return self._two_dimensions
        return None

    def _skipping(self, event: Event) -> None:
        _, valid = dynamic_rows(event.views["src"], by_column=True)
        missing = int(np.count_nonzero(np.logical_not(valid)))
        if missing:
            self.undefined.leave(event, event.views["dst"])
            self.found_at(
                event, "HW29", f"{missing} of {valid.size} indices are out of bounds", "src",
                expected="indices inside the tensor", got="oob_mode=skip with a vector offset",
            )  # fmt: skip
        else:
            self.found_at(
                event, "HW29", "indices may be out of bounds under oob_mode=skip", "oob_mode",
                severity=Severity.WARNING, expected="oob_mode=error, or a gather by dma_copy first",
                got=f"{valid.size} indices, all in bounds in this run",
            )  # fmt: skip

    def _two_dimensions(self, event: Event) -> None:
        self.found_at(
            event, "HW35", "a transposition of two dimensions in NKI 0.2", "src",
            severity=Severity.WARNING, expected="four dimensions",
            got=f"shape {event.call.src!r}",
        )  # fmt: skip

    def _loaded(self, event: Event) -> None:
        storage = event.views["src"].storage
        if storage.place is None or storage.constant:
            return  # an argument of the kernel
        is_reported = event.call.target.generation < FIRST_EXACT
        self.found_at(
            event, "HW33", "a transposing load from a tensor that the kernel made", "src",
            severity=Severity.ERROR if is_reported else Severity.WARNING,
            expected="an argument of the kernel, or a transposition on chip",
            got=f"{label(storage)}: {described(storage)}",
            notes=(f"allocated at {storage.place}",),
        )  # fmt: skip


def _is_narrow(call: Call, operand: str) -> bool:
    dtype = call.tiles[operand].dtype
    return dtype.is_float and dtype.itemsize == 1


def _transposes(call: Call) -> bool:
    """Whether a copy into on-chip memory exchanges the two dimensions of a tensor in HBM."""
    src, dst = call.src, call.dst
    if src.space.on_chip or not dst.space.on_chip or src.rank != 2 or src.indirect is not None:
        return False
    return src.strides[0] == 1 < src.strides[1] and min(src.shape) > 1


DETECTOR = Transpositions
