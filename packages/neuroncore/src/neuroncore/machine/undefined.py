"""Results of instructions that read uninitialised elements.

In 0.1 a masked load leaves the rest of its tile undefined, and kernels compute on the whole tile
until a masked store cuts the rest off again. There, what VectorE and ScalarE make of undefined
elements is undefined, too, and not yet wrong: it is where it leaves its partition, for HBM, TensorE
or GpSimdE. From 0.2 on each read of an undefined element is a mistake.
"""

from __future__ import annotations

import numpy as np

from neuroncore.enums import Engine
from neuroncore.instructions import Call, MaskBehaviour

_BETWEEN_ROWS = frozenset({"nc_transpose", "nc_stream_shuffle"})
"""What VectorE moves from partition to partition; all else that it and ScalarE do stays in rows."""


def carries(call: Call) -> bool:
    """Whether what a call makes of undefined elements is undefined, instead of a mistake."""
    return (
        call.version == (0, 1)
        and call.engine in (Engine.vector, Engine.scalar)
        and call.record.name not in _BETWEEN_ROWS
    )


def comes_by_element(call: Call) -> bool:
    """Whether an element of the result comes from the one in its place, else from its row."""
    return call.record.mask in (MaskBehaviour.elementwise, MaskBehaviour.reduction)


def defined(
    by_element: bool, undefined: list[np.ndarray], shape: tuple[int, ...]
) -> np.ndarray | None:
    """Which elements of a result are defined, given the undefined elements of operands: one by one
    where sizes agree, else by rows. None: all.
    """
    if not undefined:
        return None
    lost = np.zeros(shape, np.bool_)
    for missing in undefined:
        if by_element and missing.size == lost.size:
            lost |= missing.reshape(shape)
        else:
            rows = np.any(missing.reshape(len(missing), -1), axis=1)
            lost |= rows.reshape((-1,) + (1,) * (len(shape) - 1))
    return np.logical_not(lost)
