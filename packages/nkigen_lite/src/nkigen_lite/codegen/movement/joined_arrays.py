"""Joined arrays that are nowhere in HBM: the tile that one is loaded into is written by parts, a
DMA for each part of the array and a memset for numbers, as in padding.

The array has strides like one in HBM. What lies behind the joined axis is one line with it; a part
is a stretch of each line. Between lines lies a gap, so that no access goes on to the next line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import prod

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.program import Access, Affine, Buffer
from neuroncore.spec import row_major
from nkigen_lite.codegen.emission.writer import Writer
from nkigen_lite.fusion.array_view import ArrayView, array_view_of
from nkigen_lite.selection.literals import is_by_bits, literal
from nkigen_lite.selection.unsupported import CodegenError
from nkigen_lite.tensors.spec import Spec


@dataclass(frozen=True, slots=True)
class Part:
    """Elements `start` to `stop` of every line: an array, or one number."""

    start: int
    stop: int
    source: ArrayView | float


def lies_in_lines(source: ArrayView, axis: int) -> bool:
    """Whether axes from `axis` on are evenly spaced elements."""
    return _are_even(source, range(axis, len(source.shape) - 1))


def _are_even(source: ArrayView, axes: range) -> bool:
    shape, strides = source.shape, source.strides
    return all(strides[d] == strides[d + 1] * shape[d + 1] for d in axes)


@dataclass(frozen=True, slots=True)
class JoinedArray:
    """`view` is the array, whose first `axis` axes step from line to line."""

    view: ArrayView
    axis: int
    parts: tuple[Part, ...]

    @classmethod
    def of(
        cls, name: str, spec: Spec, axis: int, sources: Sequence[tuple[int, ArrayView | float]]
    ) -> JoinedArray:
        """The array of these (places along the axis, source)."""
        inner = prod(spec.shape[axis + 1 :])
        stops = list(accumulate((count * inner for count, _ in sources), initial=0))
        parts = [
            Part(start, stop, source)
            for (start, stop), (_, source) in zip(pairwise(stops), sources, strict=True)
        ]
        arrays = [source for _, source in sources if isinstance(source, ArrayView)]
        pitch, lead = stops[-1] + inner, list[int]()
        for d in range(axis - 1, -1, -1):
            lead.insert(0, pitch)
            even = d == 0 or all(_are_even(source, range(d - 1, d)) for source in arrays)
            pitch *= spec.shape[d] if even else spec.shape[d] + 1
        view = array_view_of(name, spec.shape, spec.dtype)
        line = row_major(spec.shape)[axis:]
        return cls(replace(view, strides=(*lead, *line)), axis, tuple(parts))

    @property
    def buffer(self) -> Buffer:
        """What accesses to the array name; it is never allocated."""
        return Buffer(
            self.view.buffer, self.view.shape or (1,), self.view.dtype, MemorySpace.private_hbm
        )

    @property
    def lead(self) -> tuple[int, ...]:
        """Elements from line to line."""
        return self.view.strides[: self.axis]

    def load(self, writer: Writer, dst: Access, src: Access) -> None:
        """What a DMA from the array would do. Raises CodegenError where the parts are not the same
        for all iterations."""
        if not writer.buffers[dst.buffer].space.on_chip or src.indirect is not None:
            raise CodegenError("a joined array is put together in SBUF only")
        dst = _like(dst, src)
        for part, first, count, along in self._pieces(writer, src):
            to, access = _cut(dst, along, first, count), _cut(src, along, first, count)
            if isinstance(part.source, ArrayView):
                writer.call("dma_copy", dst=to, src=self._access(part, part.source, access))
            elif src.dtype is self.view.look or not any(np.float64(part.source).tobytes()):
                _fill(writer, to, part.source)
            else:
                raise CodegenError("the bits of a number in a joined array")

    def cuts(self, offset: int, step: int) -> set[int]:
        """The places that begin another part, of places `step` apart from `offset` on."""
        if step <= 0 or not self._is_along(step):
            return set()
        return {-(-(part.start - self._place(offset)) // step) for part in self.parts}

    def _place(self, offset: int) -> int:
        """Where in its line an element is."""
        return offset % self.lead[-1] if self.lead else offset

    def within(self, writer: Writer, src: Access) -> Access:
        """The access as one to the array of the only part that it reaches; itself for others."""
        try:
            (part, *others) = [part for part, *_ in self._pieces(writer, src)]
        except CodegenError:
            return src
        if others or not isinstance(part.source, ArrayView):
            return src
        return self._access(part, part.source, src)

    def _pieces(self, writer: Writer, src: Access) -> Iterator[tuple[Part, int, int, int]]:
        """(part, first, count, axis): which elements of that axis of the access are in the part."""
        place = self._place(src.offset.constant)
        inside = [d for d, n in enumerate(src.shape) if n > 1 and self._is_along(src.strides[d])]
        moves = [(writer.trips[v], c) for v, c in src.offset.terms if self._is_along(c)]
        mine = self._reached(place, [*((src.shape[d], src.strides[d]) for d in inside), *moves])
        if len(mine) == 1:
            return iter([(mine[0], 0, src.shape[0], 0)])
        axis = inside[0] if len(inside) == 1 and not moves else 0
        if not axis or src.strides[axis] < 0:
            raise CodegenError("the parts of a joined array are others in every iteration")
        return _shares(mine, place, src.strides[axis], axis, src.shape[axis])

    def _reached(self, place: int, steps: Sequence[tuple[int, int]]) -> list[Part]:
        """The parts that (count, step) from a place of a line on reach."""
        low, high = (place + sum(f(0, (n - 1) * s) for n, s in steps) for f in (min, max))
        if low < 0 or high >= self.parts[-1].stop:
            raise CodegenError("an access to a joined array goes beyond a line")
        return [p for p in self.parts if p.start <= high and low < p.stop]

    def _is_along(self, step: int) -> bool:
        """Whether a step goes on in the line."""
        return step != 0 and (not self.lead or abs(step) < self.lead[-1])

    def _access(self, part: Part, source: ArrayView, access: Access) -> Access:
        """The access as one to the part's array."""
        place = access.offset.constant
        offset = Affine(source.offset)
        for pitch, stride in zip(self.lead, source.strides, strict=False):
            digit, place = divmod(place, pitch)
            offset += digit * stride
        offset += (place - part.start) * source.strides[-1]
        for variable, step in access.offset.terms:
            offset += Affine.variable(variable, self._step(source, step))
        strides = tuple(self._step(source, s) for s in access.strides)
        return Access(
            source.buffer, offset, access.shape, strides, access.dtype or source.look
        )  # fmt: skip

    def _step(self, source: ArrayView, step: int) -> int:
        """A step of the joined array as one of the part's array."""
        for pitch, stride in zip(self.lead, source.strides, strict=False):
            lines, rest = divmod(step, pitch)
            if not rest:
                return lines * stride
        if step and not self._is_along(step):
            raise CodegenError("an access to a joined array steps across lines")
        return step * source.strides[-1]


