"""Rows all the way: products, row reductions and functions of some rows at once, all on chip.

A strip is a sequence of stages, each a product of matrices or a group of element-wise operations
and row reductions, that all work on the same rows M (and batch axes) and hand their values to the
next. What a product multiplies from the right is on chip as a whole; the left side, T rows in each
of 128 partitions, is transposed there.

Engines run their instructions in order, so the stages of several tiles are interleaved: TensorE
multiplies for one while the others work on the results of the one before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from neuroncore.program import Affine
from nkigen_lite.codegen.emission.axis_tiling import row_parts
from nkigen_lite.codegen.emission.writer import Writer
from nkigen_lite.codegen.loop_nests.tiles import Tile, Tiles
from nkigen_lite.codegen.matmul.operand_tiles import OnChip, load, load_pair, matrix_of
from nkigen_lite.codegen.strips.stages import Strip, StripTile
from nkigen_lite.fusion.array_view import ArrayView
from nkigen_lite.ir import Node
from nkigen_lite.selection.machine_limits import PARTITIONS

Batch = tuple[Affine, ...]


@dataclass(slots=True)
class Strips:
    """Writes a strip.

    `sources` are the values in HBM that it reads or writes, `tiles` the emitters of its groups,
    `rows` the T rows of each partition, `interleaved` how many tiles are interleaved.
    """

    writer: Writer
    strip: Strip
    sources: Mapping[str, ArrayView]
    tiles: Mapping[int, Tiles]
    rows: int
    interleaved: int
    shared: dict[str, OnChip] = field(default_factory=dict)
    """Right matrices that are the same for all batches."""

    def write(self) -> None:
        *batches, num_rows = self.strip.lead
        self.shared = self.rights((), varying=False)
        strips = list(row_parts(num_rows, self.rows))
        if sum(part.tiles for part, _, _ in strips) == 1:
            _, partitions, each = strips[0]
            for places in self.batches(tuple(batches), self.interleaved):
                tiles = [Tile(Affine(), partitions, each, Affine(), 0, b) for b in places]
                self.together(self.neighbours(tiles) if len(tiles) == 2 else [
                    self.tile(t, self.rights(t.batch, varying=True)) for t in tiles
                ])  # fmt: skip
            return
        for (batch,) in self.batches(tuple(batches), 1):
            rights = self.rights(batch, varying=True)
            for part, partitions, each in strips:
                for place, count in self.writer.tiles("strip", part.tiles, self.interleaved):
                    first = place * part.size + part.start
                    rows = [first + i * part.size for i in range(count)]
                    tiles = [Tile(r, partitions, each, Affine(), 0, batch) for r in rows]
                    self.together([self.tile(tile, rights) for tile in tiles])

    def batches(self, sizes: tuple[int, ...], interleaved: int) -> Iterator[list[Batch]]:
        """Places in the batch axes, up to `interleaved` of the longest at once, in their loops."""
        longest = _longest(sizes)
        with ExitStack() as stack:
            variables = [
                Affine() if d == longest else stack.enter_context(self.writer.loop("batch", n))
                for d, n in enumerate(sizes)
            ]
            size = sizes[longest] if sizes else 1
            for start, count in self.writer.tiles("batch", size, interleaved):
                yield [
                    tuple(start + i if d == longest else v for d, v in enumerate(variables))
                    for i in range(count)
                ]

    def rights(self, batch: Batch, varying: bool) -> dict[str, OnChip]:
        """What products multiply from the right, on chip: all that are the same for all batches,
        or all that are not."""
        found: dict[str, OnChip] = {}
        for product in self.strip.products:
            name = product.operands[1]
            source = self.sources[name]
            if name not in found and any(n != 1 for n in source.shape[:-2]) is varying:
                matrix = matrix_of(source, batch if varying else (), transposed=False)
                found[name] = load(self.writer, matrix, "right")
        return found

    def tile(self, at: Tile, rights: dict[str, OnChip]) -> StripTile:
        return StripTile(
            self.writer, self.strip, self.sources, self.tiles, at, self.shared | rights
        )  # fmt: skip

    def neighbours(self, places: list[Tile]) -> list[StripTile]:
        """The tiles of two neighbours in the longest batch axis, with what they read in common
        loads."""
        first, second = (self.tile(at, {}) for at in places)
        rows = first.at.rows * first.at.partitions
        for product in self.strip.products:
            left, right = product.operands
            known = first.transposed.keys() | self.strip.shared | self.strip.made
            if left not in known:
                matrix = matrix_of(self.sources[left], first.at.batch, transposed=True)
                pair = load_pair(
                    self.writer, matrix.columns(first.at.row, rows), self.step(left),
                    "transposed_rows", first.at.rows, lambda partitions, each: (1, partitions),
                )  # fmt: skip
                if pair is not None:
                    first.transposed[left], second.transposed[left] = pair
            if right not in first.rights:
                pair = self.right_pair(right, first.at.batch, second.at.batch)
                first.rights, second.rights = (
                    {**tile.rights, right: one}
                    for tile, one in zip((first, second), pair, strict=True)
                )  # fmt: skip
        return [first, second]

    def right_pair(self, name: str, first: Batch, second: Batch) -> tuple[OnChip, OnChip]:
        one, other = (matrix_of(self.sources[name], b, transposed=False) for b in (first, second))
        step = self.step(name)
        both = load_pair(self.writer, one, step, "right", PARTITIONS, lambda _, each: (each, 1))
        return both or (load(self.writer, one, "right"), load(self.writer, other, "right"))

    def step(self, value: str) -> int:
        """From one place of the longest batch axis to the next, in elements."""
        source, sizes = self.sources[value], self.strip.lead[:-1]
        axis = _longest(sizes) - (len(sizes) - (len(source.shape) - 2))
        return source.strides[axis] if axis >= 0 and source.shape[axis] != 1 else 0

    def together(self, tiles: list[StripTile]) -> None:
        """Interleaved tiles: each up to its next product."""
        for turn in _until_product(self.strip):
            for tile in tiles:
                for number in turn:
                    tile.stage(number)


def _longest(sizes: tuple[int, ...]) -> int:
    return max(range(len(sizes)), key=sizes.__getitem__, default=0)


def _until_product(strip: Strip) -> Iterator[list[int]]:
    """Stages up to a product, and so on."""
    turn: list[int] = []
    for number, stage in enumerate(strip.stages):
        turn.append(number)
        if isinstance(stage, Node):
            yield turn
            turn = []
    if turn:
        yield turn
