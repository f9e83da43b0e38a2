"""Affine expressions of loop variables: Σ coefficient · variable + constant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from neuroncore.records import record


@record
class Affine:
    """An integer that depends affinely on loop variables; terms are sorted and never zero.

    >>> i = Affine.variable("i")
    >>> print(128 * i + 5)
    128*i + 5
    """

    constant: int = 0
    terms: tuple[tuple[str, int], ...] = ()

    @classmethod
    def variable(cls, name: str, coefficient: int = 1) -> Self:
        """`coefficient` times the loop variable `name`."""
        return cls(0, ((name, coefficient),)) if coefficient else cls()

    @classmethod
    def of(cls, value: int | Affine) -> Affine:
        """A plain int as an expression; an expression as it is."""
        return value if isinstance(value, Affine) else cls(value)

    @property
    def is_constant(self) -> bool:
        return not self.terms

    def value(self, at: Mapping[str, int]) -> int:
        """The integer for these values of the loop variables; KeyError names a missing one."""
        return self.constant + sum(c * at[name] for name, c in self.terms)

    def bounds(self, ranges: Mapping[str, Sequence[int]]) -> tuple[int, int]:
        """Least and greatest value while each variable runs from its first to its last."""
        low = high = self.constant
        for name, c in self.terms:
            first, last = ranges[name][0], ranges[name][-1]
            low += min(c * first, c * last)
            high += max(c * first, c * last)
        return low, high

    def substitute(self, replacements: Mapping[str, Affine]) -> Affine:
        """Variables replaced by expressions."""
        constant, kept, come = self.constant, [], []
        for term in self.terms:
            new = replacements.get(term[0])
            if new is None:
                kept.append(term)
                continue
            factor = term[1]
            constant += new.constant * factor
            come += [(name, c * factor) for name, c in new.terms]
        return Affine(constant, _summed(kept, come) if come else tuple(kept))

    def __add__(self, other: int | Affine) -> Affine:
        if not isinstance(other, Affine):
            return Affine(self.constant + other, self.terms) if other else self
        constant = self.constant + other.constant
        if not other.terms:
            return Affine(constant, self.terms) if other.constant else self
        terms = _summed(self.terms, other.terms) if self.terms else other.terms
        return Affine(constant, terms)

    __radd__ = __add__

    def __sub__(self, other: int | Affine) -> Affine:
        return self + Affine.of(other) * -1

    def __neg__(self) -> Affine:
        return self * -1

    def __mul__(self, factor: int) -> Affine:
        if factor == 1:
            return self
        if not factor:
            return Affine()
        return Affine(self.constant * factor, tuple((n, c * factor) for n, c in self.terms))

    __rmul__ = __mul__

    def __str__(self) -> str:
        """Variables by falling coefficient, then the constant: 2048*m + 128*k + 5."""
        parts: list[tuple[int, str]] = [
            (c, name if abs(c) == 1 else f"{abs(c)}*{name}")
            for name, c in sorted(self.terms, key=lambda term: -abs(term[1]))
        ]
        if self.constant or not parts:
            parts.append((self.constant, str(abs(self.constant))))
        (first, head), *rest = parts
        return (
            ("-" if first < 0 else "")
            + head
            + "".join(f" {'-' if c < 0 else '+'} {size}" for c, size in rest)
        )


_Terms = Sequence[tuple[str, int]]


def _summed(one: _Terms, other: _Terms) -> tuple[tuple[str, int], ...]:
    """Terms of a sum: sorted, each variable once, none of them zero."""
    merged = dict(one)
    for name, c in other:
        merged[name] = merged.get(name, 0) + c
    return tuple(sorted([term for term in merged.items() if term[1]]))
