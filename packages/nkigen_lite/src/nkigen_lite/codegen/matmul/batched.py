"""Products of many small matrices: blocks of batches come by few DMAs.

On TensorE the matrices of a block lie side by side, K on partitions. On VectorE each partition has
matrices of its own: products of their numbers, then sums along K. Batch axes that an operand lacks
are read again where they lie, by steps of zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import prod

from neuroncore.enums import MemorySpace
from neuroncore.program import Access, Affine, Buffer, whole
from neuroncore.targets import BANK_ELEMS, PARTITIONS
from nki_dtypes import float32
from nkigen_lite.codegen.emission.candidates import Candidate, fastest
from nkigen_lite.codegen.emission.writer import Writer, columns_of, dense, together
from nkigen_lite.codegen.matmul.operand_tiles import (
    LOAD_BYTES,
    Matrix,
    OnChip,
    load,
    multiply,
    place,
)
from nkigen_lite.fusion.array_view import ArrayView
from nkigen_lite.ir import Node
from nkigen_lite.selection.unsupported import unsupported

BLOCK_BYTES = 2 * LOAD_BYTES
"""Per partition, of each operand of a block."""
BLOCKS = 4
"""At least, of TensorE: their transfers overlap, in queues of their own."""
PRODUCT_BYTES = 32 * 1024
"""Per partition, of products that wait to be added up on VectorE."""
WORTH_A_TILE = 1024
"""Products in each partition that take VectorE 3 us, as long as transfers of a tile take."""
MOST_TERMS = 512
"""On TensorE: of a block, which is on chip at once."""
SLOW_STEP_BYTES = 16
"""Between neighbours on chip: beyond, engines take twice as long [Trainium/Inferentia2 guide]."""


@dataclass(frozen=True, slots=True)
class BatchAxis:
    """Elements between neighbours, in each operand and in the result; 0 where an operand has only
    one of them."""

    size: int
    left: int
    right: int
    to: int


@dataclass(frozen=True, slots=True)
class Side:
    """One of the three arrays: where its next matrix begins, and the steps of its two axes."""

    source: ArrayView
    offset: Affine
    shape: tuple[int, int]
    steps: tuple[int, int]

    def moved(self, by: Affine) -> Side:
        return replace(self, offset=self.offset + by)


def _side(source: ArrayView) -> Side:
    rows, columns = source.shape[-2:]
    down, along = source.strides[-2:]
    return Side(source, Affine(source.offset), (rows, columns), (down, along))


def write_batches(
    writer: Writer, node: Node, left: ArrayView, right: ArrayView, to: ArrayView,
    one_by_one: Callable[[], None],
) -> None:  # fmt: skip
    """The product of every batch, the way that is predicted fastest; `one_by_one` writes them with
    DMAs of their own."""
    axes = _axes(node.spec.shape[:-2], left, right, to)
    product = Batches(writer, node, _side(left), _side(right), _side(to), axes)
    candidates = [Candidate("batch by batch", one_by_one)]
    if product.axes and is_small(node):
        candidates += [
            Candidate("blocks on TensorE", product.on_tensor),
            Candidate("each partition its own on VectorE", product.on_vector),
            *(
                Candidate(f"{what} over partitions", made.on_vector)
                for what, made in product.with_more_batches()
            ),
        ]
    arrays = [(a.shape[-2:], a.strides[-2:], a.dtype.name) for a in (left, right, to)]
    fastest(writer, candidates, known_as=f"{axes}, {arrays}")


def is_small(node: Node) -> bool:
    """Whether one tile holds the matrix of a batch."""
    rows, columns = node.spec.shape[-2:]
    return rows <= PARTITIONS and columns <= BANK_ELEMS


def _axes(batch: tuple[int, ...], *arrays: ArrayView) -> tuple[BatchAxis, ...]:
    """The batch axes of more than one element, neighbours as one where all arrays allow it."""
    found: list[BatchAxis] = []
    for d, size in enumerate(batch):
        back = d - len(batch) - 2
        steps = (
            a.strides[back] if -back <= len(a.shape) and a.shape[back] != 1 else 0 for a in arrays
        )
        axis = BatchAxis(size, *steps)
        if size == 1:
            continue
        if found and _continues(found[-1], axis):
            axis = replace(axis, size=found.pop().size * size)
        found.append(axis)
    return tuple(found)


def _continues(outer: BatchAxis, inner: BatchAxis) -> bool:
    pairs = ((outer.left, inner.left), (outer.right, inner.right), (outer.to, inner.to))
    return all(a == b * inner.size for a, b in pairs)


@dataclass(frozen=True, slots=True)
class Batches:
    """(M, K) times (K, N) at every place of `axes`."""

    writer: Writer
    node: Node
    left: Side
    right: Side
    to: Side
    axes: tuple[BatchAxis, ...]

    @property
    def sizes(self) -> tuple[int, int, int]:
        """M, K, N."""
        return (*self.left.shape, self.right.shape[1])

    def with_more_batches(self) -> Iterator[tuple[str, Batches]]:
        """Columns of one-row results, or rows of one-column results, as one more batch axis."""
        m, _, n = self.sizes
        if m == 1 and n > 1:
            axis = BatchAxis(n, 0, self.right.steps[1], self.to.steps[1])
            right = replace(self.right, shape=(self.right.shape[0], 1))
            yield "columns", replace(self, right=right, axes=(*self.axes, axis))
        if n == 1 and m > 1:
            axis = BatchAxis(m, self.left.steps[0], 0, self.to.steps[0])
            left = replace(self.left, shape=(1, self.left.shape[1]))
            yield "rows", replace(self, left=left, axes=(*self.axes, axis))

    def at(self, axis: BatchAxis, place: Affine) -> Batches:
        """All that begins at one place of an axis."""
        return replace(
            self, left=self.left.moved(place * axis.left),
            right=self.right.moved(place * axis.right), to=self.to.moved(place * axis.to),
        )  # fmt: skip

    def over(self, axes: list[BatchAxis], stack: ExitStack) -> Batches:
        """Inside loops over the axes."""
        here = self
        places = stack.enter_context(self.writer.loops("batch", [a.size for a in axes]))
        for axis, at in zip(axes, places, strict=True):
            here = here.at(axis, at)
        return here

    # -- TensorE ----------------------------------------------------------------------------------

    def on_tensor(self) -> None:
        """Blocks of the longest axis: both operands with K on partitions, the results side by side
        in PSUM."""
        m, k, n = self.sizes
        if k > MOST_TERMS:
            raise unsupported(self.node, f"{k} terms of several matrices are too many at once")
        block = max(self.axes, key=lambda a: a.size)
        chunks = -(-k // PARTITIONS)
        most = max(1, BLOCK_BYTES // (max(chunks * m, chunks * n, n) * float32.itemsize))
        most = min(most, -(-block.size // BLOCKS))
        with ExitStack() as stack:
            here = self.over([a for a in self.axes if a is not block], stack)
            for start, count in self.writer.tiles("block", block.size, min(most, block.size)):
                here.at(block, start).tensor_block(replace(block, size=count))

    def tensor_block(self, axis: BatchAxis) -> None:
        m, _, n = self.sizes
        writer = self.writer
        left = _beside(writer, self.left, axis.size, axis.left, "left", transposed=True)
        right = _beside(writer, self.right, axis.size, axis.right, "right", transposed=False)
        dtype = self.to.source.dtype
        made = writer.allocate("results", (m, axis.size * n), dtype, MemorySpace.sbuf)
        origin = self.node.origin
        each = max(1, min(axis.size, BANK_ELEMS // n))
        for first, count in writer.tiles("bank", axis.size, each):
            width = count * n
            bank = writer.allocate("product", (m, width), float32, MemorySpace.psum, origin)
            if axis.left == 0:
                multiply(writer, whole(bank), left, (Affine(), m), right, (first * n, width))
            else:
                with writer.loop("batch", count) as j:
                    at = (first + j) * n if axis.right else Affine()
                    rows = ((first + j) * m, m)
                    multiply(writer, columns_of(bank, j * n, n), left, rows, right, (at, n))
            writer.call("tensor_copy", dst=columns_of(made, first * n, width), src=whole(bank))
        (down, along), to = self.to.steps, self.to
        shape = (m, axis.size, n)
        target = Access(to.source.buffer, to.offset, shape, (down, axis.to, along))
        source = Access(made.name, Affine(), shape, (made.row, n, 1))
        writer.call("dma_copy", origin, dst=target, src=source)

    # -- VectorE ----------------------------------------------------------------------------------

    def on_vector(self) -> None:
        """The longest axis over partitions, another or more of it inside them."""
        m, k, n = self.sizes
        down = max(self.axes, key=lambda a: a.size)
        others = [a for a in self.axes if a is not down]
        if max(n * k, m * k, m * n) * float32.itemsize > PRODUCT_BYTES:
            raise unsupported(self.node, "its matrices are more than a partition takes")
        most = max(1, BLOCK_BYTES // (max(m * k, k * n, m * n) * float32.itemsize))
        most = min(most, max(1, WORTH_A_TILE // (m * n * k)))
        if not others:
            self.in_rows(down, most)
            return
        beside = max(others, key=lambda a: a.size)
        with ExitStack() as stack:
            here = self.over([a for a in others if a is not beside], stack)
            for row, count in self.writer.tiles("row", down.size, min(PARTITIONS, down.size)):
                there, rows = here.at(down, row), replace(down, size=count)
                most = min(most, beside.size)
                for start, each in self.writer.tiles("block", beside.size, most):
                    there.at(beside, start).vector_block(rows, replace(beside, size=each))

    def in_rows(self, axis: BatchAxis, most: int) -> None:
        """One axis only: neighbours of it in each partition."""
        for row, partitions, each in self.writer.row_tiles("row", axis.size, most):
            steps = (axis.left * each, axis.right * each, axis.to * each)
            rows = BatchAxis(partitions, *steps)
            self.at(axis, row).vector_block(rows, replace(axis, size=each))

    def vector_block(self, down: BatchAxis, beside: BatchAxis) -> None:
        """One tile: the longer axis over partitions, where they are as many."""
        if down.size < beside.size <= PARTITIONS:
            down, beside = beside, down
        m, k, n = self.sizes
        left = Held.load(self.writer, self.left, (down, beside), "left")
        right = Held.load(self.writer, self.right, (down, beside), "right")
        shape = (down.size, beside.size * m * n)
        made = self.writer.allocate("results", shape, self.to.source.dtype, MemorySpace.sbuf)
        rows = max(1, min(m, PRODUCT_BYTES // (k * n * float32.itemsize)))
        some = max(1, PRODUCT_BYTES // (m * k * n * float32.itemsize))
        for batches in self.writer.tiles("part", beside.size, min(some, beside.size)):
            for lines in self.writer.tiles("line", m, rows):
                self.added(left, right, made, batches, lines)
        full, steps = (down.size, beside.size, m, n), (down.to, beside.to, *self.to.steps)
        target = Access(self.to.source.buffer, self.to.offset, full, steps)
        source = Access(made.name, Affine(), full, (made.row, m * n, n, 1))
        _move(self.writer, target, source, self.node)

    def added(
        self, left: Held, right: Held, made: Buffer, batches: tuple[Affine, int],
        rows: tuple[Affine, int],
    ) -> None:  # fmt: skip
        """Some rows of some matrices of every partition."""
        m, k, n = self.sizes
        (first, count), (start, lines), writer = batches, rows, self.writer
        shape, partitions = (count, lines, n, k), made.shape[0]
        (down, along), (step, across) = left.steps, right.steps
        a = _inside(
            left.buffer, first * left.step + start * down, shape, (left.step, down, 0, along)
        )
        b = _inside(right.buffer, first * right.step, shape, (right.step, 0, across, step))
        at = first * (m * n) + start * n
        to, origin = made, self.node.origin
        if k > 1:
            to = writer.allocate("products", (partitions, prod(shape)), float32, MemorySpace.sbuf)
            at = Affine()
        dst = _inside(to, at, shape, (lines * n * k if k > 1 else m * n, n * k, k, 1))
        writer.call("tensor_tensor", origin, **dense(2, dst=dst, data1=a, data2=b), op="multiply")
        if k > 1:
            sums = _inside(made, first * (m * n) + start * n, (count * lines * n,), (1,))
            many = _inside(to, Affine(), (count * lines * n, k), (k, 1))
            writer.call("tensor_reduce", origin, dst=sums, data=many, axis=(2,), op="add")


def _inside(buffer: Buffer, at: Affine, shape: tuple[int, ...], steps: tuple[int, ...]) -> Access:
    """Elements of every partition."""
    return Access(buffer.name, at, (buffer.shape[0], *shape), (buffer.row, *steps))


@dataclass(frozen=True, slots=True)
class Held:
    """Matrices on chip, some in each partition: `step` from one to the next, `steps` in them."""

    buffer: Buffer
    step: int
    steps: tuple[int, int]

    @staticmethod
    def load(writer: Writer, side: Side, over: tuple[BatchAxis, BatchAxis], name: str) -> Held:
        """The matrices as they lie, what is nearest in HBM is so on chip; or with neighbours along
        K nearest, where steps along it would be slow."""
        along = 1 if name == "left" else 0
        (down, beside), size = over, prod(side.shape)
        across, step = getattr(down, name), getattr(beside, name)
        count = beside.size if step else 1
        made = writer.allocate(name, (down.size, count * size), side.source.dtype, MemorySpace.sbuf)
        near = int(abs(side.steps[1]) <= abs(side.steps[0]) or side.shape[0] == 1)
        outer, inner = side.shape[1 - near], side.shape[near]
        shape = (count, outer, inner)
        source = Access(
            side.source.buffer, side.offset, (down.size, *shape),
            (across, step, side.steps[1 - near], side.steps[near]),
        )  # fmt: skip
        _move(writer, _inside(made, Affine(), shape, (size, inner, 1)), source)
        if near != along and inner * side.source.dtype.itemsize > SLOW_STEP_BYTES and outer > 1:
            lain = made
            made = writer.allocate(name, made.shape, side.source.dtype, MemorySpace.sbuf)
            into = _inside(made, Affine(), shape, (size, 1, outer))
            taken = _inside(lain, Affine(), shape, (size, inner, 1))
            writer.call("tensor_copy", None, **dense(2, dst=into, src=taken))
            near, inner = along, outer
        steps = (inner, 1) if near == 1 else (1, inner)
        return Held(made, size if step else 0, steps)


def _move(writer: Writer, dst: Access, src: Access, node: Node | None = None) -> None:
    dst, src = together(dst, src, 1)
    writer.call("dma_copy", node.origin if node else None, dst=dst, src=src)


def _beside(
    writer: Writer, side: Side, count: int, step: int, name: str, transposed: bool
) -> OnChip:
    """(K, count · X): the matrices side by side; one where all are the same."""
    k, x = side.shape[::-1] if transposed else side.shape
    along_k, along_x = side.steps[::-1] if transposed else side.steps
    count = count if step else 1
    if count == 1 or step == along_x * x:
        matrix = Matrix(
            side.source.buffer, side.offset, k, count * x, along_k, along_x, side.source.dtype
        )
        return load(writer, matrix, name)
    made = place(writer, name, k, count * x, side.source.dtype)
    if made.main is not None:
        shape = (PARTITIONS, made.chunks, count, x)
        source = (along_k, along_k * PARTITIONS, step, along_x)
        target = Access(made.main.name, Affine(), shape, (made.main.row, count * x, x, 1))
        _move(writer, target, Access(side.source.buffer, side.offset, shape, source))
    if made.rest is not None:
        shape = (made.left, count, x)
        offset = side.offset + made.chunks * PARTITIONS * along_k
        source = Access(side.source.buffer, offset, shape, (along_k, step, along_x))
        _move(writer, Access(made.rest.name, Affine(), shape, (made.rest.row, x, 1)), source)
    return made
