"""Which PSUM locations a matmul has written: what `accumulate` decides from."""

from __future__ import annotations

import numpy as np

from neuroncore.memory import View
from neuroncore.memory.window import window


def written_part(dst: View) -> np.ndarray | bool:
    """Whether matmuls have written dst: True, False, or a flag per element."""
    state = dst.storage.written
    if isinstance(state, bool):
        return state
    bits = _bits(dst)
    return True if bits.all() else bits if bits.any() else False


def mark_written(dst: View) -> None:
    """All elements of dst now hold a matmul's result."""
    storage = dst.storage
    if storage.written is True:
        return
    if dst.array.size == storage.flat.size and not dst.spec.repeats:
        storage.written = True
    else:
        _bits(dst)[...] = True


def _bits(dst: View) -> np.ndarray:
    """The flags of exactly the elements of dst, as a view."""
    return window(dst.storage.written_bits(), dst.offset, dst.shape, dst.strides)
