"""Exact symbolic integers: polynomials over atoms, bounded by loops and quotients.

An atom is a name for a number the source leaves open: `x.shape[0]`, a loop variable, `n // 128`.
Polynomials decide equality (same normal form); `Facts.proves_at_least` decides order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from nki_migrate.facts.polynomials import Monomial
from nki_migrate.facts.polynomials import Polynomial as Poly


@dataclass(frozen=True, slots=True)
class Quotient:
    """The meaning of an atom q: n // d, or ⌈n / d⌉ when `up`."""

    numerator: Poly
    divisor: Poly
    up: bool = False


@dataclass(slots=True)
class Facts:
    """Facts about atoms: loop ranges, quotients, divisibility, lower bounds."""

    ranges: dict[str, tuple[Poly, Poly]] = field(default_factory=dict)  # both ends inclusive
    quotients: dict[str, Quotient] = field(default_factory=dict)
    divisible: set[tuple[Poly, int]] = field(default_factory=set)
    equal: dict[str, Poly] = field(default_factory=dict)  # asserted: atom → what it equals
    positive: set[str] = field(default_factory=set)  # atoms ≥ 1: dimensions

    def reduced(self, poly: Poly) -> Poly:
        """The polynomial with asserted equalities put in."""
        for atom in sorted(poly.atoms()):
            if atom in self.equal:
                poly = poly.substitute(atom, self.equal[atom])
        return poly

    def same(self, a: Poly, b: Poly) -> bool:
        """Whether two numbers are proved equal."""
        if a == b:
            return True
        difference = self._without_quotients(self.reduced(a) - self.reduced(b))
        return difference.constant == 0

    def quotient(self, numerator: Poly, divisor: Poly, *, up: bool = False) -> Poly:
        """numerator // divisor (or rounded up), a number or an atom that remembers its meaning."""
        d = divisor.constant
        if d is not None and d > 0:
            exact = numerator.exact_quotient(d)
            if exact is not None:
                return exact
            if numerator.constant is not None:
                n = numerator.constant
                return Poly.number(-(-n // d) if up else n // d)
            rounded_up = numerator - Poly.number(d - 1)
            if not up and () in dict(numerator.terms) and () not in dict(rounded_up.terms):
                return self.quotient(rounded_up, divisor, up=True)
        name = f"({numerator}){'//^' if up else '//'}({divisor})"
        self.quotients[name] = Quotient(numerator, divisor, up)
        return Poly.atom(name)

    def negated(self, poly: Poly) -> Poly:
        """-poly; -(-n // d) is n / d rounded up."""
        q = self.quotients.get(poly.single_atom or "")
        minus = Poly.number(0) - poly
        if q is None:
            return minus
        return self.quotient(Poly.number(0) - q.numerator, q.divisor, up=not q.up)

    def divides(self, divisor: int, number: Poly) -> bool:
        """Whether `number` is a multiple of `divisor`, by form or by an assertion."""
        number = self.reduced(number)
        if number.exact_quotient(divisor) is not None:
            return True
        return any(p == number and d % divisor == 0 for p, d in self.divisible)

    def proves_at_least(self, poly: Poly, bound: int) -> bool:
        """Whether poly ≥ bound holds for every value of its atoms."""
        low = self._lower(self.reduced(poly), 12)
        return low is not None and low >= bound

    def _lower(self, poly: Poly, fuel: int) -> int | None:
        """A proved lower bound, or None."""
        constant = poly.constant
        if constant is not None or fuel == 0:
            return constant
        for atom in self._loop_atoms(poly):
            end = self._extreme(poly, atom)
            if end is not None:
                return self._lower(self.reduced(poly.substitute(atom, end)), fuel - 1)
        spread = self._without_quotients(poly)
        if spread != poly:
            return self._lower(spread, fuel - 1)
        return self._sum_of_bounds(poly)

    def _loop_atoms(self, poly: Poly) -> Iterator[str]:
        """Loop variables, innermost (latest) first."""
        known = list(self.ranges)
        here = poly.atoms()
        return (a for a in reversed(known) if a in here and not a.startswith("rem "))

    def _extreme(self, poly: Poly, atom: str) -> Poly | None:
        """The end of the atom's range at which a polynomial linear in it is smallest."""
        slope: dict[Monomial, int] = {}
        for m, c in poly.terms:
            if m.count(atom) > 1:
                return None
            if atom in m:
                slope[tuple(a for a in m if a != atom)] = c
        low, high = self.ranges[atom]
        signs = {c > 0 for c in slope.values()}
        if len(signs) != 1 or not all(self._nonnegative(a) for m in slope for a in m):
            return None
        return low if signs == {True} else high

    def _without_quotients(self, poly: Poly) -> Poly:
        """n // d in the polynomial: write n as d·q + r, with r = 0 where divisibility is known."""
        for atom in sorted(poly.atoms()):
            q = self.quotients.get(atom)
            whole = q.numerator.single_atom if q else None
            if q is None or whole is None or whole not in poly.atoms():
                continue
            rest = Poly.number(0)
            d = q.divisor.constant
            if d is None or not self.divides(d, q.numerator):
                name = f"rem {atom}"
                rest = Poly.atom(name)
                if d is not None:
                    self.ranges[name] = (Poly.number(0), Poly.number(d - 1))
            sign = Poly.number(-1 if q.up else 1)
            return poly.substitute(whole, q.divisor * Poly.atom(atom) + rest * sign)
        return poly

    def _sum_of_bounds(self, poly: Poly) -> int | None:
        total = 0
        for m, c in poly.terms:
            if not all(self._nonnegative(a) for a in m):
                return None
            if c > 0:
                least = 1
                for a in m:
                    least *= self._least(a)
                total += c * least
            elif not m:
                total += c
            else:
                most = self._most(m)
                if most is None:
                    return None
                total += c * most
        return total

    def _nonnegative(self, atom: str) -> bool:
        quotient = self.quotients.get(atom)
        if quotient is not None:  # of dimensions: `-n // d` is one of something negative
            return not any(m and c < 0 for m, c in quotient.numerator.terms)
        return atom in self.positive or atom in self.ranges or atom.startswith("rem ")

    def _least(self, atom: str) -> int:
        if atom in self.positive:
            return 1
        q = self.quotients.get(atom)
        return 1 if q is not None and q.up else 0

    def _most(self, monomial: Monomial) -> int | None:
        most = 1
        for a in monomial:
            high = self.ranges[a][1].constant if a in self.ranges else None
            if high is None:
                return None
            most *= high
        return most
