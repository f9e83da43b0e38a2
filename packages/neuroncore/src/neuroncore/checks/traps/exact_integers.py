"""HW12, HW13: integers that an engine passes through float32, which has 24 bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from neuroncore.alu import AluKind, AluOp
from neuroncore.checks.traps.detector import Detector, Probe
from neuroncore.enums import Engine
from neuroncore.instructions import Call
from neuroncore.machine.observe import Event
from neuroncore.memory import View, is_gathered
from nki_dtypes import int32, uint32

WIDE = (int32, uint32)
_EXACT_DOUBLES = 1 << 53

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
        trap = "HW13" if call.engine is Engine.scalar and _copies(call) else "HW12"
        operation = _single_operation(call)
        return lambda event: self._examine(event, wide, trap, operation)

    def _examine(
        self, event: Event, wide: list[str], trap: str, operation: _Operation | None
    ) -> None:
        operands = None if operation is None else _two_integers(event)
        if operation is not None and operands is not None:
            name, lost = "dst", _lost_in_result(operation, *operands)
        elif event.call.dst.dtype in WIDE:
            name, lost = _lost_in_operands(event, wide)
        else:
            return  # a float result: it is rounded as one
        if lost is not None:
            what = "gives another result than" if name == "dst" else "does not hold an integer of"
            self.found_at(
                event, trap, f"float32 {what} {'integers' if name == 'dst' else name}", name,
                expected="integers and results of at most 2**24 in size, or an exact instruction",
                got=f"{lost}, exactly",
            )  # fmt: skip


_Operation = Callable[[np.ndarray, np.ndarray], np.ndarray]
_ARITHMETIC = frozenset({"add", "subtract", "multiply"})


def _single_operation(call: Call) -> _Operation | None:
    """The operation of a call on two operands, where integers can be computed exactly beside it."""
    op = call.attrs.get("op") or call.attrs.get("op0")
    if not isinstance(op, AluOp) or call.attrs.get("op1") is not None:
        return None
    if call.record.name not in ("tensor_tensor", "tensor_scalar"):
        return None
    return op.function if op.name in _ARITHMETIC or op.kind is AluKind.compare else None


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


def _lost_in_operands(event: Event, names: list[str]) -> tuple[str, int | None]:
    """The first operand with an integer that float32 does not hold, and that integer."""
    for name in names:
        values = _values(event, name)
        lost = None if values is None else _lost(values)
        if lost is not None:
            return name, lost
    return "", None


def _lost_in_result(operation: _Operation, first: np.ndarray, second: np.ndarray) -> int | None:
    """An exact result of two integers that float32 arithmetic does not give, if there is one."""
    a, b = (int(np.abs(values).max()) for values in (first, second))
    if max(a + b, a * b if operation is np.multiply else 0) <= 1 << 24:
        return None
    exact = operation(first, second)
    rounded = operation(first.astype(np.float32), second.astype(np.float32))
    return next(iter(exact[rounded.astype(np.float64) != exact].tolist()), None)


def _two_integers(event: Event) -> tuple[np.ndarray, np.ndarray] | None:
    """The operands of an operation as int64, in shapes that broadcast; None: others."""
    call = event.call
    names = ("data1", "data2") if "data1" in event.views else ("data", "operand0")
    first, second = (_integers(event, name) for name in names)
    if first is None or second is None:
        return None
    first, second = (v.reshape(len(v), -1).astype(np.int64) for v in (first, second))
    if first.shape != second.shape and second.shape[1] != 1:
        return None
    return (second, first) if call.attrs.get("reverse0") else (first, second)


def _integers(event: Event, name: str) -> np.ndarray | None:
    """The integers of an operand, a number too; None where it has others."""
    given = event.views.get(name)
    if isinstance(given, (int, float, np.integer)):
        whole = abs(given) < _EXACT_DOUBLES and float(given).is_integer()
        return np.array([int(given)], np.int64) if whole else None
    spec = event.call.tiles.get(name)
    return _values(event, name) if spec is not None and spec.dtype.is_integer else None


DETECTOR = ExactIntegers