def joined_array(writer: Writer, buffer: str) -> JoinedArray | None:
    """The joined array that accesses to this buffer name."""
    found = writer.joined.get(buffer)
    return found if isinstance(found, JoinedArray) else None


def _shares(
    parts: Sequence[Part], place: int, step: int, axis: int, count: int
) -> Iterator[tuple[Part, int, int, int]]:
    """Which of `count` elements, `step` apart, each part has."""
    for part in parts:
        first = max(0, -(-(part.start - place) // step))
        last = min(count - 1, (part.stop - 1 - place) // step)
        if first <= last:
            yield part, first, last - first + 1, axis


def _like(dst: Access, src: Access) -> Access:
    """`dst`, all of its partitions from end to end, in the shape of `src`."""
    if dst.shape == src.shape:
        return dst
    dense = dst.strides[1:] == row_major(dst.shape[1:])
    if dst.shape[0] != src.shape[0] or dst.size != src.size or not dense:
        raise CodegenError("a joined array is loaded in another order")
    return replace(dst, shape=src.shape, strides=(dst.strides[0], *row_major(src.shape[1:])))


def _cut(access: Access, axis: int, first: int, count: int) -> Access:
    """`count` elements of an axis."""
    shape = (*access.shape[:axis], count, *access.shape[axis + 1 :])
    return replace(access, offset=access.offset + first * access.strides[axis], shape=shape)


def _fill(writer: Writer, dst: Access, number: float) -> None:
    dtype = dst.dtype or writer.buffers[dst.buffer].dtype
    if is_by_bits(number, dtype):
        raise CodegenError("a number beyond int32")
    writer.call("memset", dst=dst, value=literal(number, dtype))
