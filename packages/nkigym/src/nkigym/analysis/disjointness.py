"""Dependence analysis: disjointness of two accesses in all related iterations.

An access is split into the dimensions of its buffer; where the intervals of one dimension are
disjoint, the elements are. The cost does not depend on the number of iterations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from neuroncore.program import Access, Buffer
from neuroncore.spec import row_major
from nkigym.analysis.accesses import WRITE, CallAccess, Range

SAME, LATER, EARLIER, ANY = "=", ">", "<", "*"
"""How the iteration of the first access relates to that of the second, loop by loop."""


class Shared(NamedTuple):
    """A loop around both accesses, and how the iteration of the first relates to the second's."""

    loop: Range
    relation: str


class Disjoint(NamedTuple):
    """The claim that two accesses to one buffer never overlap in iterations so related."""

    a: CallAccess
    b: CallAccess
    shared: tuple[Shared, ...]
    buffer: Buffer


def conflicts(
    first: Iterable[CallAccess], second: Iterable[CallAccess]
) -> Iterator[tuple[CallAccess, CallAccess]]:
    """Pairs of accesses to one buffer, of which one writes, and whose order could matter.

    Sums into the same elements commute, and so do clobbers of a register.
    """
    by_buffer: dict[str, list[CallAccess]] = {}
    for b in second:
        by_buffer.setdefault(b.buffer, []).append(b)
    for a in first:
        for b in by_buffer.get(a.buffer, ()):
            if a.kind == b.kind and a.kind != WRITE:
                continue
            yield a, b


class IndexRange(NamedTuple):
    """One dimension of an access: its first index, and how many beyond it are spanned."""

    constant: int
    terms: tuple[tuple[str, int], ...]
    extent: int


MAX_CACHED = 1 << 14
"""Entries of the cache of claims; beyond it the cache is cleared."""

_proved: dict[tuple[Any, ...], bool] = {}


def is_disjoint(claim: Disjoint) -> bool:
    """Whether intervals prove the claim; found once for all claims of the same content."""
    a, b, shared, buffer = claim
    if a.access is None or b.access is None:
        return False
    content = (*_content(a), *_content(b), shared, buffer.shape)
    found = _proved.get(content)
    if found is None:
        if len(_proved) >= MAX_CACHED:
            _proved.clear()
        found = _proved[content] = _is_proved(claim, a.access, b.access)
    return found


def _content(touch: CallAccess) -> tuple[Any, ...]:
    """The parts of an access that intervals depend on."""
    access = touch.access
    assert access is not None
    is_plain = access.dtype is None and access.indirect is None
    return (
        access.offset.constant, access.offset.terms, access.shape, access.strides, is_plain,
        touch.loops,
    )  # fmt: skip


def _is_proved(claim: Disjoint, a: Access, b: Access) -> bool:
    shared = {s.loop.variable: s for s in claim.shared}
    around = {name: s.loop for name, s in shared.items()}
    mine = {**around, **{r.variable: r for r in claim.a.loops}}
    theirs = {**around, **{r.variable: r for r in claim.b.loops}}
    for x, y in _common_ranges(a, b, claim.buffer.shape, mine, theirs):
        low, high = _difference(x, y, shared, mine, theirs)
        if low > y.extent or high < -x.extent:
            return True
    return False


def _common_ranges(
    a: Access, b: Access, shape: tuple[int, ...], mine: Mapping[str, Range],
    theirs: Mapping[str, Range],
) -> Iterable[tuple[IndexRange, IndexRange]]:  # fmt: skip
    """Both accesses by the dimensions of the finest shape that neither leaves in any dimension;
    nothing without one.
    """
    while shape:
        one, other = index_ranges(a, shape), index_ranges(b, shape)
        if one is None or other is None:
            return ()
        over = _beyond(one, shape, mine)
        over = _beyond(other, shape, theirs) if over is None else over
        if over is None:
            return zip(one, other, strict=True)
        if over == 0:
            return ()
        shape = (*shape[: over - 1], shape[over - 1] * shape[over], *shape[over + 1 :])
    return ()


