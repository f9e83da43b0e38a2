"""Checks certificates of transform steps: every claim, for all iterations.

A claim says of two accesses to one buffer that they never overlap while the iterations of the loops
around both are related as given: = (the same), > (the first's is later), < (earlier), * (any).
It is false where an equation of loop counters and indices has a solution within its bounds.
Shares no code with what makes the claims.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd, prod
from typing import Any, NamedTuple

from neuroncore.documents import wrong_structure
from nkigym.checker.findings import CertificateFileError, Finding


class Variable(NamedTuple):
    """`low <= value <= high`; with `other`, an earlier variable, value + other <= high as well."""

    factor: int
    low: int
    high: int
    other: int | None = None

    @property
    def ends(self) -> tuple[int, int]:
        """The least and greatest of factor times value."""
        a, b = self.factor * self.low, self.factor * self.high
        return (a, b) if a <= b else (b, a)


class _Counter(NamedTuple):
    """A variable of an equation; its share of the iterations of loop `name`, a's and b's."""

    variable: Variable
    name: str = ""
    in_a: bool = False
    in_b: bool = False


def check_step(certificate: Mapping[str, Any]) -> list[Finding]:
    """Every claim of a step's certificate that some iteration refutes; nothing if it holds.

    Raises CertificateFileError for data that is not a certificate.
    """
    if not isinstance(certificate.get("claims"), list):
        raise CertificateFileError("not a certificate of a step", expected="a list 'claims'")
    found = [(n, _refuted(n, claim)) for n, claim in enumerate(certificate["claims"])]
    return [Finding(n, what) for n, what in found if what]


def _refuted(number: int, claim: Any) -> str | None:
    try:
        return refuted(claim)
    except KeyError as missing:
        raise CertificateFileError(f"claim {number} of the certificate has no {missing}") from None
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as wrong:
        raise CertificateFileError(
            f"claim {number} of the certificate: {wrong_structure(wrong)}"
        ) from None


def refuted(claim: Mapping[str, Any]) -> str | None:
    """An iteration in which the two accesses overlap, or one leaves the buffer."""
    size = prod(claim["shape"])
    shared = [loop for _, *loop, _ in claim["shared"]]
    names = [name for name, *_ in claim["shared"]]
    if not all(len(range(*loop)) for loop in shared):
        return None
    around = dict(zip(names, shared, strict=True))
    executed = [each for each in (claim["a"], claim["b"]) if _is_executed(each)]
    for access in executed:
        low, high = _reach(access, around)
        if low < 0 or high >= size:
            return f"{claim['buffer']} is left: elements {low} to {high} of {size}"
    if len(executed) < 2:
        return None
    counters = [counter for each in _counters(claim) for counter in each]
    start = _start(claim["b"], around) - _start(claim["a"], around)
    try:
        found = solution([counter.variable for counter in counters], start)
    except UndecidedError:
        return f"not decided whether accesses to {claim['buffer']} overlap"
    if found is None:
        return None
    x, y = (_iteration(counters, found, around, first) for first in (True, False))
    return f"accesses to {claim['buffer']} overlap at {x} and {y}"


def _loops(access: Mapping[str, Any]) -> dict[str, list[int]]:
    return {name: loop for name, *loop in access["loops"]}


def _is_executed(access: Mapping[str, Any]) -> bool:
    """Whether each of its own loops has an iteration."""
    return all(len(range(*loop)) for loop in _loops(access).values())


def _start(access: Mapping[str, Any], around: Mapping[str, list[int]]) -> int:
    """The first element in the first iteration of all loops."""
    constant, terms = access["offset"]
    loops = {**around, **_loops(access)}
    return constant + sum(factor * loops[name][0] for name, factor in terms.items())


def _reach(access: Mapping[str, Any], around: Mapping[str, list[int]]) -> tuple[int, int]:
    """The least and greatest element in any iteration."""
    low = high = _start(access, around)
    for counter in (*_own(access, 1), *_own({**access, "loops": _listed(around)}, 1, False)):
        least, most = counter.variable.ends
        low, high = low + least, high + most
    return low, high


def _listed(loops: Mapping[str, list[int]]) -> list[list[Any]]:
    return [[name, *loop] for name, loop in loops.items()]


def _own(access: Mapping[str, Any], sign: int, indices: bool = True) -> Iterator[_Counter]:
    """The counters of the loops and indices that one access alone has."""
    _, terms = access["offset"]
    for name, loop in _loops(access).items():
        factor, last = sign * terms.get(name, 0) * loop[2], len(range(*loop)) - 1
        yield _Counter(Variable(factor, 0, last), name, sign > 0, sign < 0)
    if indices:
        for count, stride in zip(access["shape"], access["strides"], strict=True):
            yield _Counter(Variable(sign * stride, 0, count - 1))


def _counters(claim: Mapping[str, Any]) -> Iterator[Iterator[_Counter]]:
    """The counters of the equation a's element = b's element."""
    yield _own(claim["a"], 1)
    yield _own(claim["b"], -1)
    ours, theirs = claim["a"]["offset"][1], claim["b"]["offset"][1]
    at = sum(len(claim[k]["loops"]) + len(claim[k]["shape"]) for k in ("a", "b"))
    for name, *loop, relation in claim["shared"]:
        a, b = ours.get(name, 0) * loop[2], theirs.get(name, 0) * loop[2]
        counters = list(_related(name, a, b, len(range(*loop)) - 1, relation, at))
        at += len(counters)
        yield iter(counters)


def _related(name: str, a: int, b: int, last: int, relation: str, at: int) -> Iterator[_Counter]:
    """The counters of a loop around both accesses; `at` is the place of the first."""
    if relation == "*":
        yield _Counter(Variable(a, 0, last), name, in_a=True)
        yield _Counter(Variable(-b, 0, last), name, in_b=True)
        return
    if relation == "=":
        yield _Counter(Variable(a - b, 0, last), name, True, True)
        return
    is_later = {">": True, "<": False}[relation]
    distance = Variable(a if is_later else -b, 1, last)
    yield _Counter(distance, name, in_a=is_later, in_b=not is_later)
    yield _Counter(Variable(a - b, 0, last, other=at), name, True, True)


def _iteration(
    counters: list[_Counter], values: list[int], around: Mapping[str, list[int]], first: bool
) -> dict[str, int]:
    """The values of the loops around both, of a (first) or of b."""
    at = {name: start for name, (start, *_) in around.items()}
    for counter, value in zip(counters, values, strict=True):
        if counter.name in at and (counter.in_a if first else counter.in_b):
            at[counter.name] += value * around[counter.name][2]
    return at


# -- bounded equations -----------------------------------------------------------------------------
#
# Integer solutions of c₁·v₁ + … + cₙ·vₙ = t with bounds of every variable: decided, not sampled.
#
# Variables are tried from the greatest factor to the least. A value is tried only where the others
# can still reach what it leaves, by their bounds and by the common divisor of their factors,
# so that factors that nest (rows of tiles of columns) leave one or two values each.

TRIALS = 1 << 17
"""Values after which an equation counts as not decided."""


class UndecidedError(Exception):
    """Too many values were tried."""


def solution(variables: Sequence[Variable], total: int) -> list[int] | None:
    """Values in the order of the variables, None where there are none.

    Raises UndecidedError.

    >>> solution([Variable(512, 0, 3), Variable(-1, 0, 511)], 1)
    [1, 511]
    >>> solution([Variable(512, 0, 3), Variable(-1, 0, 511)], 1537) is None
    True
    """
    order = sorted(range(len(variables)), key=lambda n: (-_magnitude(variables, n), n))
    tried = _Trial([variables[n] for n in order], [order.index(n) for n in range(len(order))])
    return [tried.values[at] for at in tried.places] if tried.reaches(0, total) else None


def _magnitude(variables: Sequence[Variable], number: int) -> int:
    """The factor that decides when a variable is tried: not before the one that bounds it."""
    other = variables[number].other
    own = abs(variables[number].factor)
    return own if other is None else min(own, abs(variables[other].factor))


@dataclass(slots=True)
class _Trial:
    variables: list[Variable]
    places: list[int]
    """Where each variable of the equation is in the order of trial."""
    values: list[int] = field(default_factory=list)
    trials: int = 0
    failed: set[tuple[int, ...]] = field(default_factory=set)
    rest: list[tuple[int, int, int]] = field(default_factory=list)
    """What the variables from each place on can reach: least, greatest, common divisor."""

    def __post_init__(self) -> None:
        self.values = [0] * len(self.variables)
        self.rest = [(0, 0, 0)]
        for variable in reversed(self.variables):
            (low, high), (least, most, divisor) = variable.ends, self.rest[-1]
            self.rest.append((least + low, most + high, gcd(divisor, variable.factor)))
        self.rest.reverse()

    def reaches(self, at: int, total: int) -> bool:
        """Whether the variables from `at` on sum to `total`; `values` are the ones."""
        if at == len(self.variables):
            return total == 0
        known = (at, total, *self._coupled(at))
        if known in self.failed:
            return False
        variable, (least, most, divisor) = self.variables[at], self.rest[at + 1]
        for value in self._feasible(variable, total - most, total - least):
            self.trials += 1
            if self.trials > TRIALS:
                raise UndecidedError
            remaining = total - variable.factor * value
            if remaining % divisor if divisor else remaining:
                continue
            self.values[at] = value
            if self.reaches(at + 1, remaining):
                return True
        self.failed.add(known)
        return False

    def _coupled(self, at: int) -> tuple[int, ...]:
        """Values on which the bounds of variables from `at` on depend."""
        others = (self.places[v.other] for v in self.variables[at:] if v.other is not None)
        return tuple(self.values[place] for place in others if place < at)

    def _feasible(self, variable: Variable, least: int, most: int) -> range:
        """Values whose multiple is from `least` to `most`."""
        high = variable.high
        if variable.other is not None:
            high -= self.values[self.places[variable.other]]
        if variable.factor == 0:
            return range(variable.low, min(high, variable.low) + 1)
        if variable.factor < 0:
            least, most = -most, -least
        size = abs(variable.factor)
        return range(max(variable.low, -(-least // size)), min(high, most // size) + 1)
