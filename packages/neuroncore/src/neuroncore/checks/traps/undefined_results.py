"""Elements that a device leaves undefined, as NaN or a sentinel (Options.undefined_results)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from neuroncore.checks.tensor_labels import described, label, tensors_in
from neuroncore.findings import Certainty, Finding
from neuroncore.machine.observe import Event
from neuroncore.memory import View, is_gathered, named_elements, resolve_scalar

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
        if event.call.options.undefined_results == "poison":
            self._pending.append((view, where))

    def overwrite(self) -> None:
        """Poison what the instruction that has just run leaves undefined."""
        if not self._pending:
            return
        for view, where in self._pending:
            self._has_integers |= view.dtype.is_integer
            _overwrite(view, np.broadcast_to(True if where is None else where, view.shape))
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


def _overwrite(view: View, where: np.ndarray) -> None:
    """Poison elements of a view, at the addresses that an index of it names now."""
    value = undefined_element(view)
    if is_gathered(view):
        numbers, rows = named_elements(view)
        where = where & rows.reshape(-1, *(1,) * (view.ndim - 1))
        view.storage.flat.view(view.array.dtype)[numbers[where]] = value
        return
    named = view if view.dynamic is None else resolve_scalar(view, skips=True)
    if named is not None:
        named.array[where] = value


def undefined_element(view: View) -> Any:
    """The value of an undefined element of a view."""
    if not view.dtype.is_integer:
        return np.nan
    bits = view.array.dtype.itemsize * 8
    unsigned = np.array(SENTINEL & ((1 << bits) - 1), f"u{view.array.dtype.itemsize}")
    return unsigned.view(view.array.dtype)
