"""Loops over time steps: carried values stay in SBUF, what all steps use is loaded once.

The operations of a step are one group on rows. Operations that need nothing of the step before are
written for many steps at a time, as the rows of a partition; so are operations that no later step
needs. In between is the loop. Its carried values have a place for every step of a chunk: a step
reads one place and writes the next.

    decay[t] = exp(dt[t] * a)              all steps at once
    state[t + 1] = decay[t] * state[t]     step by step
    out[t] = sum(state[t + 1] * c[t])      all steps at once
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from neuroncore.enums import MemorySpace
from neuroncore.program import Access, Affine, Buffer
from neuroncore.spec import row_major
from neuroncore.targets import PARTITIONS
from nkigen_lite.codegen.emission.writer import Writer, columns_of, dense
from nkigen_lite.codegen.loop_nests.row_replication import Replicas
from nkigen_lite.codegen.loop_nests.step_phases import (
    Phase,
    StepGroup,
    one_step,
    without_steps,
)
from nkigen_lite.codegen.loop_nests.tiles import Tile, Tiles
from nkigen_lite.fusion.array_view import ArrayView
from nkigen_lite.fusion.budget import in_rows
from nkigen_lite.fusion.iteration_domain import Role
from nkigen_lite.ir import Node
from nkigen_lite.selection.literals import literal, written_as
from nkigen_lite.selection.unsupported import unsupported

HISTORY_BYTES = 32 * 1024
"""Bytes of a partition for the values of all steps of a chunk."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value is on chip: one for all steps, or one for each from number `first` on."""

    buffer: Buffer
    is_history: bool
    first: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    """The rows that a loop works on, and the steps of a chunk: `row` the first of `partitions`
    rows, `step` the first of `steps`."""

    row: Affine
    partitions: int
    batch: tuple[Affine, ...]
    step: Affine = field(default_factory=Affine)
    steps: int = 1


