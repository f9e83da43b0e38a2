"""Layouts that a hardware access pattern can express, and the bits that prevent it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from neuroncore.layout.canonical import split_bits
from neuroncore.layout.factors import FactoredMap


@dataclass(frozen=True, slots=True)
class Mixture:
    """An address bit that is the XOR of two index bits, each given as (dimension, bit)."""

    address_bit: int
    higher: tuple[int, int]
    """The index bit that is mixed in: it also steps over a higher address bit."""
    lower: tuple[int, int]

    def __str__(self) -> str:
        (dim, bit), (other, low) = self.higher, self.lower
        return (
            f"address bit {self.address_bit} is the XOR of index bit {bit} of dimension {dim} "
            f"and index bit {low} of dimension {other}"
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer of Layout.fits_view: the pattern, or what prevents one.

    `pattern` is [[stride, count], …] for `View.ap`, `offset` its offset; `dims` says how many of
    its pairs each dimension of the layout has. `mixtures` are the blocking bits; `reason` says in a
    sentence why none exists.
    """

    pattern: tuple[tuple[int, int], ...] = ()
    offset: int = 0
    dims: tuple[int, ...] = ()
    mixtures: tuple[Mixture, ...] = ()
    reason: str | None = None

    @property
    def fits(self) -> bool:
        """Whether there is a pattern."""
        return self.reason is None

    def __bool__(self) -> bool:
        return self.fits

    def __str__(self) -> str:
        if self.reason is not None:
            return f"no access pattern: {self.reason}"
        return f"{[list(pair) for pair in self.pattern]} from {self.offset}"


def fits_view(
    layout: FactoredMap, canonical: FactoredMap, row: int | None, most_pairs: int | None
) -> Verdict:
    """See Layout.fits_view."""
    if canonical.swizzle:
        mixtures = _mixtures(layout)
        return Verdict(mixtures=mixtures, reason="; ".join(map(str, mixtures)))
    groups = [factors or ((1, 0 if row is None or dim else row),)
              for dim, factors in enumerate(canonical.dims)]  # fmt: skip
    pattern = tuple((stride, size) for factors in groups for size, stride in factors)
    found = Verdict(pattern, canonical.offset, tuple(map(len, groups)))
    reason = _too_long(found, most_pairs) or _off_partition(found, row)
    return Verdict(reason=reason) if reason else found


def _mixtures(layout: FactoredMap) -> tuple[Mixture, ...]:
    bits = sorted(split_bits(layout).bits, key=lambda bit: -bit.flips.bit_length())
    return tuple(
        Mixture(at, (high.dim, high.bit), (low.dim, low.bit))
        for high, low in combinations(bits, 2)
        for at in reversed(range((high.flips & low.flips).bit_length()))
        if high.flips & low.flips & 1 << at
    )


def _too_long(found: Verdict, most_pairs: int | None) -> str | None:
    if most_pairs is None or len(found.pattern) <= most_pairs:
        return None
    return f"it takes {len(found.pattern)} [stride, count] pairs, of which {most_pairs} may be used"


def _off_partition(found: Verdict, row: int | None) -> str | None:
    """Why the pattern does not fit partitions of `row` units, the first pair over partitions."""
    if row is None:
        return None
    (stride, count), *free = found.pattern
    if found.dims[0] != 1 or (count > 1 and stride != row):
        return f"dimension 0 steps over partitions by {row}; its steps are {_shown(found)}"
    reach = [(n - 1) * s for s, n in free]
    first = found.offset % row + sum(min(r, 0) for r in reach)
    last = found.offset % row + sum(max(r, 0) for r in reach)
    if first < 0 or last >= row:
        return f"it reaches from {first} to {last} in a partition of {row}"
    return None


def _shown(found: Verdict) -> str:
    return str([list(pair) for pair in found.pattern[: found.dims[0]]])
