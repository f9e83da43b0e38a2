"""`np.einsum`: transposes, products of matrices pair by pair, sums."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from math import prod
from string import ascii_letters
from typing import Any

import numpy as np

from nkigen_lite.frontend.arrays.array import Array
from nkigen_lite.frontend.arrays.promotion import common_dtype, tape_of, traced
from nkigen_lite.frontend.arrays.registry import implements
from nkigen_lite.frontend.functions.diagonals import diagonal
from nkigen_lite.tensors.errors import (
    BroadcastError,
    UnsupportedFunctionError,
    UnsupportedKeywordError,
    ValueRangeError,
)


@implements("einsum")
def _einsum(*operands: Any, out: Any = None) -> Any:
    """`np.einsum` of a text such as "bij,bjk->bik"; more than two operands pair by pair."""
    if len(operands) < 2:
        raise ValueRangeError(
            "must specify the einstein sum subscripts string and at least one operand"
        )
    if out is not None:
        raise UnsupportedKeywordError(
            "np.einsum: out= is not translated", operand="out", hint="out[...] = np.einsum(…)"
        )
    if not isinstance(operands[0], str):
        raise UnsupportedFunctionError(
            "np.einsum with lists of axes is not translated", hint="write them as 'ij,jk->ik'"
        )
    text, *given = operands
    arrays: list[Array] = list(map(partial(traced, tape_of(*given)), given))
    names, wanted = _labels(text, [a.ndim for a in arrays])
    if len(arrays) == 1 and {*names[0]} == {*wanted}:
        return _Term(arrays[0], names[0]).once().in_order(wanted)
    dtype = common_dtype("np.einsum", arrays)
    terms = [_Term(a.astype(dtype), n).once() for a, n in zip(arrays, names, strict=True)]
    while len(terms) > 1:
        first, second, *rest = terms
        needed = set(wanted).union(*(t.names for t in rest))
        terms = [first.times(second, needed), *rest]
    return terms[0].summed({*wanted}).in_order(wanted)


def _labels(text: str, ranks: list[int]) -> tuple[list[str], str]:
    """The axes of each operand and of the result, one letter each."""
    inputs, arrow, wanted = text.replace(" ", "").partition("->")
    full, dots = _operand_labels(text, inputs.split(","), ranks)
    every = "".join(full)
    if not arrow:
        once = sorted({c for c in every if every.count(c) == 1} - set(dots))
        return full, dots + "".join(once)
    if dots and "..." not in wanted:
        raise ValueRangeError(
            "np.einsum: output has more dimensions than subscripts given in einstein sum, but no "
            "'...' ellipsis provided", got=repr(text),
        )  # fmt: skip
    wanted = wanted.replace("...", dots)
    if len(set(wanted)) < len(wanted) or not set(wanted) <= set(every):
        raise ValueRangeError(f"np.einsum: no such result as {wanted!r}", got=repr(text))
    return full, wanted


def _operand_labels(text: str, names: list[str], ranks: list[int]) -> tuple[list[str], str]:
    """The axes of each operand, and the letters of an ellipsis."""
    if len(names) != len(ranks):
        raise ValueRangeError(
            "np.einsum: another number of operands than in the text",
            expected=str(len(names)), got=str(len(ranks)),
        )  # fmt: skip
    rest = [r - len(n.replace("...", "")) for n, r in zip(names, ranks, strict=True)]
    most = max((r for n, r in zip(names, rest, strict=True) if "..." in n), default=0)
    dots = _without(ascii_letters, text)[:most]
    full = [
        n.replace("...", dots[most - r :] if r > 0 else "")
        for n, r in zip(names, rest, strict=True)
    ]
    for n, r in zip(full, ranks, strict=True):
        if len(n) != r or not set(n) <= set(ascii_letters):
            raise ValueRangeError(f"np.einsum: {n!r} does not name {r} axes", got=repr(text))
    return full, dots


def _without(names: str, gone: Collection[str]) -> str:
    return "".join(n for n in names if n not in gone)


class _Term:
    """An array with a letter for each axis."""

    def __init__(self, array: Array, names: str) -> None:
        self.array, self.names = array, names

    def length(self, name: str) -> int:
        return self.array.shape[self.names.index(name)] if name in self.names else 1

    def once(self) -> _Term:
        """Every letter once: a letter that stands twice is a diagonal."""
        term = self
        for name in self.names:
            while term.names.count(name) > 1:
                one = term.names.index(name)
                other = term.names.index(name, one + 1)
                if term.array.shape[one] != term.array.shape[other]:
                    raise BroadcastError(f"np.einsum: two lengths of axis {name!r}")
                left = "".join(n for d, n in enumerate(term.names) if d not in (one, other))
                term = _Term(diagonal(term.array, 0, one, other), left + name)
        return term

    def summed(self, needed: set[str]) -> _Term:
        """Without the axes that nothing needs."""
        gone = tuple(d for d, n in enumerate(self.names) if n not in needed)
        if not gone:
            return self
        array = self.array
        made = np.any(array, gone) if array.dtype == bool else (
            np.sum(array, axis=gone, dtype=array.spec.dtype.storage)
        )  # fmt: skip
        left = "".join(n for d, n in enumerate(self.names) if d not in gone)
        return _Term(made, left)

    def in_order(self, names: str) -> Any:
        """The axes in another order."""
        return np.transpose(self.array, [self.names.index(n) for n in names])

    def lying(self, names: str) -> Array:
        """The axes in this order, missing ones of one element."""
        mine = "".join(n for n in names if n in self.names)
        return np.reshape(self.in_order(mine), tuple(self.length(n) for n in names))

    def times(self, other: _Term, needed: set[str]) -> _Term:
        """The product, summed over what both have and nothing else needs."""
        one = self.summed({*needed, *other.names})
        two = other.summed({*needed, *self.names})
        shared = "".join(n for n in one.names if n in two.names)
        for n in shared:
            if len({one.length(n), two.length(n)} - {1}) > 1:
                raise BroadcastError(f"np.einsum: two lengths of axis {n!r}")
        gone = "".join(n for n in shared if n not in needed and one.length(n) == two.length(n))
        batch = _without(shared, gone)
        left, right = _without(one.names, shared), _without(two.names, shared)
        names = batch + left + right
        if not gone:
            made = one.lying(names) * two.lying(names)
            return _Term(made, names).summed(needed)
        a, b = one.lying(batch + left + gone), two.lying(batch + gone + right)
        sizes = [prod(t.length(n) for n in g) for t, g in ((one, left), (one, gone), (two, right))]
        lead = len(batch)
        matrices = (
            np.reshape(a, (*a.shape[:lead], sizes[0], sizes[1])),
            np.reshape(b, (*b.shape[:lead], sizes[1], sizes[2])),
        )
        made = np.matmul(*matrices)
        shape = (*made.shape[:lead], *map(one.length, left), *map(two.length, right))
        return _Term(np.reshape(made, shape), names).summed(needed)