def _difference(
    x: IndexRange, y: IndexRange, shared: Mapping[str, Shared],
    mine: Mapping[str, Range], theirs: Mapping[str, Range],
) -> tuple[int, int]:  # fmt: skip
    """The least and greatest of x's first index minus y's."""
    low = high = x.constant - y.constant
    one, other = dict(x.terms), dict(y.terms)
    parts = [(c, mine[name]) for name, c in x.terms if name not in shared]
    parts += [(-c, theirs[name]) for name, c in y.terms if name not in shared]
    for name in one.keys() | other.keys():
        if name in shared:
            parts += _related(one.get(name, 0), other.get(name, 0), shared[name])
    for factor, values in parts:
        ends = factor * values.start, factor * values.last
        low, high = low + min(ends), high + max(ends)
    return low, high


def _related(a: int, b: int, shared: Shared) -> list[tuple[int, Range]]:
    """a·x - b·y with x = y + distance, as factors and the values that they multiply."""
    loop = shared.loop
    found = [(a - b, loop)] if a != b else []
    reach = loop.last - loop.start
    match shared.relation:
        case "=":
            return found
        case ">":
            return [*found, (a, Range("", loop.step, reach + 1, loop.step))]
        case "<":
            return [*found, (a, Range("", -reach, 0, loop.step))]
    return [*found, (a, Range("", -reach, reach + 1, loop.step))]


def _beyond(
    found: list[IndexRange], shape: tuple[int, ...], values: Mapping[str, Range]
) -> int | None:
    """The last dimension whose index leaves it and carries over; None without one."""
    for dim in reversed(range(len(shape))):
        digit = found[dim]
        low = high = digit.constant
        for name, c in digit.terms:
            loop = values[name]
            ends = c * loop.start, c * loop.last
            low, high = low + min(ends), high + max(ends)
        if low < 0 or high + digit.extent >= shape[dim]:
            return dim
    return None


def index_ranges(access: Access, shape: tuple[int, ...]) -> list[IndexRange] | None:
    """The access by the dimensions of a dense tensor; None where its dimensions are unknown."""
    if access.dtype is not None or access.indirect is not None:
        return None
    units, rank = row_major(shape), len(shape)
    extents = [0] * rank
    for count, stride in zip(access.shape, access.strides, strict=True):
        if not _spread(count, stride, units, shape, extents):
            return None
    constants, terms = [0] * rank, [[] for _ in range(rank)]
    for dim, amount in _divided(access.offset.constant, units):
        constants[dim] = amount
    for name, c in access.offset.terms:
        for dim, amount in _divided(c, units):
            terms[dim].append((name, amount))
    return [
        IndexRange(c, tuple(t), extent)
        for c, t, extent in zip(constants, terms, extents, strict=True)
    ]


def _divided(amount: int, units: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """The amount by dimension, slowest first."""
    sign, rest = (1, amount) if amount >= 0 else (-1, -amount)
    for dim, unit in enumerate(units):
        count, rest = divmod(rest, unit)
        if count:
            yield dim, sign * count


def _spread(
    count: int, stride: int, units: tuple[int, ...], shape: tuple[int, ...], extents: list[int]
) -> bool:
    """Add what one dimension of an access spans to the buffer's; False where its dimension is
    unknown."""
    if count == 1 or stride == 0:
        return True
    if stride < 0:
        return False
    dim = next((d for d, unit in enumerate(units) if stride >= unit and shape[d] > 1), None)
    if dim is None:
        return False
    step, rest = divmod(stride, units[dim])
    if rest:
        return False
    while (count - 1) * step >= shape[dim]:
        if step != 1 or count % shape[dim] or dim == 0 or extents[dim]:
            return False
        extents[dim] = shape[dim] - 1
        count //= shape[dim]
        dim -= 1
        if count == 1:
            return True
    extents[dim] += (count - 1) * step
    return True
