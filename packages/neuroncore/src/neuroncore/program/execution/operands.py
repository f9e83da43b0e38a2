"""Buffers and accesses of a program while it runs: storage, and views at current offsets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from neuroncore.errors import AccessError
from neuroncore.machine.core import NeuronCore
from neuroncore.memory import Dynamic, View
from neuroncore.memory.pattern import check_has_bits
from neuroncore.program.ir.binding import (
    check_inside,
    in_elements,
    index_stride,
    place_of,
    seen_as,
    spec_at,
)
from neuroncore.program.ir.constants import elements_of
from neuroncore.program.ir.nodes import Access, Buffer
from neuroncore.source_location import Place
from neuroncore.spec import Spec

VIEWS_KEPT = 1 << 12  # per operand; beyond it the views are made anew


@dataclass(slots=True)
class Tensor:
    """A buffer of the program while it runs."""

    buffer: Buffer
    core: NeuronCore
    view: View | None = None
    operands: list[Operand] = field(default_factory=list)

    def begin(self, place: Place | None = None) -> None:
        """Undefined content again. Memory is reused, unless observers tell tensors apart; they are
        told the place where the buffer was made.
        """
        if self.view is not None and not self.core.watchers:
            self.view.storage.fresh, self.view.storage.written = True, False
            return
        b = self.buffer
        if b.content is None:
            self.view = self.core.allocate(b.shape, b.dtype, b.space, b.name, b.address, place)
        else:
            self.view = self.core.constant(elements_of(b), b.dtype, b.name, place)
        for operand in self.operands:
            operand.forget()

    def current(self) -> View:
        """All of it; raises AccessError before its first allocation."""
        if self.view is None:
            raise AccessError(
                f"{self.buffer.name} is used before it is allocated",
                hint="every loop around its allocation must run first",
            )
        return self.view


class Frame(Protocol):
    """The parts of the running program that operands need."""

    buffers: dict[str, Buffer]
    slots: dict[str, int]
    values: list[int]


class Operand:
    """An access: called, it gives its view for the current values of the loop variables."""

    __slots__ = (
        "access", "base", "by_dma", "flat", "frame", "index", "inside", "shape", "specs", "strides",
        "tensor", "terms", "values", "views",
    )  # fmt: skip

    def __init__(
        self, access: Access, tensor: Tensor, frame: Frame, by_dma: bool, index: Operand | None
    ) -> None:
        self.access, self.tensor, self.frame = access, tensor, frame
        self.by_dma, self.index = by_dma, index
        self.values = frame.values
        self.base = access.offset.constant
        self.terms = [(frame.slots[name], c) for name, c in access.offset.terms]
        self.views: dict[int, View] = {}
        self.specs: dict[tuple[int, int], Spec] = {}
        self.flat: np.ndarray | None = None
        self.shape = access.shape
        self.strides: tuple[int, ...] = ()
        buffer = tensor.buffer
        down, up = access.reach()
        last = in_elements(access, buffer, buffer.size) - 1
        self.inside = range(0) if buffer.space.on_chip else range(-down, last - up + 1)
        """Offsets that need no further look; on chip every new one is looked at."""
        tensor.operands.append(self)

    def __call__(self) -> View:
        offset, values = self.base, self.values
        for slot, c in self.terms:
            offset += c * values[slot]
        found = self.views.get(offset)
        return self._make(offset) if found is None else found

    def forget(self) -> None:
        """The buffer lies elsewhere now."""
        self.views.clear()
        self.flat = None

    def _make(self, offset: int) -> View:
        view = self._view(offset)
        if len(self.views) >= VIEWS_KEPT:
            self.views.clear()
        self.views[offset] = view
        return view

    def _view(self, offset: int) -> View:
        if offset not in self.inside:
            check_inside(self.access, self.tensor.buffer, offset, self.by_dma)
        whole = self.tensor.current()
        flat = self.flat
        if flat is None:
            flat = self.flat = self._elements(whole)
            steps = zip(self.access.strides, self.shape, strict=True)
            self.strides = tuple(s * flat.itemsize if n > 1 else 0 for s, n in steps)
        view = View.__new__(View)
        view.array = np.ndarray(self.shape, flat.dtype, flat, offset * flat.itemsize, self.strides)
        view.storage, view.core, view.dynamic = whole.storage, whole.core, None
        view.spec = self._spec(offset)
        return view

    def _elements(self, whole: View) -> np.ndarray:
        """The buffer's flat elements in the access's dtype."""
        flat, dtype = whole.storage.flat, seen_as(self.access, self.tensor.buffer)
        if dtype is self.tensor.buffer.dtype:
            return flat
        check_has_bits(whole, dtype)
        return flat.view(dtype.storage)

    def _spec(self, offset: int) -> Spec:
        core, buffer = self.tensor.core, self.tensor.buffer
        place = place_of(self.access, buffer, core, offset) if buffer.space.on_chip else (0, 0)
        spec = self.specs.get(place)
        if spec is None:
            spec = spec_at(self.access, self.frame.buffers, core, offset)
            if not self.tensor.current().spec.mutable:
                spec = spec.but(mutable=False)
            self.specs[place] = spec
        return spec


class IndirectOperand(Operand):
    """An access that an index moves; the view is made anew each time, its index may differ."""

    __slots__ = ()

    def _make(self, offset: int) -> View:
        indirect, buffer = self.access.indirect, self.tensor.buffer
        assert indirect is not None and self.index is not None
        view, index = self._view(offset), self.index()
        index.initialize()
        limit, _ = indirect.rows(buffer)
        view.dynamic = Dynamic(index, index_stride(self.access, buffer), limit)
        return view
