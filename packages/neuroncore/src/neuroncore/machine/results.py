"""Results of an instruction, as arrays that further instructions do not change."""

from __future__ import annotations

import numpy as np

from neuroncore.machine.observe import Event
from neuroncore.memory import View, dynamic_rows, gathered, resolve_scalar


def result_arrays(event: Event) -> dict[str, np.ndarray]:
    """Copies of what the results of an instruction hold, by operand, in the storage dtype."""
    outputs = event.call.record.outputs
    return {n: shown(v) for n, v in event.views.items() if n in outputs and isinstance(v, View)}


def shown(view: View) -> np.ndarray:
    """A copy of the elements that a view names now; rows whose index is outside are zeros."""
    moved = view.spec.indirect
    if moved is None:
        return np.array(view.array)
    if moved.kind == "free":
        return gathered(view)
    if moved.kind == "scalar":
        fixed = resolve_scalar(view, skips=True)
        return np.zeros(view.shape, view.array.dtype) if fixed is None else np.array(fixed.array)
    elements, valid = dynamic_rows(view)
    found = view.storage.flat.view(view.array.dtype)[elements]
    found[~valid] = 0
    return found


def widened(array: np.ndarray) -> np.ndarray:
    """A copy of which NumPy alone can read every number: narrow floats become float32."""
    if array.dtype.kind in "biu" or array.dtype in (np.float16, np.float32):
        return np.array(array)
    return array.astype(np.float32)


def described(view: View) -> str:
    """The text of print() for a tensor: shape, dtype, memory, and its present values."""
    if view.storage.fresh:
        return f"{view!r} never written"
    if not view.core.computes:
        return f"{view!r} not computed"
    return f"{view!r}\n{np.array2string(widened(shown(view)), threshold=64, precision=6)}"
