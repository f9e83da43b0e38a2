"""Which PSUM locations a matmul has written: what `accumulate` decides from."""

from __future__ import annotations

import numpy as np

from neuroncore.memory import View, is_whole


def written_part(dst: View) -> np.ndarray | bool:
    """Whether matmuls have written dst: True, False, or a flag per element."""
    state = dst.storage.written
    if isinstance(state, bool):
        return state
    bits = state.elements(dst)
    return True if bits.all() else bits if bits.any() else False


def mark_written(dst: View) -> None:
    """All elements of dst now hold a matmul's result."""
    storage = dst.storage
    if storage.written is True:
        return
    if is_whole(dst):
        storage.written = True
    else:
        storage.written_flags().put(dst, True)
