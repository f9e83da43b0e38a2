"""Plans to bring elements into another order by way of SBUF, from the strides of both sides alone.

Some axes lie on partitions when loaded (`down`), some when stored (`across`), the rest inside
partitions (`inside`). Where `across` is empty partitions stay what they are and a strided copy
exchanges the rest; else TensorE turns `down` x `across` blocks around, and the copy out of PSUM
orders what is inside. A box of this kind is 8 KiB per partition; the other axes, and more of those,
are loops over boxes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import prod

from neuroncore.targets import PARTITIONS

BOX_BYTES = 8 * 1024
INNER_SHARE = 4
"""An axis that lies inside alone takes at most this part of a box: others may have to lie there."""

RUN_BYTES = 512
"""From here on descriptors cost next to nothing beside their bytes."""

ENOUGH = 64
"""So many partitions when stored are worth no further axis: it would cut the runs of the target."""

BETWEEN_ARRAYS = 1 << 62
"""The step in the source from one array to the next, where several become one."""


@dataclass(frozen=True, slots=True)
class StridedAxis:
    """An axis of elements: `size` of them, one step along it is `to` and `source` elements, the
    latter also backwards."""

    size: int
    to: int
    source: int

    def split(self, inner: int) -> tuple[StridedAxis, StridedAxis]:
        """(outer, inner) axes."""
        outer = StridedAxis(self.size // inner, self.to * inner, self.source * inner)
        return outer, replace(self, size=inner)


class AxisPlace(Enum):
    """Where an axis of a box lies."""

    down = "on partitions when loaded"
    across = "on partitions when stored"
    inside = "inside partitions"
    loop = "one element at a time"


@dataclass(frozen=True, slots=True)
class AxisSplit:
    """An axis of a plan: `inner` elements lie at `place`, `outer` times as many inside partitions,
    the rest is a loop."""

    axis: StridedAxis
    place: AxisPlace
    inner: int
    outer: int = 1

    def cuts(self) -> Iterator[tuple[int, int, int, int]]:
        """(first, boxes, outer, inner): full ones, then what is left over."""
        size, each = self.axis.size, self.inner * self.outer
        full, rest = divmod(size, each)
        if full:
            yield 0, full, self.outer, self.inner
        if rest // self.inner:
            yield full * each, 1, rest // self.inner, self.inner
        if rest % self.inner:
            yield size - rest % self.inner, 1, 1, rest % self.inner


AxisSplits = tuple[AxisSplit, ...]
Placed = tuple[StridedAxis, AxisPlace]


def by_copies(axes: Sequence[StridedAxis], itemsize: int) -> AxisSplits | None:
    """Partitions that stay; the runs of both sides lie inside. None where they leave no axis for
    the partitions or are too long."""
    most = BOX_BYTES // itemsize
    axes = [part for axis in axes for part in _cut(axis, most // INNER_SHARE)]
    inside: list[StridedAxis] = []
    for order in (_by_source(axes), _by_target(axes)):
        run = 1
        for axis in order:
            held = prod(a.size for a in {*inside, axis})
            if run * itemsize >= RUN_BYTES or held > most:
                break
            run *= axis.size
            if axis not in inside:
                inside.append(axis)
    rest = sorted((a for a in axes if a not in inside), key=lambda a: -a.size)
    if not rest and inside:
        longest = max(inside, key=lambda a: a.size)
        inside.remove(longest)
        outer, inner = longest.split(longest.size // _divisor(longest.size, PARTITIONS))
        inside, rest = [*inside, inner], [outer]
    if not inside or not rest:
        return None
    down, left = _gathered(rest, AxisPlace.down)
    down[-1] = _grown(down[-1], most // prod(a.size for a in inside))
    pieces = [AxisSplit(a, AxisPlace.inside, a.size) for a in inside]
    return (*pieces, *down, *(AxisSplit(a, AxisPlace.loop, 1) for a in left))


def _divisor(size: int, most: int) -> int:
    """The largest divisor up to `most`."""
    return next(d for d in range(min(size, most), 0, -1) if size % d == 0)


def _cut(axis: StridedAxis, most: int) -> list[StridedAxis]:
    """An axis that is too long to lie inside as two, where a number divides it."""
    inner = _divisor(axis.size, most)
    return [axis] if axis.size <= most or inner == 1 else list(axis.split(inner))


def by_transposes(axes: Sequence[StridedAxis], itemsize: int) -> AxisSplits | None:
    """Inner axes of the source on partitions when stored, inner axes of the target when loaded.
    None where both sides have the same inner axes."""
    most = BOX_BYTES // itemsize
    sources, targets = _by_source(axes), _by_target(axes)
    inside: list[StridedAxis] = []
    while sources and targets and sources[0] == targets[0]:
        inside.append(sources.pop(0))
        targets.pop(0)
    if not sources or not targets or prod(a.size for a in inside) > most // PARTITIONS:
        return None
    across, left = _gathered(sources, AxisPlace.across)
    used = {p.axis for p in across}
    free = [a for a in targets if a not in sources] + [a for a in left if a.source]
    free = sorted((a for a in free if a not in used), key=lambda a: a.to)
    if not free:
        return None
    down, left = _gathered(free, AxisPlace.down)
    room = most // (prod(a.size for a in inside) * max(_held(across), _held(down)))
    pieces = [AxisSplit(a, AxisPlace.inside, a.size) for a in inside]
    if not room:
        return None
    down[-1] = _grown(down[-1], room)
    room //= down[-1].outer
    for axis in sorted(left, key=lambda a: a.to):
        pieces.append(AxisSplit(axis, AxisPlace.inside, min(axis.size, room)))
        room //= pieces[-1].inner
    across[-1] = _grown(across[-1], room)
    return (*pieces, *down, *across)


def _by_source(axes: Sequence[StridedAxis]) -> list[StridedAxis]:
    return sorted((a for a in axes if a.source), key=lambda a: abs(a.source))


def _by_target(axes: Sequence[StridedAxis]) -> list[StridedAxis]:
    return sorted(axes, key=lambda a: a.to)


def _held(pieces: list[AxisSplit]) -> int:
    return prod(p.inner for p in pieces)


def _grown(piece: AxisSplit, room: int) -> AxisSplit:
    """The piece with as much more of its axis inside partitions as there is room for."""
    return replace(piece, outer=max(1, min(room, -(-piece.axis.size // piece.inner))))


def _gathered(
    axes: Sequence[StridedAxis], place: AxisPlace
) -> tuple[list[AxisSplit], list[StridedAxis]]:
    """Axes in order on partitions until they are enough, and what is left. Of an axis that is too
    long for those before it, a divisor: its outer part when loaded, its inner one when stored."""
    taken: list[AxisSplit] = []
    left, held = list(axes), 1
    while left and held < (PARTITIONS if place is AxisPlace.down else ENOUGH):
        axis = left[0]
        if not taken or held * axis.size <= PARTITIONS:
            taken.append(AxisSplit(left.pop(0), place, min(axis.size, PARTITIONS)))
            held *= taken[-1].inner
            continue
        fits = (d for d in range(PARTITIONS // held, 1, -1) if axis.size % d == 0)
        count = next(fits, 1)
        if count == 1:
            break
        left.pop(0)
        if place is AxisPlace.down:
            outer, inner = axis.split(axis.size // count)
            taken.insert(0, AxisSplit(outer, place, count))
            left.insert(0, inner)
        else:
            outer, inner = axis.split(count)
            taken.insert(0, AxisSplit(inner, place, count))
            left.insert(0, outer)
        break
    return taken, left
