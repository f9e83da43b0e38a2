"""From a function of whole tensors to its root program: one call for each tile, loads and all.

Positions are taken parallel dimensions first, in the order of the result's axes, reductions inside
them. Each position loads its own tiles; from the second position of a reduction on, the call adds
to what the one before left. After the last one the tile is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, product

from neuroncore.errors import KernelError
from nkigym.tiles.operators import MATMUL, Operator
from nkigym.tiles.program import (
    ALLOCATE,
    LOAD,
    OUTPUT,
    STORE,
    Reference,
    Statement,
    TileProgram,
    part_of,
    tile,
)

TILE = 128
"""Elements of a tile along every dimension: the partitions of SBUF."""


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
    tiles = {"M": rows, "N": columns, "K": contraction}
    for axis, number in tiles.items():
        if number < 1:
            raise TilingError(f"{number} tiles along {axis}", expected="at least one")
    shapes = {
        name: tuple(TILE * tiles[axis] for axis in axes)
        for name, axes in zip(names, _inputs(MATMUL).values(), strict=True)
    }
    statements = _statements(MATMUL, shapes, tiles)
    return TileProgram("f", tuple(shapes.items()), tuple(statements), dtype)


def _inputs(operator: Operator) -> dict[str, Sequence[str]]:
    return {n: axes for n, axes in operator.operands.items() if n != operator.accumulates}


def _statements(
    operator: Operator, shapes: Mapping[str, tuple[int, ...]], tiles: Mapping[str, int]
) -> Iterator[Statement]:
    """The output's allocation; then loads, calls and stores of every position, in order."""
    shape = tuple(TILE * tiles[axis] for axis in operator.result)
    yield Statement(ALLOCATE, (), part_of(OUTPUT, shape, *((0, extent) for extent in shape)))
    inputs = _inputs(operator)
    reduced = [axis for axes in inputs.values() for axis in axes if axis not in operator.result]
    reduced = list(dict.fromkeys(reduced))
    numbers = count()
    for outer in product(*(range(tiles[axis]) for axis in operator.result)):
        at = dict(zip(operator.result, outer, strict=True))
        sum_so_far: Reference | None = None
        for inner in product(*(range(tiles[axis]) for axis in reduced)):
            at.update(zip(reduced, inner, strict=True))
            given = []
            for (operand, axes), (source, whole) in zip(
                inputs.items(), shapes.items(), strict=True
            ):
                loaded = tile(f"t{next(numbers)}", *(TILE for _ in axes))
                where = part_of(source, whole, *(_interval(at[axis]) for axis in axes))
                yield Statement(LOAD, (("src", where),), loaded)
                given.append((operand, loaded))
            if sum_so_far is not None and operator.accumulates is not None:
                given.append((operator.accumulates, sum_so_far))
            sum_so_far = tile(f"t{next(numbers)}", *(TILE for _ in operator.result))
            yield Statement(operator.name, tuple(given), sum_so_far)
        assert sum_so_far is not None
        written = part_of(OUTPUT, shape, *(_interval(at[axis]) for axis in operator.result))
        yield Statement(STORE, (("src", sum_so_far), ("dst", written)), written)


def _interval(position: int) -> tuple[int, int]:
    return TILE * position, TILE * (position + 1)
