"""Checks certificates of transform steps: every claim is tried in enumerated iterations.

A claim says of two accesses to one buffer that they never overlap while the iterations of the loops
around both are related as given: = (the same), > (the first's is later), < (earlier), * (any).
Here they are listed element by element, for the first, second and last iterations of every loop,
and for as many in between as are tried in a moment: all of short loops.
Shares no code with what makes the claims.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from nkigym.checker.findings import CertificateFileError, Finding

RELATED = {
    "=": lambda x, y: x == y,
    ">": lambda x, y: x > y,
    "<": lambda x, y: x < y,
    "*": lambda x, y: True,
}

PAIRS, ALONE = 1 << 12, 1 << 6
"""About how many pairs of iterations a claim is tried in, and how many of the loops that one access
alone is in.
"""

Values = dict[str, int]
Runs = tuple[np.ndarray, int]
"""First elements of runs without gaps, in rising order, and their common length."""


def check_step(certificate: Mapping[str, Any]) -> list[Finding]:
    """Every claim of a step's certificate that some iteration refutes; nothing if it holds.

    Raises CertificateFileError for data that is not a certificate.
    """
    try:
        claims = list(certificate["claims"])
        found = [(n, refuted(claim)) for n, claim in enumerate(claims)]
    except (KeyError, TypeError, ValueError, AttributeError) as wrong:
        raise CertificateFileError(f"not a certificate of a step: {wrong!r}") from wrong
    return [Finding(n, what) for n, what in found if what]


def refuted(claim: Mapping[str, Any]) -> str | None:
    """An iteration in which the two accesses overlap, or leave their buffer."""
    each = _each(PAIRS, 2 * len(claim["shared"]))
    relations = {name: RELATED[relation] for name, *_, relation in claim["shared"]}
    tried = (_tried(loop, each) for _, *loop, _ in claim["shared"])
    everywhere = [dict(zip(relations, at, strict=True)) for at in product(*tried)]
    first = [(at, _elements(claim["a"], at)) for at in everywhere]
    second = [(at, _elements(claim["b"], at)) for at in everywhere]
    size = int(np.prod(claim["shape"]))
    for at, (starts, length) in (*first, *second):
        if starts[0] < 0 or starts[-1] + length > size:
            return f"{claim['buffer']} is left at {at}"
    for (x, one), (y, other) in product(first, second):
        is_related = all(holds(x[name], y[name]) for name, holds in relations.items())
        if is_related and _overlap(one, other):
            return f"accesses to {claim['buffer']} overlap at {x} and {y}"
    return None


def _each(most: int, loops: int) -> int:
    """How many iterations of each loop are tried, that it be about `most` of all together."""
    return max(3, int(most ** (1 / max(1, loops))))


def _tried(loop: Sequence[int], each: int) -> list[int]:
    """The first two and the last values of a loop, and others evenly between, `each` in all."""
    values = range(*loop)
    if len(values) <= each:
        return list(values)
    between = (values[2 + (len(values) - 3) * n // (each - 3)] for n in range(each - 3))
    return sorted({*values[:2], *between, values[-1]})


def _elements(touch: Mapping[str, Any], at: Values) -> Runs:
    """All elements that an access names, over the loops that it alone is in."""
    constant, terms = touch["offset"]
    each = _each(ALONE, len(touch["loops"]))
    inner = [[(name, v) for v in _tried(loop, each)] for name, *loop in touch["loops"]]
    offsets = [constant + _sum(terms, {**at, **dict(values)}) for values in product(*inner)]
    *outer, (count, stride) = zip(touch["shape"], touch["strides"], strict=True)
    length = count if stride == 1 else 1
    if stride != 1:
        outer.append((count, stride))
    starts = np.asarray(offsets)
    for n, s in outer:
        starts = (starts[:, None] + np.arange(n) * s).ravel()
    return np.unique(starts), length


def _sum(terms: Mapping[str, int], at: Values) -> int:
    return sum(c * at[name] for name, c in terms.items())


def _overlap(one: Runs, other: Runs) -> bool:
    """Whether a run of one has an element in common with a run of the other."""
    (a, long), (b, wide) = one, other
    behind = np.searchsorted(b, a - wide, side="right")
    within = behind < len(b)
    return bool((b[behind[within]] < a[within] + long).any())
