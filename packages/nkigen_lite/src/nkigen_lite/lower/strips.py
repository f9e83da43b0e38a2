"""Rows all the way: products, row reductions and functions of some rows at once, all on chip.

A strip is a sequence of stages, each a product of matrices or a group of element-wise operations
and row reductions, that all work on the same rows M (and batch axes) and hand their values to the
next. What a product multiplies from the right is on chip as a whole; the left side, T rows in each
of 128 partitions, is transposed there.

Engines run their instructions in order, so the stages of several tiles take turns: TensorE
multiplies for one while the others work on the results of the one before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from neuroncore.program import Affine
from nkigen_lite.ir import Node
from nkigen_lite.lower.contraction import OnChip, load, matrix_of
from nkigen_lite.lower.sources import Source
from nkigen_lite.lower.strip_tile import Strip, StripTile
from nkigen_lite.lower.tiles import Tile, Tiles, parts, row_parts
from nkigen_lite.lower.writer import Writer

Batch = tuple[Affine, ...]


@dataclass(slots=True)
class Strips:
    """Writes a strip.

    `sources` are the values in HBM that it reads or writes, `tiles` the emitters of its groups,
    `rows` the T rows of each partition, `turns` how many tiles take turns.
    """

    writer: Writer
    strip: Strip
    sources: Mapping[str, Source]
    tiles: Mapping[int, Tiles]
    rows: int
    turns: int
    shared: dict[str, OnChip] = field(default_factory=dict)
    """Right matrices that are the same for all batches."""

    def write(self) -> None:
        *batches, num_rows = self.strip.lead
        self.shared = self.rights((), varying=False)
        strips = list(row_parts(num_rows, self.rows))
        if sum(part.tiles for part, _, _ in strips) == 1:
            _, partitions, each = strips[0]
            for places in self.batches(tuple(batches), self.turns):
                tiles = [Tile(Affine(), partitions, each, Affine(), 0, b) for b in places]
                self.together([(t, self.rights(t.batch, varying=True)) for t in tiles])
            return
        for (batch,) in self.batches(tuple(batches), 1):
            rights = self.rights(batch, varying=True)
            for part, partitions, each in strips:
                for group in parts(part.tiles, self.turns):
                    with self.writer.loop("strip", group.tiles) as t:
                        first = (t * group.size + group.start) * part.size + part.start
                        rows = [first + i * part.size for i in range(group.size)]
                        tiles = [Tile(r, partitions, each, Affine(), 0, batch) for r in rows]
                        self.together([(tile, rights) for tile in tiles])

    def batches(self, sizes: tuple[int, ...], turns: int) -> Iterator[list[Batch]]:
        """Places in the batch axes, up to `turns` of the longest axis at once, in their loops."""
        longest = max(range(len(sizes)), key=sizes.__getitem__, default=0)
        with ExitStack() as stack:
            variables = [
                Affine() if d == longest else stack.enter_context(self.writer.loop("batch", n))
                for d, n in enumerate(sizes)
            ]
            for part in parts(sizes[longest] if sizes else 1, turns):
                with self.writer.loop("batch", part.tiles) as b:
                    places = [b * part.size + part.start + i for i in range(part.size)]
                    yield [
                        tuple(p if d == longest else v for d, v in enumerate(variables))
                        for p in places
                    ]  # fmt: skip

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

    def together(self, places: list[tuple[Tile, dict[str, OnChip]]]) -> None:
        """Tiles that take turns: each up to its next product."""
        tiles = [
            StripTile(self.writer, self.strip, self.sources, self.tiles, at, self.shared | rights)
            for at, rights in places
        ]
        for turn in _turns(self.strip):
            for tile in tiles:
                for number in turn:
                    tile.stage(number)


def _turns(strip: Strip) -> Iterator[list[int]]:
    """Stages up to a product, and so on."""
    turn: list[int] = []
    for number, stage in enumerate(strip.stages):
        turn.append(number)
        if isinstance(stage, Node):
            yield turn
            turn = []
    if turn:
        yield turn
