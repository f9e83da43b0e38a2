"""Root programs of functions, tile by tile, loads and all.

Positions are taken in the order of the result's axes, contracted tiles inside them. Each position
of a result repeats the whole function with loads of its own; sums add tile after tile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product

from neuroncore.errors import KernelError
from neuroncore.targets import PARTITIONS
from nkigym.tiles.operators import (
    ACTIVATION,
    MATMUL,
    ONE,
    TENSOR_REDUCE,
    TENSOR_SCALAR,
    TENSOR_TENSOR,
    TRANSPOSE,
    Operator,
)
from nkigym.tiles.program import (
    ALLOCATE,
    LOAD,
    OUTPUT,
    STORE,
    Attribute,
    Reference,
    Shape,
    Statement,
    TileProgram,
    part_of,
    tile,
)

EPSILON = 2.0**-20
"""What rmsnorm adds to the mean of squares."""

TILE = PARTITIONS
"""Elements of a tile along every dimension: the partitions of SBUF."""

Position = tuple[int, int]


class TilingError(KernelError):
    """A function whose tensors cannot be cut into whole tiles."""


def matmul_root(
    rows: int, columns: int, contraction: int, *, dtype: str = "float32", names: str = "AB"
) -> TileProgram:
    """The root of `output = A.T @ B` for a stationary A (K, M) and a moving B (K, N), in tiles.

    >>> len(matmul_root(rows=2, columns=2, contraction=2).statements)
    29

    Raises TilingError for fewer than one tile along a dimension.
    """
    for axis, number in {"M": rows, "N": columns, "K": contraction}.items():
        if number < 1:
            raise TilingError(f"{number} tiles along {axis}", expected="at least one")
    left, right = names
    parameters = {left: (contraction, rows), right: (contraction, columns)}
    made = _Straight(parameters, {OUTPUT: (rows, columns)}, dtype)
    for m, n in product(range(rows), range(columns)):
        total: Reference | None = None
        for k in range(contraction):
            operands = {"stationary": made.load(left, (k, m)), "moving": made.load(right, (k, n))}
            total = made.accumulated(operands, total)
        assert total is not None
        made.store(total, OUTPUT, (m, n))
    return made.program()


def tensor_add_root(rows: int, columns: int) -> TileProgram:
    """The root of `output = A + B`, both (M, N), in tiles.

    >>> len(tensor_add_root(2, 2).statements)
    17
    """
    return _added(rows, columns, columns)


def repeated_add_root(rows: int, columns: int) -> TileProgram:
    """The root of `output = A + B`, A (M, N) and B (M, 128), which is added to every 128 columns.

    >>> len(repeated_add_root(1, 2).statements)
    9
    """
    return _added(rows, columns, 1)


def _added(rows: int, columns: int, width: int) -> TileProgram:
    """A + B, where B has `width` tiles of columns, which are repeated."""
    made = _Straight({"A": (rows, columns), "B": (rows, width)}, {OUTPUT: (rows, columns)})
    for row, column in product(range(rows), range(columns)):
        both = {
            "data1": made.load("A", (row, column)),
            "data2": made.load("B", (row, column % width)),
        }
        made.store(made.call(TENSOR_TENSOR, both, op="add"), OUTPUT, (row, column))
    return made.program()


def sum_and_product_root(rows: int, columns: int) -> TileProgram:
    """The root of `total, scaled = A + B, A * B`: two outputs, each with loads of its own.

    >>> sum_and_product_root(1, 1).returns
    ('total', 'scaled')
    """
    shape = (rows, columns)
    outputs = {"total": "add", "scaled": "multiply"}
    made = _Straight({"A": shape, "B": shape}, dict.fromkeys(outputs, shape))
    for at in product(range(rows), range(columns)):
        for output, op in outputs.items():
            both = {"data1": made.load("A", at), "data2": made.load("B", at)}
            made.store(made.call(TENSOR_TENSOR, both, op=op), output, at)
    return made.program()


def rmsnorm_matmul_root(rows: int, columns: int, contraction: int) -> TileProgram:
    """The root of `output = (A / sqrt(mean(A², axis=1) + EPSILON)) @ B` for A (M, K) and B (K, N).

    TensorE takes A with K on partitions, so every tile is transposed.

    >>> len(rmsnorm_matmul_root(1, 1, 1).statements)
    11
    """
    made = _Straight(
        {"A": (rows, contraction), "B": (contraction, columns)}, {OUTPUT: (rows, columns)}
    )
    for m, n in product(range(rows), range(columns)):
        scale = made.rows_scale("A", m, contraction)
        total: Reference | None = None
        for k in range(contraction):
            scaled = made.call(
                TENSOR_SCALAR, {"data": made.load("A", (m, k)), "operand0": scale}, op="multiply"
            )
            operands = {
                "stationary": made.call(TRANSPOSE, {"data": scaled}),
                "moving": made.load("B", (k, n)),
            }
            total = made.accumulated(operands, total)
        assert total is not None
        made.store(total, OUTPUT, (m, n))
    return made.program()


@dataclass(slots=True)
class _Straight:
    """Statements in the making; parameters and outputs by their tiles along both axes."""

    parameters: Mapping[str, Position]
    outputs: Mapping[str, Position]
    dtype: str = "float32"
    statements: list[Statement] = field(default_factory=list)
    made: int = 0

    def __post_init__(self) -> None:
        for name, tiles in {**self.parameters, **self.outputs}.items():
            if min(tiles) < 1:
                raise TilingError(f"{name} has {tiles} tiles", expected="at least one")
        for name in self.outputs:
            shape = self.shape(name)
            whole = part_of(name, shape, *((0, extent) for extent in shape))
            self.statements.append(Statement(ALLOCATE, (), whole))

    def shape(self, name: str) -> Shape:
        return tuple(TILE * n for n in (self.parameters.get(name) or self.outputs[name]))

    def part(self, name: str, at: Position) -> Reference:
        intervals = ((TILE * n, TILE * (n + 1)) for n in at)
        return part_of(name, self.shape(name), *intervals)

    def new(self, *extents: int) -> Reference:
        self.made += 1
        return tile(f"t{self.made - 1}", *extents)

    def load(self, source: str, at: Position) -> Reference:
        made = self.new(TILE, TILE)
        self.statements.append(Statement(LOAD, (("src", self.part(source, at)),), made))
        return made

    def call(
        self, operator: Operator, operands: Mapping[str, Reference], **attributes: Attribute
    ) -> Reference:
        extents = {ONE: 1}
        for name, given in operands.items():
            extents |= zip(operator.operands[name], given.extents, strict=True)
        made = self.new(*(extents[axis] for axis in operator.result))
        arguments = (*operands.items(), *attributes.items())
        self.statements.append(Statement(operator.name, arguments, made))
        return made

    def accumulated(self, operands: Mapping[str, Reference], total: Reference | None) -> Reference:
        """A product, added to the total so far."""
        return self.call(MATMUL, {**operands, **({"accumulator": total} if total else {})})

    def store(self, made: Reference, output: str, at: Position) -> None:
        where = self.part(output, at)
        self.statements.append(Statement(STORE, (("src", made), ("dst", where)), where))

    def rows_scale(self, source: str, row: int, tiles: int) -> Reference:
        """1 / sqrt(mean of squares + EPSILON) of each row."""
        total: Reference | None = None
        for k in range(tiles):
            square = self.call(ACTIVATION, {"data": self.load(source, (row, k))}, op="square")
            one = self.call(TENSOR_REDUCE, {"data": square}, op="add")
            total = one if total is None else (
                self.call(TENSOR_TENSOR, {"data1": total, "data2": one}, op="add")
            )  # fmt: skip
        assert total is not None
        scale = 1 / (TILE * tiles)
        return self.call(ACTIVATION, {"data": total}, op="rsqrt", scale=scale, bias=EPSILON)

    def program(self) -> TileProgram:
        parameters = tuple((name, self.shape(name)) for name in self.parameters)
        return TileProgram("f", parameters, tuple(self.statements), self.dtype, tuple(self.outputs))
