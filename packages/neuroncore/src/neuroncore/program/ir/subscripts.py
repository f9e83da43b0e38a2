"""Accesses as subscripts: `x[128*i : 128*i + 128, k, 0:64:2]`, where they are boxes.

A subscript has one item per dimension of the buffer: a slice keeps the dimension, a single index
drops it. Any other access needs its strides spelled out.
"""

from __future__ import annotations

from collections.abc import Sequence

from neuroncore.integers.affine import Affine
from neuroncore.program.ir.nodes import Access, Buffer
from neuroncore.records import record


@record
class Slice:
    """`count` elements from `start`, every `step`-th."""

    start: Affine
    count: int
    step: int = 1

    @property
    def stop(self) -> Affine:
        """One behind the last element."""
        return self.start + ((self.count - 1) * self.step + 1)


Item = Slice | Affine


def access_at(buffer: Buffer, items: Sequence[Item]) -> Access:
    """The access that a subscript with one item per dimension of `buffer` names."""
    offset, shape, strides = Affine(), [], []
    for item, stride in zip(items, buffer.strides, strict=True):
        if isinstance(item, Slice):
            shape.append(item.count)
            strides.append(item.step * stride)
        offset += (item.start if isinstance(item, Slice) else item) * stride
    return Access(buffer.name, offset, tuple(shape), tuple(strides))


def subscript(access: Access, buffer: Buffer) -> tuple[Item, ...] | None:
    """The subscript that names exactly these elements, or None where there is none.

    `access_at` undoes it.
    """
    if access.dtype is not None or access.indirect is not None:
        return None
    units = buffer.strides
    kept = _match(access, buffer.shape, units)
    if kept is None:
        return None
    starts = _starts(access.offset, units)
    items = [
        start if keep is None else Slice(start, *keep)
        for start, keep in zip(starts, kept, strict=True)
    ]
    return tuple(items)


def canonical(access: Access, buffer: Buffer) -> Access:
    """The same elements; where a dimension has one element, its stride is the buffer's."""
    if access.dtype is not None or access.indirect is not None:
        return access
    units = buffer.strides
    kept = _match(access, buffer.shape, units, loose=True)
    if kept is None:
        return access
    strides = [k[1] * s for k, s in zip(kept, units, strict=True) if k is not None]
    return Access(access.buffer, access.offset, access.shape, tuple(strides))


Kept = tuple[int, int]


def _match(
    access: Access, shape: tuple[int, ...], units: tuple[int, ...], loose: bool = False
) -> list[Kept | None] | None:
    """Per dimension of a buffer, the (count, step) of the access's dimension that runs over it.

    Dimensions keep their order; the first that fits is taken. `loose` ignores the stride of
    dimensions with one element.
    """

    def fits(a: int, d: int) -> int:
        """The step with which dimension a of the access runs over d of the buffer; 0: none."""
        count, stride, unit = access.shape[a], access.strides[a], units[d]
        if count == 1:
            return 1 if loose or stride == unit else 0
        step, rest = divmod(stride, unit)
        return step if not rest and (count - 1) * step < shape[d] and step > 0 else 0

    def match(a: int, d: int) -> list[Kept | None] | None:
        if d == len(shape):
            return [] if a == len(access.shape) else None
        left = len(access.shape) - a
        step = fits(a, d) if left else 0
        if step:
            rest = match(a + 1, d + 1)
            if rest is not None:
                return [(access.shape[a], step), *rest]
        if left < len(shape) - d:
            rest = match(a, d + 1)
            if rest is not None:
                return [None, *rest]
        return None

    return match(0, 0) if access.shape else None


def _starts(offset: Affine, strides: tuple[int, ...]) -> list[Affine]:
    """The offset as one start per dimension, such that Σ start · stride is the offset.

    The constant and each coefficient go to the slowest dimensions whose strides divide into them.
    """
    starts = [Affine() for _ in strides]
    for name, amount in ((None, offset.constant), *offset.terms):
        sign, rest = (1, amount) if amount >= 0 else (-1, -amount)
        for dim, stride in enumerate(strides):
            count, rest = divmod(rest, stride)
            if count:
                starts[dim] += Affine.variable(name, sign * count) if name else sign * count
    return starts
