"""Whether an instruction that writes where it reads still reads what it should."""

from __future__ import annotations

from neuroncore.effects import absolute, footprint_of
from neuroncore.instructions import Call, MaskBehaviour
from neuroncore.memory import View

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
those that 0.1 masks element by element."""


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
    partitions and of the free dimensions in order, those that run on joined.

    None where no such steps describe it.
    """
    spec, storage = view.spec, view.storage
    width, free_bytes = spec.dtype.itemsize, storage.free_elems * storage.dtype.itemsize
    assert storage.address is not None
    rows, rest = divmod(spec.strides[0] * width, free_bytes)
    if view.dynamic is not None or (rest and spec.shape[0] > 1):
        return None
    row, byte = divmod(view.offset * width, free_bytes)
    free: list[tuple[int, int]] = []
    for size, stride in zip(spec.shape[1:], spec.strides[1:], strict=True):
        if size == 1:
            continue
        if free and free[-1][1] == size * stride:
            free[-1] = (free[-1][0] * size, stride)
        else:
            free.append((size, stride))
    down = rows if spec.shape[0] > 1 else 0
    first = storage.address[0] + row, storage.address[1] + byte
    return (*first, width, spec.shape[0], down, *free)
