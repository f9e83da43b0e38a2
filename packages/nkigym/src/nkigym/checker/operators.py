"""The checker's own semantics of operators: extents and, atom by atom, values.

A tile's values are rows of numbers, a number for each atom. Equal numbers are equal atoms.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from neuroncore.targets import BANK_ELEMS, PARTITIONS
from nkigym.checker.findings import NotAllowedError

Atoms = Sequence[Sequence[int]]
Number = Callable[[Hashable], int]

K_MOST, M_MOST, N_MOST = PARTITIONS, PARTITIONS, BANK_ELEMS
"""Partitions, stationary and moving free size [NKI: nc_matmul, tile limits]."""


COMMUTE = frozenset({
    "add", "multiply", "equal", "not_equal",
    "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor",
})  # fmt: skip
"""Operations of which the two operands may be exchanged, to the bit: not maximum and minimum, which
of -0 and +0 give either.
"""
ORDERED = frozenset({"equal", "not_equal", "multiply"})
"""Commutative operations whose terms have an order, as products round."""

Attributes = Mapping[str, Hashable]
Extents = tuple[int, int]


@dataclass(frozen=True, slots=True)
class OperatorSemantics:
    """`extents` gives the result's, or raises NotAllowedError; `values` its atoms; `attributes` are
    the optional attributes with their defaults."""

    operands: tuple[str, ...]
    optional: tuple[str, ...]
    extents: Callable[[Mapping[str, Extents]], Extents]
    values: Callable[[Mapping[str, Atoms], Number, Attributes], Atoms]
    attributes: Attributes = field(default_factory=dict)


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


def matmul_values(given: Mapping[str, Atoms], number: Number, _: Attributes) -> Atoms:
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


# -- tiles of rows ---------------------------------------------------------------------------------


def transpose_extents(given: Mapping[str, Extents]) -> Extents:
    """(F, P) of (P, F), both at most 128 [NKI: nc_transpose on TensorE]."""
    rows, columns = given["data"]
    if rows > K_MOST or columns > M_MOST:
        raise NotAllowedError(f"transposes {(rows, columns)}; at most {(K_MOST, M_MOST)}")
    return columns, rows


def transpose_values(given: Mapping[str, Atoms], number: Number, _: Attributes) -> Atoms:
    """The columns as rows, each atom transposed."""
    return [
        [number(transposed(atom)) for atom in column] for column in zip(*given["data"], strict=True)
    ]


def rows_extents(given: Mapping[str, Extents]) -> Extents:
    """(P, F) of operands that are all (P, F), or (P, 1) as `operand0`; P at most 128."""
    shapes = {shape for name, shape in given.items() if name != "operand0"}
    (rows, columns), *others = shapes
    column = given.get("operand0", (rows, 1))
    if others or column != (rows, 1):
        raise NotAllowedError(f"works on {', '.join(map(str, given.values()))} together")
    if rows > K_MOST:
        raise NotAllowedError(f"{rows} partitions; at most {K_MOST}")
    return rows, columns


def reduce_extents(given: Mapping[str, Extents]) -> Extents:
    """(P, 1) of (P, F)."""
    return rows_extents(given)[0], 1


def activation_values(given: Mapping[str, Atoms], number: Number, given_as: Attributes) -> Atoms:
    """op(data · scale + bias), each atom by itself."""
    return [[number(function(atom, **given_as)) for atom in row] for row in given["data"]]


def scalar_values(given: Mapping[str, Atoms], number: Number, given_as: Attributes) -> Atoms:
    """Each atom with the column of its rows."""
    both = zip(given["data"], given["operand0"], strict=True)
    return [[number(scaled(atom, one, **given_as)) for atom in row] for row, (one,) in both]


def tensor_values(given: Mapping[str, Atoms], number: Number, given_as: Attributes) -> Atoms:
    """Atom with atom."""
    both = zip(given["data1"], given["data2"], strict=True)
    return [
        [number(combined(a, b, **given_as)) for a, b in zip(row, row_too, strict=True)]
        for row, row_too in both
    ]


def reduce_values(given: Mapping[str, Atoms], number: Number, given_as: Attributes) -> Atoms:
    """All atoms of a row as one column."""
    return [[number(reduced(row, **given_as))] for row in given["data"]]


def transposed(atom: int) -> Hashable:
    """An atom with rows and columns exchanged."""
    return "transposed", atom


def function(atom: int, op: Hashable, scale: Hashable = 1.0, bias: Hashable = 0.0) -> Hashable:
    """op(atom · scale + bias)."""
    return "function", op, scale, bias, atom


def scaled(atom: int, column: int, op: Hashable) -> Hashable:
    """atom op column, which is repeated along the rows."""
    return "scaled", op, atom, column


def combined(one: int, other: int, op: Hashable) -> Hashable:
    """one op other; what commutes to the bit has no order."""
    return "combined", op, *(sorted((one, other)) if op in COMMUTE else (one, other))


def reduced(row: Sequence[int], op: Hashable) -> Hashable:
    """All elements of rows, in one instruction, in any order where the operation is associative and
    commutative."""
    return "reduced", op, tuple(sorted(row) if op in COMMUTE - ORDERED else row)


def across(atom: int) -> Hashable:
    """A column repeated in all columns of an atom."""
    return "across", atom


SEMANTICS: Mapping[str, OperatorSemantics] = {
    "nc_matmul": OperatorSemantics(
        ("stationary", "moving"), ("accumulator",), matmul_extents, matmul_values
    ),
    "nc_transpose": OperatorSemantics(("data",), (), transpose_extents, transpose_values),
    "activation": OperatorSemantics(
        ("data",), (), rows_extents, activation_values, {"op": "copy", "scale": 1.0, "bias": 0.0}
    ),
    "tensor_scalar": OperatorSemantics(
        ("data", "operand0"), (), rows_extents, scalar_values, {"op": "multiply"}
    ),
    "tensor_tensor": OperatorSemantics(
        ("data1", "data2"), (), rows_extents, tensor_values, {"op": "add"}
    ),
    "tensor_reduce": OperatorSemantics(("data",), (), reduce_extents, reduce_values, {"op": "add"}),
}
