"""What the checker knows of operators, on its own: extents and, atom by atom, values.

A tile's values are rows of numbers, a number for each atom. Equal numbers are equal atoms.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

from nkigym.checker.findings import NotAllowedError

Atoms = Sequence[Sequence[int]]
Number = Callable[[Hashable], int]

K_MOST, M_MOST, N_MOST = 128, 128, 512
"""Partitions, stationary and moving free size [NKI: nc_matmul, tile limits]."""


@dataclass(frozen=True, slots=True)
class Rule:
    """`extents` gives the result's, or raises NotAllowedError; `values` its atoms."""

    operands: tuple[str, ...]
    optional: tuple[str, ...]
    extents: Callable[[Mapping[str, tuple[int, int]]], tuple[int, int]]
    values: Callable[[Mapping[str, Atoms], Number], Atoms]


def matmul_extents(given: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    """(M, N) of a stationary (K, M), a moving (K, N) and maybe an accumulator (M, N)."""
    (k, m), (k_too, n) = given["stationary"], given["moving"]
    if k != k_too:
        raise NotAllowedError(f"contracts {k} rows with {k_too}")
    if k > K_MOST or m > M_MOST or n > N_MOST:
        raise NotAllowedError(f"K, M, N are {k}, {m}, {n}; at most {K_MOST}, {M_MOST}, {N_MOST}")
    if given.get("accumulator", (m, n)) != (m, n):
        raise NotAllowedError(f"adds a product {(m, n)} to {given['accumulator']}")
    return m, n


def matmul_values(given: Mapping[str, Atoms], number: Number) -> Atoms:
    """Atom by atom, the product of a column of the stationary with one of the moving operand.

    Adding is commutative to the bit, so what is added has no order; three things have: they are
    added one after the other.
    """
    stationary, moving, sums = given["stationary"], given["moving"], given.get("accumulator")
    columns = [tuple(row[m] for row in stationary) for m in range(len(stationary[0]))]
    others = [tuple(row[n] for row in moving) for n in range(len(moving[0]))]
    products = [[number(product(one, other)) for other in others] for one in columns]
    if sums is None:
        return products
    return [
        [number(total(a, b)) for a, b in zip(row, row_too, strict=True)]
        for row, row_too in zip(sums, products, strict=True)
    ]


def product(column: Sequence[int], other: Sequence[int]) -> Hashable:
    """Σ column · other, in one instruction, whose order of rows does not matter."""
    return "product", tuple(sorted(zip(column, other, strict=True)))


def total(one: int, other: int) -> Hashable:
    """One plus other."""
    return "sum", min(one, other), max(one, other)


RULES: Mapping[str, Rule] = {
    "nc_matmul": Rule(("stationary", "moving"), ("accumulator",), matmul_extents, matmul_values),
}
