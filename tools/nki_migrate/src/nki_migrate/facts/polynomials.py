"""Polynomials with integer coefficients over named integers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Monomial = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Polynomial:
    """Integer coefficients in normal form: {("i", "n"): 128, (): 3} is 128·i·n + 3.

    Atoms are names of integers; equal polynomials have the same normal form.
    """

    terms: frozenset[tuple[Monomial, int]]

    @staticmethod
    def of(terms: Mapping[Monomial, int]) -> Polynomial:
        """From coefficients, of which zeros are dropped."""
        return Polynomial(frozenset((m, c) for m, c in terms.items() if c))

    @staticmethod
    def number(value: int) -> Polynomial:
        """A constant."""
        return Polynomial.of({(): value})

    @staticmethod
    def atom(name: str) -> Polynomial:
        """The integer `name`."""
        return Polynomial.of({(name,): 1})

    @property
    def constant(self) -> int | None:
        """Its value; None where it has atoms."""
        if not self.terms:
            return 0
        (monomial, value), *rest = self.terms
        return value if not rest and not monomial else None

    @property
    def single_atom(self) -> str | None:
        """The atom, where the polynomial is that atom alone."""
        if len(self.terms) != 1:
            return None
        ((monomial, value),) = self.terms
        return monomial[0] if value == 1 and len(monomial) == 1 else None

    def atoms(self) -> frozenset[str]:
        """All atoms in it."""
        return frozenset(a for m, _ in self.terms for a in m)

    def __add__(self, other: Polynomial) -> Polynomial:
        total = dict(self.terms)
        for m, c in other.terms:
            total[m] = total.get(m, 0) + c
        return Polynomial.of(total)

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + other * Polynomial.number(-1)

    def __mul__(self, other: Polynomial) -> Polynomial:
        total: dict[Monomial, int] = {}
        for m1, c1 in self.terms:
            for m2, c2 in other.terms:
                m = tuple(sorted(m1 + m2))
                total[m] = total.get(m, 0) + c1 * c2
        return Polynomial.of(total)

    def substitute(self, atom: str, value: Polynomial) -> Polynomial:
        """The polynomial with an atom replaced."""
        total = Polynomial.number(0)
        for m, c in self.terms:
            rest = tuple(a for a in m if a != atom)
            piece = Polynomial.of({rest: c})
            for _ in range(len(m) - len(rest)):
                piece = piece * value
            total = total + piece
        return total

    def exact_quotient(self, divisor: int) -> Polynomial | None:
        """self / divisor; None where a coefficient is not a multiple of it."""
        if divisor == 0 or any(c % divisor for _, c in self.terms):
            return None
        return Polynomial.of({m: c // divisor for m, c in self.terms})

    def __str__(self) -> str:
        return " + ".join("*".join((str(c), *m)) for m, c in sorted(self.terms)) or "0"
