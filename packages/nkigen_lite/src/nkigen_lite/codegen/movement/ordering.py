"""Rows in order: bitonic sorting networks on VectorE, and the eight largest at a time.

Rows are on partitions. A stage of a network takes the smaller and the larger of all pairs at once:
an access pattern names the lower and the upper half of every block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan

from neuroncore.enums import MemorySpace
from neuroncore.program import Access, Affine, Buffer, whole
from neuroncore.targets import PARTITIONS, resolve_target
from nki_dtypes import DType, float32, int32, uint8, uint32
from nkigen_lite.codegen.emission.writer import Writer, columns_of
from nkigen_lite.codegen.movement.indirect import Rows, dense_rows, into_rows
from nkigen_lite.fusion.array_view import ArrayView
from nkigen_lite.ir import Node
from nkigen_lite.selection.unsupported import unsupported

EIGHT = 8
"""Elements that max8 finds [NKI: max8]."""
MOST_SORTED = 8192
"""Elements of a row that is sorted on chip: two copies of it fit twice."""


def _tile(writer: Writer, rows: int, columns: int, dtype: DType = float32) -> Buffer:
    return writer.allocate("row", (rows, columns), dtype, MemorySpace.sbuf)


# ------------------------------------------------------------------------------------- sorting


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of elements `distance` apart in every other of blocks of `size` elements, or in all
    blocks (`step` = `size`), from element `first` on."""

    first: int
    step: int
    size: int
    distance: int
    is_ascending: bool

    def half(self, tile: Buffer, upper: int) -> Access:
        """The lower or the upper elements of all pairs."""
        blocks = (tile.row - self.first + self.step - 1) // self.step
        shape = (tile.shape[0], blocks, self.size // (2 * self.distance), self.distance)
        strides = (tile.row, self.step, 2 * self.distance, 1)
        return Access(tile.name, Affine(self.first + upper * self.distance), shape, strides)


def stages(width: int) -> Iterator[tuple[Pairs, ...]]:
    """The stages of a network that sorts `width` elements, a power of two: blocks of 2, 4, … in
    turns ascending and descending."""
    size = 2
    while size <= width:
        distance = size // 2
        while distance:
            if size == width:
                yield (Pairs(0, size, size, distance, True),)
            else:
                yield (Pairs(0, 2 * size, size, distance, True),
                       Pairs(size, 2 * size, size, distance, False))  # fmt: skip
            distance //= 2
        size *= 2


def write_sort(
    writer: Writer, node: Node, places: Mapping[str, ArrayView], sources: Sequence[ArrayView]
) -> None:  # fmt: skip
    """Rows in ascending order, NaN behind all numbers."""
    rank = len(node.spec.shape) - 1
    data = dense_rows(writer, sources[0], rank)
    if data.width > MOST_SORTED:
        raise unsupported(node, f"a row of {data.width} elements is longer than {MOST_SORTED}")
    into_rows(writer, places["sort"], rank, lambda to: _sort_rows(writer, data, to))


def _sort_rows(writer: Writer, data: Rows, to: Rows) -> None:
    width = 1 << (data.width - 1).bit_length()
    for row, count in writer.tiles("tile", data.count, PARTITIONS):
        one, other = (_tile(writer, count, width) for _ in range(2))
        if width > data.width:
            behind = columns_of(one, data.width, width - data.width)
            writer.call("memset", dst=behind, value=inf)
        mine = columns_of(one, 0, data.width)
        writer.call("dma_copy", dst=mine, src=data.at(row, count, 0, data.width))
        numbers = _without_nan(writer, mine, count)
        for pairs in stages(width):
            for p in pairs:
                _exchange(writer, p, one, other)
            one, other = other, one
        _put_nan_last(writer, columns_of(one, 0, data.width), numbers)
        dst = to.at(row, count, 0, data.width)
        writer.call("dma_copy", dst=dst, src=columns_of(one, 0, data.width))


def _exchange(writer: Writer, pairs: Pairs, one: Buffer, other: Buffer) -> None:
    halves = {"data1": pairs.half(one, 0), "data2": pairs.half(one, 1)}
    for upper, op in enumerate(("minimum", "maximum")):
        target = pairs.half(other, upper if pairs.is_ascending else 1 - upper)
        writer.call("tensor_tensor", dst=target, **halves, op=op)


def _constant(writer: Writer, shape: tuple[int, ...], number: float) -> Access:
    tile = _tile(writer, shape[0], shape[1])
    writer.call("memset", dst=whole(tile), value=number)
    return whole(tile)


def _without_nan(writer: Writer, row: Access, count: int) -> Access:
    """NaN replaced by infinity; how many elements of each row are numbers."""
    width = row.shape[1]
    is_number = _tile(writer, count, width)
    writer.call("tensor_tensor", dst=whole(is_number), data1=row, data2=row, op="equal")
    numbers = _tile(writer, count, 1)
    writer.call("tensor_reduce", dst=whole(numbers), data=whole(is_number), op="add", axis=1)
    is_nan = _tile(writer, count, width, uint8)
    writer.call(
        "tensor_scalar", dst=whole(is_nan), data=whole(is_number), op0="equal", operand0=0.0
    )
    replaced = _constant(writer, row.shape, inf)
    writer.call("tensor_copy_predicated", dst=row, src=replaced, predicate=whole(is_nan))
    return whole(numbers)


def _put_nan_last(writer: Writer, row: Access, numbers: Access) -> None:
    """NaN from the place on that is the number of numbers."""
    count, width = row.shape
    place = _tile(writer, count, width)
    writer.call("iota", dst=whole(place), pattern=[[1, width]], offset=0)
    is_nan = _tile(writer, count, width, uint8)
    writer.call(
        "tensor_scalar", dst=whole(is_nan), data=whole(place), op0="greater_equal",
        operand0=numbers,
    )  # fmt: skip
    behind = _constant(writer, row.shape, nan)
    writer.call("tensor_copy_predicated", dst=row, src=behind, predicate=whole(is_nan))


# -------------------------------------------------------------------------------- the k largest


def write_topk(
    writer: Writer, node: Node, places: Mapping[str, ArrayView], sources: Sequence[ArrayView]
) -> None:  # fmt: skip
    """Values and places together: max8 finds values, nc_find_index8 their places, of equal ones the
    first; then they are replaced by -inf."""
    rank = len(node.spec.shape) - 1
    data = dense_rows(writer, sources[0], rank)
    if data.width > resolve_target(writer.target).search_free_max:
        raise unsupported(node, f"a row of {data.width} elements is longer than max8 takes")
    targets = list(places.items())

    def write(found: dict[str, Rows]) -> None:
        if len(found) == len(targets):
            _largest(writer, data, node.attrs["k"], found)
            return
        op, view = targets[len(found)]
        into_rows(writer, view, rank, lambda rows: write({**found, op: rows}))

    write({})


def _largest(writer: Writer, data: Rows, k: int, to: Mapping[str, Rows]) -> None:
    width, rounds = max(data.width, EIGHT), -(-k // EIGHT)
    for row, count in writer.tiles("tile", data.count, PARTITIONS):
        tile = _tile(writer, count, width)
        if width > data.width:
            writer.call("memset", dst=whole(tile), value=-inf)
        src = data.at(row, count, 0, data.width)
        writer.call("dma_copy", dst=columns_of(tile, 0, data.width), src=src)
        values = _tile(writer, count, rounds * EIGHT)
        found = _tile(writer, count, rounds * EIGHT, uint32)
        with writer.loop("round", rounds) as number:
            vals = columns_of(values, number * EIGHT, EIGHT)
            writer.call("max8", dst=vals, src=whole(tile))
            at = columns_of(found, number * EIGHT, EIGHT)
            writer.call("nc_find_index8", dst=at, data=whole(tile), vals=vals)
            if rounds > 1:
                replaced = {"data": whole(tile), "vals": vals, "imm": -inf}
                writer.call("nc_match_replace8", dst=whole(tile), **replaced)
        for op, rows in to.items():
            made = columns_of(found if op == "topk_places" else values, 0, k)
            target = rows.at(row, count, 0, k)
            writer.call("dma_copy", dst=target, src=_as_int32(made, op))


def _as_int32(access: Access, op: str) -> Access:
    """Places are as good as int32."""
    if op != "topk_places":
        return access
    return Access(access.buffer, access.offset, access.shape, access.strides, int32)
