"""`overlap`: tensors at explicit addresses that take one another's content away.

Two such tensors may share bytes as long as neither reads what the other has overwritten: a
content lives from the write that made it to its last read, and a tensor that is written anew is as
good as new. Inside one instruction a result may lie exactly where an operand lies, element on
element, if the instruction works element by element. Where a tensor without an address will lie is
the compiler's to decide, so such tensors are left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from neuroncore.checks._check import Check
from neuroncore.checks.byte_owners import Memory, Tensor, tensor_of
from neuroncore.checks.report import Report
from neuroncore.checks.tensor_labels import Lines, merged_dims
from neuroncore.checks.touched_operands import (
    AccessedOperands,
    chosen_by,
    kept,
    operand_of,
    tensors_read,
    touched_by,
)
from neuroncore.effects import absolute
from neuroncore.enums import MemorySpace
from neuroncore.findings import Finding
from neuroncore.instructions import Call, MaskBehaviour
from neuroncore.machine.accesses import footprint_of
from neuroncore.machine.launch import RUNNING
from neuroncore.machine.observe import Event, Watcher
from neuroncore.memory import Storage, View
from neuroncore.source_location import Place

RULE = "NKI direct allocation guide: tensors that are alive together do not share memory"


class Overlap(Watcher):
    """Follows which tensor wrote last where, and reports reads of overwritten content."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self._memories: dict[tuple[int, MemorySpace], Memory] = {}
        """Of the running program of each launch, by its number."""
        self._touched: dict[Call, AccessedOperands] = {}
        self._number = 0
        self._lines = Lines()

    def allocated(self, storage: Storage) -> None:
        if storage.address is None or not storage.space.on_chip or RUNNING.get() is None:
            return
        self._number += 1
        assert storage.notes is not None
        storage.notes[self] = tensor_of(storage, self._number, self._lines.made(storage))

    def will(self, event: Event) -> None:
        call, views = event.call, event.views
        if not any(isinstance(v, View) and v.storage.address for v in views.values()):
            return
        touched = self._touched.get(call)
        if touched is None:
            touched = self._touched[call] = touched_by(call)
        chosen = chosen_by(event, touched)
        for name, view in tensors_read(event, touched, chosen):
            if not self._is_lost(view, kept(event.mask, view.shape), event.place):
                for result in touched.writes:
                    self._in_place(event, result, name, view)
        for name in touched.writes:
            self._written(operand_of(call, views, name), event.mask if chosen is None else chosen)

    def moved(
        self,
        dst: View,
        src: View | None,
        at: np.ndarray | None = None,
        of: np.ndarray | None = None,
    ) -> None:
        if src is not None:
            self._is_lost(src, _chosen(src, of), None)
        self._written(dst, _chosen(dst, at))

    def returned(self, value: Any) -> None:
        launch = RUNNING.get()
        if launch is not None:
            for space in (MemorySpace.sbuf, MemorySpace.psum):
                self._memories.pop((launch.number, space), None)

    # -- what it means ----------------------------------------------------------------------------

    def _tensor(self, view: View) -> Tensor | None:
        notes = view.storage.notes
        return notes.get(self) if notes else None

    def _written(self, view: View, where: np.ndarray | None) -> None:
        tensor, launch = self._tensor(view), RUNNING.get()
        if tensor is not None and launch is not None:
            key = launch.number, view.storage.space
            self._memories.setdefault(key, Memory()).write(tensor, view, where)

    def _is_lost(self, view: View, where: np.ndarray | None, place: Place | None) -> bool:
        """Whether a read at `place` needs what has been overwritten; reported."""
        earlier = self._tensor(view)
        later = None if earlier is None else earlier.overwriter(view, where)
        if earlier is None or later is None:
            return False
        memory = view.storage.space.name.upper()
        found = Finding(
            "overlap",
            f"{later.called} overwrites {earlier.called}, which is used afterwards",
            later.place,
            expected=f"another address, or {earlier.called} written again before it is used"
            + (f" ({place})" if place else ""),
            got=f"{later.called} at {later} of {memory}; {earlier.called} at {earlier} of {memory}",
            source=RULE,
            notes=(f"{earlier.called} is allocated at {earlier.place}",),
        )
        self.report.add(found)
        return True

    def _in_place(self, event: Event, result: str, name: str, operand: View) -> None:
        """Report an instruction that writes over what it has yet to read."""
        written = event.views[result]
        to, of = self._tensor(written), self._tensor(operand)
        if to is None or of is None or to is of or not to.shares_with(of):
            return
        if operand.storage.space is not written.storage.space:
            return
        found = Finding(
            "overlap", f"{result} overwrites {name} while it is read", event.place,
            instruction=event.call.record.name, operand=result,
        )  # fmt: skip
        if disturbs(event.call, written, operand) and not self.report.again(found):
            memory = written.storage.space.name.upper()
            self.report.add(
                replace(
                    found,
                    expected="another address, or an instruction that works element by element "
                    "and a result exactly where its operand lies",
                    got=f"{to.called} at {to} of {memory}; {of.called} at {of} of {memory}",
                    source=RULE,
                )
            )


def _chosen(view: View, numbers: np.ndarray | None) -> np.ndarray | None:
    """Where in a view the elements of these numbers are."""
    if numbers is None:
        return None
    where = np.zeros(view.size, np.bool_)
    where[numbers] = True
    return where.reshape(view.shape)


_IN_ORDER = frozenset(
    {
        "activation_reduce",
        "range_select",
        "select_reduce",
        "tensor_scalar_cumulative",
        "tensor_scalar_reduce",
        "tensor_tensor_scan",
    }
)
"""Instructions whose element i of the result needs no element of the operands behind i, beside
the instructions that 0.1 masks element by element."""


def disturbs(call: Call, result: View, operand: View) -> bool:
    """Whether writing `result` changes elements of `operand` that the call may not have read yet.

    They are two tensors at addresses in one memory. A result may lie exactly where an operand lies,
    element on element, if the instruction works element by element.
    """
    target = result.core.target
    written, read = (
        [part for found in footprint_of(view) for part in absolute(view.storage, found, target)]
        for view in (result, operand)
    )
    if not any(w.overlaps(r) for w in written for r in read):
        return False
    by_element = call.record.mask is MaskBehaviour.elementwise or call.record.name in _IN_ORDER
    return not (by_element and _elements(result) == _elements(operand) is not None)


def _elements(view: View) -> tuple[object, ...] | None:
    """Where each element lies: first partition and byte, element size, and (size, step) of the
    partitions and of the free dimensions in order, contiguous ones joined.

    None where no such steps describe it.
    """
    spec, storage = view.spec, view.storage
    width, free_bytes = spec.dtype.itemsize, storage.free_elems * storage.dtype.itemsize
    assert storage.address is not None
    rows, rest = divmod(spec.strides[0] * width, free_bytes)
    if view.dynamic is not None or (rest and spec.shape[0] > 1):
        return None
    row, byte = divmod(view.offset * width, free_bytes)
    down = rows if spec.shape[0] > 1 else 0
    first = storage.address[0] + row, storage.address[1] + byte
    return (*first, width, spec.shape[0], down, *merged_dims(spec))


CHECK = Check(
    "overlap", "no tensor at an address is read after another has written over it", Overlap
)
