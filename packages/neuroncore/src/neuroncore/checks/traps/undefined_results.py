"""Elements that a device leaves undefined, as NaN or a sentinel (Options.undefined_results)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from neuroncore.checks.tensor_labels import described, label, tensors_in
from neuroncore.findings import Certainty, Finding
from neuroncore.machine.observe import Event
from neuroncore.memory import View, is_gathered

SENTINEL = 0xDEADBEEF
"""What undefined integers hold, in the bits that their type has."""
_LEAST_BYTES = 4  # narrower integers hold the sentinel's bits by chance too often to be recognised


class UndefinedResults:
    """Collects what an instruction leaves undefined, and overwrites it once it has run."""

    def __init__(self) -> None:
        self._pending: list[tuple[View, np.ndarray | None]] = []
        self._has_integers = False

    def leave(self, event: Event, view: View, where: np.ndarray | None = None) -> None:
        """After the instruction `view` is undefined, or the elements where `where` holds."""
        if event.call.options.undefined_results == "poison" and not is_gathered(view):
            self._pending.append((view, where))

    def overwrite(self) -> None:
        """Poison what the instruction that has just run leaves undefined."""
        if not self._pending:
            return
        for view, where in self._pending:
            value = undefined_element(view)
            self._has_integers |= view.dtype.is_integer
            if where is None:
                view.array[...] = value
            else:
                view.array[np.broadcast_to(where, view.shape)] = value
        self._pending.clear()

    def returned(self, value: Any) -> Iterator[Finding]:
        """A finding for each result of a kernel with integers that hold the sentinel."""
        if not self._has_integers:
            return
        for view in tensors_in(value):
            if view.dtype.is_integer and view.dtype.itemsize >= _LEAST_BYTES:
                count = int(np.count_nonzero(view.array == undefined_element(view)))
                if count:
                    yield Finding(
                        "traps", f"the kernel returns {count:,} undefined integers",
                        view.storage.place, code="undefined", certainty=Certainty.DOCUMENTED,
                        expected="results that a device defines",
                        got=f"{label(view.storage)}: {described(view.storage)}",
                        cure="see the finding of the instruction that leaves them undefined",
                        source="Options.undefined_results",
                    )  # fmt: skip


def undefined_element(view: View) -> Any:
    """What an undefined element of a view holds."""
    if not view.dtype.is_integer:
        return np.nan
    bits = view.array.dtype.itemsize * 8
    unsigned = np.array(SENTINEL & ((1 << bits) - 1), f"u{view.array.dtype.itemsize}")
    return unsigned.view(view.array.dtype)
