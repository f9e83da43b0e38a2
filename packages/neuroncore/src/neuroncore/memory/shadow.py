"""One entry per piece of a tensor's memory, addressed like the tensor itself."""

from __future__ import annotations

from math import gcd
from typing import Any

import numpy as np

from neuroncore.memory.dynamic import resolve_scalar
from neuroncore.memory.indirection import named_elements
from neuroncore.memory.storage import Storage, StridedView
from neuroncore.memory.window import bytes_before
from neuroncore.spec import Spec


class Shadow:
    """Entries beside a storage: one per element, per byte once a view needs that.

    `entries` has one of `fill` for every `unit` bytes; a view addresses the entries of its bytes.
    """

    __slots__ = ("entries", "filled", "unit")

    def __init__(self, unit: int, count: int, fill: Any, kind: Any = np.bool_) -> None:
        self.unit = unit
        self.filled: set[Spec] = set()
        """See WrittenFlags; an entry that becomes false ends all of it."""
        self.entries = np.full(count, fill, kind) if fill else np.zeros(count, kind)

    @classmethod
    def beside(cls, storage: Storage, fill: Any, kind: Any = np.bool_) -> Shadow:
        """One entry per element of the storage."""
        return cls(storage.flat.itemsize, storage.flat.size, fill, kind)

    def of(self, view: StridedView) -> np.ndarray | None:
        """The entries behind a static view, in its shape; wide elements have theirs on a last axis.

        Writing to it changes the entries. A view at a dynamic scalar offset is taken where it
        points now: None out of bounds.
        """
        if view.dynamic is not None:
            fixed = resolve_scalar(view, skips=True)
            return None if fixed is None else self.of(fixed)
        width, strides = view.array.itemsize, view.array.strides
        start = first_byte(view)
        if width != self.unit:
            self.refine(gcd(width, start, *strides))
        unit, size = self.unit, self.entries.itemsize
        shape, steps = view.array.shape, tuple([s // unit * size for s in strides])
        if width != unit:
            shape, steps = (*shape, width // unit), (*steps, size)
        return np.ndarray(shape, self.entries.dtype, self.entries, start // unit * size, steps)

    def rows(self, view: StridedView) -> tuple[np.ndarray, np.ndarray]:
        """All entries by element number, and the numbers that the index of a view names."""
        elements, valid = named_elements(view)
        width = view.array.itemsize
        if width % self.unit:
            self.refine(gcd(width, self.unit))
        return self.entries.reshape(-1, width // self.unit), elements[valid]

    def get(self, view: StridedView) -> np.ndarray | None:
        """The entries that a view names now, to look at; None where it names nothing."""
        if is_gathered(view):
            entries, numbers = self.rows(view)
            return entries[numbers]
        return self.of(view)

    def elements(self, view: StridedView, of_bytes: Any = np.all) -> np.ndarray:
        """One entry per element of a view that names some: of a wide one what `of_bytes` gives."""
        found = self.get(view)
        assert found is not None
        return of_bytes(found, axis=-1) if found.ndim > view.ndim else found

    def set(self, view: StridedView, value: Any, where: np.ndarray) -> None:
        """Set some of what `get` gives: those where `where`, of its shape, holds."""
        self._changes_to(value)
        if not is_gathered(view):
            part = self.of(view)
            if part is not None:
                part[where] = value
            return
        entries, numbers = self.rows(view)
        chosen = entries[numbers]
        chosen[where] = value
        entries[numbers] = chosen

    def put(self, view: StridedView, value: Any, where: np.ndarray | None = None) -> None:
        """Set the entries that a view names now, at `where` (bool that broadcasts to its shape)."""
        self._changes_to(value)
        if is_gathered(view):
            self._put_rows(view, value, where)
            return
        part = self.of(view)
        if part is None:
            return
        if where is None:
            part[...] = value
        else:
            part[np.broadcast_to(where, view.array.shape)] = value

    def _changes_to(self, value: Any) -> None:
        if self.filled and not value:
            self.filled.clear()

    def __deepcopy__(self, memo: object) -> Shadow:
        copy = object.__new__(Shadow)
        copy.unit, copy.entries, copy.filled = self.unit, self.entries.copy(), {*self.filled}
        return copy

    def _put_rows(self, view: StridedView, value: Any, where: np.ndarray | None) -> None:
        elements, valid = named_elements(view)
        entries, numbers = self.rows(view)
        if where is not None:
            numbers = numbers[np.broadcast_to(where, elements.shape)[valid]]
        entries[numbers] = value

    def refine(self, unit: int) -> None:
        """Have entries for no more than `unit` bytes each, a divisor of what they are for now."""
        unit = gcd(unit, self.unit)
        if unit != self.unit:
            self.entries = np.repeat(self.entries, self.unit // unit)
            self.unit = unit


def written_flags(storage: Storage) -> Shadow:
    """Flags beside the elements: has a matmul written them? (PSUM accumulation groups).

    `Storage.written` itself is False or True while all elements agree.
    """
    if not isinstance(storage.written, Shadow):
        storage.written = Shadow.beside(storage, storage.written is True)
    return storage.written


def is_gathered(view: StridedView) -> bool:
    """Whether an index names the elements of a view, one by one or row by row."""
    indirect = view.spec.indirect
    return indirect is not None and indirect.kind != "scalar"


def is_whole(view: StridedView) -> bool:
    """Whether a view names every byte of its tensor."""
    return (
        view.dynamic is None
        and view.array.nbytes == view.storage.flat.nbytes
        and not view.spec.repeats
    )


def first_byte(view: StridedView) -> int:
    """Bytes from the start of the storage to the first element of the view."""
    return bytes_before(view.array, view.storage.flat)
