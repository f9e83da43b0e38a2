"""HW12, HW13: integers that an engine passes through float32, which has 24 bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from neuroncore.checks.traps.detector import Detector, Probe
from neuroncore.enums import Engine
from neuroncore.instructions import Call
from neuroncore.machine.observe import Event
from neuroncore.memory import View, is_gathered
from nki_dtypes import int32, uint32

WIDE = (int32, uint32)

FLOAT_OPERANDS: Mapping[str, tuple[str, ...]] = {
    "activate2": ("data", "operand0", "operand1"),
    "activation": ("data", "bias", "scale"),
    "activation_reduce": ("data", "bias", "scale"),
    "scalar_tensor_tensor": ("data", "operand0", "operand1"),
    "select_reduce": ("on_true", "on_false"),
    "tensor_copy": ("src",),
    "tensor_partition_reduce": ("data",),
    "tensor_reduce": ("data",),
    "tensor_scalar": ("data", "operand0", "operand1"),
    "tensor_scalar_cumulative": ("src", "imm0", "imm1"),
    "tensor_scalar_reduce": ("data", "operand0"),
    "tensor_tensor": ("data1", "data2"),
    "tensor_tensor_scan": ("data0", "data1", "initial"),
}
"""Instructions that compute in float32, and the operands that they convert."""


class ExactIntegers(Detector):
    """Reads the values of 32-bit integers that are about to be converted."""

    def probe(self, call: Call) -> Probe | None:
        names = [n for n in FLOAT_OPERANDS.get(call.record.name, ()) if n in call.specs]
        wide = [n for n in names if n in call.tiles and call.tiles[n].dtype in WIDE]
        if not wide or call.options.trap_values == "skip" or _is_exact(call):
            return None
        copies = call.engine is Engine.scalar and _copies(call)
        trap = "HW13" if copies else "HW12"
        sums = _SUMS.get(getattr(call.attrs.get("op" if "op" in call.attrs else "op0"), "name", ""))
        return lambda event: self._look(event, wide, trap, sums)

    def _look(self, event: Event, wide: list[str], trap: str, sums: _Sum | None) -> None:
        for name in wide:
            values = _values(event, name)
            lost = values is not None and _lost(values)
            if lost:
                self.found_at(
                    event, trap, f"{name} holds integers that float32 does not", name,
                    expected="integers of at most 2**24 in size, or an instruction that is exact",
                    got=f"{lost}, of type {event.call.tiles[name].dtype}",
                )  # fmt: skip
                return
        lost = None if sums is None else _lost_in_result(event, sums)
        if lost:
            self.found_at(
                event, trap, "an integer result that float32 does not hold", "dst",
                expected="results of at most 2**24 in size, or an instruction that is exact",
                got=f"{lost}, of type {event.call.tiles['dst'].dtype}",
            )  # fmt: skip


_Sum = Callable[[np.ndarray, np.ndarray], np.ndarray]
_SUMS: Mapping[str, _Sum] = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply}
"""Operations whose exact integer result is compared with what float32 gives."""


def _is_exact(call: Call) -> bool:
    """Whether the call moves or computes integers as they are."""
    ops = (call.attrs.get(name) for name in ("op", "op0", "op1"))
    if any(getattr(op, "is_bitvec", False) for op in ops):
        return True
    if call.record.name == "tensor_copy":
        return call.dst.dtype is call.src.dtype or call.dst.dtype.is_float
    return call.record.name == "tensor_tensor" and call.engine is Engine.gpsimd


def _copies(call: Call) -> bool:
    return call.record.name == "tensor_copy" or getattr(call.op, "name", "") == "copy"


def _values(event: Event, name: str) -> np.ndarray | None:
    view = event.views[name]
    if not isinstance(view, View) or view.storage.fresh or is_gathered(view):
        return None
    return view.array


def _lost(values: np.ndarray) -> int | None:
    """An integer that is another one after a conversion to float32 and back, if there is one."""
    low, high = int(values.min()), int(values.max())
    if low >= -(1 << 24) and high <= 1 << 24:
        return None
    wide = values.astype(np.int64)
    kept = np.clip(np.float32(wide).astype(np.float64), *_range(values)).astype(np.int64)
    return next(iter(wide[kept != wide].tolist()), None)


def _range(values: np.ndarray) -> tuple[int, int]:
    info = np.iinfo(values.dtype)
    return info.min, info.max


def _lost_in_result(event: Event, sums: _Sum) -> int | None:
    """An exact result of two integers that float32 arithmetic does not give, if there is one."""
    operands = _two_integers(event)
    if operands is None:
        return None
    first, second = (values.astype(np.int64) for values in operands)
    a, b = (int(np.abs(values).max()) for values in (first, second))
    if (a * b if sums is np.multiply else a + b) <= 1 << 24:
        return None
    exact = sums(first, second)
    rounded = sums(first.astype(np.float32), second.astype(np.float32)).astype(np.float64)
    return next(iter(exact[rounded != exact].tolist()), None)


def _two_integers(event: Event) -> tuple[np.ndarray, np.ndarray] | None:
    """The operands of a single operation into a 32-bit integer, in shapes that broadcast."""
    call = event.call
    names = ("data1", "data2") if "data1" in event.views else ("data", "operand0")
    if call.dst.dtype not in WIDE or call.attrs.get("op1") is not None:
        return None
    first, second = (_integers(event, name) for name in names)
    if first is None or second is None:
        return None
    first, second = first.reshape(len(first), -1), second.reshape(len(second), -1)
    if first.shape != second.shape and second.shape[1] != 1:
        return None
    return (second, first) if call.attrs.get("reverse0") else (first, second)


def _integers(event: Event, name: str) -> np.ndarray | None:
    """The integers of an operand, a number too; None where it has others."""
    given = event.views.get(name)
    if isinstance(given, (int, float, np.integer)):
        return np.array([int(given)], np.int64) if float(given).is_integer() else None
    spec = event.call.tiles.get(name)
    return _values(event, name) if spec is not None and spec.dtype.is_integer else None


DETECTOR = ExactIntegers