class TimeLoop:
    """Writes one loop. `sources` are its operands in HBM, or numbers; `places` its results'."""

    def __init__(
        self, writer: Writer, node: Node, sources: Sequence[ArrayView | float],
        places: Mapping[int, ArrayView], group: StepGroup,
    ) -> None:  # fmt: skip
        self.writer, self.node, self.group = writer, node, group
        self.sources, self.results = sources, places
        self.carries, self.steps = node.attrs["carries"], node.attrs["steps"]
        self.stacked = range(self.carries, self.carries + node.attrs["stacked"])
        self.width = group.domain.size(Role.columns)
        self.outputs = group.graph.outputs
        self.left = {n: self.outputs[n] for n in places if n >= self.carries}
        self.on_chip: dict[str, Place] = {}
        self.loads: dict[Access, Buffer] = {}
        """What is on chip already, by its place in HBM."""

    # ------------------------------------------------------------------ values

    def is_full(self, value: str) -> bool:
        return self.group.full[value]

    def elems(self, value: str) -> int:
        return self.width if self.is_full(value) else 1

    def bytes_of(self, value: str) -> int:
        return self.elems(value) * self.group.dtypes[value].itemsize

    def is_stacked(self, value: str) -> bool:
        """Whether it is an operand with elements for every step."""
        return self.group.inputs.get(value, -1) in self.stacked

    @property
    def histories(self) -> list[str]:
        """The values with a place for every step."""
        found = [v for v in self.group.outside if self.is_stacked(v)]
        found += self.group.names[: self.carries]
        made = (v for p in (Phase.before, Phase.steps) for v in self.group.leaving(p))
        return [*found, *made, *self.left.values()]

    @property
    def chunk(self) -> int:
        """Steps of a chunk."""
        each = sum(map(self.bytes_of, dict.fromkeys([*self.histories, *self.group.scratch])))
        most = HISTORY_BYTES // max(1, each)
        if not most:
            raise unsupported(self.node, f"the values of a step need {each} B a partition")
        return -(-self.steps // -(-self.steps // most))

    # ------------------------------------------------------------------ writing

    def write(self) -> None:
        batches = [a.size for a in self.group.domain.axes if a.role is Role.batch]
        rows = self.group.domain.size(Role.rows)
        with self.writer.loops("batch", batches) as batch:
            for row, count in self.writer.tiles("tile", rows, PARTITIONS):
                self.rows(Block(row, count, batch))

    def rows(self, block: Block) -> None:
        """All steps of some rows."""
        self.on_chip, self.loads = {}, {}
        for value in self.group.outside:
            if self.group.inputs[value] >= self.stacked.stop:
                self.on_chip[value] = Place(self.loaded(value, block), False)
        self.phase(Phase.once, block, Affine())
        size = min(self.chunk, self.steps)
        self.carry_in(block, size + 1)
        for step, count in self.writer.tiles("chunk", self.steps, size):
            self.chunk_of(replace(block, step=step, steps=count))
            if size < self.steps:
                self.carry_on(block, count)
        for number in range(self.carries):
            if number in self.results:
                last = 0 if size < self.steps else self.steps
                value = self.outputs[number]
                buffer = self.on_chip[self.state(number)].buffer
                self.store(number, value, self.slot(buffer, value, last), block)

    def state(self, number: int) -> str:
        """The carried value as a step reads it."""
        return self.group.names[number]

    def carry_in(self, block: Block, slots: int) -> None:
        for number in range(self.carries):
            value = self.state(number)
            buffer = self.history("state", value, block, slots)
            self.on_chip[value] = Place(buffer, True)
            made, first = self.outputs[number], self.slot(buffer, value, 0)
            if made in self.group.names_of(Phase.steps) and made not in self.on_chip:
                self.on_chip[made] = Place(buffer, True, 1)
            source = self.sources[number]
            if isinstance(source, ArrayView):
                src = self.in_hbm(value, source, block)
                self.writer.call("dma_copy", dst=first, src=src)
            else:
                dtype = self.group.dtypes[value]
                bits = written_as(buffer, source)
                dst = replace(bits, shape=first.shape, strides=first.strides)
                self.writer.call("memset", dst=dst, value=literal(source, dtype))

    def carry_on(self, block: Block, count: int) -> None:
        """Copies the carried values of a chunk's last step to the first of the next."""
        for number in range(self.carries):
            buffer, value = self.on_chip[self.state(number)].buffer, self.state(number)
            slots = {"dst": self.slot(buffer, value, 0), "src": self.slot(buffer, value, count)}
            self.writer.call("tensor_copy", **slots)

    def chunk_of(self, block: Block) -> None:
        """Some steps: what is loaded, the three phases, what is stored."""
        outer, self.loads = dict(self.on_chip), {}
        for value in self.group.outside:
            if self.is_stacked(value):
                self.on_chip[value] = Place(self.loaded(value, block), True)
        for phase in (Phase.before, Phase.steps):
            for value in self.group.leaving(phase):
                self.make_history(value, block)
        for value in self.left.values():
            self.make_history(value, block)
        self.phase(Phase.before, block, Affine())
        with self.writer.loop("step", block.steps) as step:
            self.phase(Phase.steps, replace(block, steps=1), step)
            self.copy_carried(block, step)
        self.phase(Phase.after, block, Affine())
        for number, value in self.left.items():
            self.store(number, value, self.access(value, block, None), block)
        self.on_chip = outer

    def make_history(self, value: str, block: Block) -> None:
        if value not in self.on_chip:
            buffer = self.history("steps", value, block, block.steps)
            self.on_chip[value] = Place(buffer, True)

    def copy_carried(self, block: Block, step: Affine) -> None:
        """Carried values that are not made in their place."""
        for number in range(self.carries):
            made, buffer = self.outputs[number], self.on_chip[self.state(number)].buffer
            if self.on_chip[made] != Place(buffer, True, 1):
                dst = self.slot(buffer, made, step + 1)
                src = self.access(made, block, step)
                self.writer.call("tensor_copy", dst=dst, src=src)

    def phase(self, phase: Phase, block: Block, step: Affine) -> None:
        """The operations of a phase: for one step, or for all steps of the chunk."""
        nodes = self.group.nodes[phase]
        if not nodes:
            return
        group, rows = self.group, block.steps if phase in (Phase.before, Phase.after) else 1
        stored = frozenset(group.leaving(phase))
        fit = in_rows(nodes, group.domain, group.context, stored)
        for value in stored - self.on_chip.keys():  # of Phase.once
            buffer = self.tile("once", value, block)
            self.on_chip[value] = Place(buffer, False)
        tiles = Tiles(
            self.writer, group.domain, fit, {}, frozenset(), Replicas(self.writer)
        )  # fmt: skip
        at = None if rows > 1 else step
        tiles.bound = {v: self.access(v, block, at) for v in self.on_chip if v in fit.full}
        for value in sorted(stored):  # one that another value's tile holds is made there
            tiles.bound.setdefault(fit.made.get(value, value), tiles.bound[value])
        tile = Tile(block.row, block.partitions, rows, Affine(), self.width, block.batch)
        tiles.together([tile])
        for value in sorted(stored):
            src = tiles.bound[fit.made.get(value, value)]
            if src != tiles.bound[value]:
                self.writer.call("tensor_copy", dst=tiles.bound[value], src=src)

    # ----------------------------------------------------------------- accesses

    def access(self, value: str, block: Block, step: Affine | None) -> Access:
        """The value in one step; or in all steps of the chunk, as the rows of a partition."""
        place, width = self.on_chip[value], self.elems(value)
        buffer = place.buffer
        if step is not None:
            start = (step + place.first) * width if place.is_history else Affine()
            return Access(buffer.name, start, (block.partitions, width), (buffer.row, 1))
        each, start = (width, place.first * width) if place.is_history else (0, 0)
        shape, strides = [block.partitions, block.steps], [buffer.row, each]
        if self.is_full(value):
            shape, strides = [*shape, width], [*strides, 1]
        return Access(buffer.name, Affine(start), tuple(shape), tuple(strides))

    def slot(self, buffer: Buffer, value: str, number: Affine | int) -> Access:
        width = self.elems(value)
        return columns_of(buffer, Affine() + number * width, width)

    def history(self, name: str, value: str, block: Block, slots: int) -> Buffer:
        shape = (block.partitions, slots * self.elems(value))
        return self.writer.allocate(name, shape, self.group.dtypes[value], MemorySpace.sbuf)

    def tile(self, name: str, value: str, block: Block) -> Buffer:
        return self.history(name, value, block, 1)

    # ---------------------------------------------------------------------- HBM

    def in_hbm(
        self, value: str, source: ArrayView, block: Block, stride: int | None = None
    ) -> Access:  # fmt: skip
        """The block's rows; with `stride`, of all steps of the chunk, that far from each other."""
        domain = self.group.domain
        (row,) = domain.strides(source, value, Role.rows) or (0,)
        (column,) = domain.strides(source, value, Role.columns) or (0,)
        offset = Affine(source.offset) + block.row * row
        for at, step in zip(block.batch, domain.strides(source, value, Role.batch), strict=True):
            offset += at * step
        shape, strides = [block.partitions], [row]
        if stride is not None:
            offset += block.step * stride
            shape, strides = [*shape, block.steps], [*strides, stride]
        shape, strides = [*shape, self.elems(value)], [*strides, column]
        return Access(source.buffer, offset, tuple(shape), tuple(strides), source.look)

    def loaded(self, value: str, block: Block) -> Buffer:
        """An operand's elements on chip, for all steps of the chunk if it has one for each."""
        source = self.sources[self.group.inputs[value]]
        assert isinstance(source, ArrayView), "a number is not loaded"
        view = self.group.view(value, one_step(self.node, self.group.inputs[value], source))
        stride = source.strides[0] if self.is_stacked(value) else None
        access = self.in_hbm(value, view, block, stride)
        column = self.even_stride(access)
        if not access.strides[0] and block.partitions > 1 and column is not None:
            replicas = Replicas(self.writer)
            columns = prod(access.shape[1:])
            replicas.load(value, view, columns, column, access.offset)
            return replicas.buffers[value]
        if access not in self.loads:
            steps = block.steps if self.is_stacked(value) else 1
            made = self.history(f"{source.buffer}_steps", value, block, steps)
            to = Access(made.name, Affine(), access.shape, (made.row, *row_major(access.shape[1:])))
            self.writer.call("dma_copy", **dense(2, dst=to, src=access))
            self.loads[access] = made
        return self.loads[access]

    def even_stride(self, access: Access) -> int | None:
        """The distance between neighbours of a row in HBM; None where they are not one axis."""
        (_, *shape), (_, *strides) = access.shape, access.strides
        axes = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1] or [(1, 1)]
        (*_, (size, column)) = axes
        return column if len(axes) == 1 or axes[0][1] == size * column else None

    def store(self, number: int, value: str, source: Access, block: Block) -> None:
        """A carried value, or what all steps of a chunk leave, to its array in HBM."""
        to = self.results[number]
        if number < self.carries:
            target = self.in_hbm(value, to, block)
        else:
            target = self.in_hbm(value, without_steps(to), block, to.strides[0])
            if not self.is_full(value):
                target = replace(target, shape=target.shape[:2], strides=target.strides[:2])
        self.writer.call("dma_copy", dst=target, src=source)
