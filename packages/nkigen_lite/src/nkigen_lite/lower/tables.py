"""Arrays of different numbers that no argument brings: in HBM, where every group finds them.

What is the same along an axis is held once. An even count is made by iota. The rest is a constant
of the program, or cut into runs of one number and steps of whole numbers, which memset and iota
write into a row on chip: what is predicted faster. 0.2 documents no NumPy array as a constant: it
is one there where there are too many runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from math import prod

import numpy as np

from neuroncore.engines import Space as Memory
from neuroncore.program import Access, Affine, Buffer, whole
from neuroncore.spec import row_major
from neuroncore.surface import version_tuple
from nki_dtypes import DType, cast, int32
from nkigen_lite.ir import Node
from nkigen_lite.lower.literals import is_by_bits, literal
from nkigen_lite.lower.roads import Road, fastest
from nkigen_lite.lower.sources import Source, array_source
from nkigen_lite.lower.table import held_as
from nkigen_lite.lower.writer import Writer

PARTITIONS = 128
ROW_ELEMS = 2048
"""Elements of a row on chip."""
MOST_RUNS = 256
"""Instructions that an array may take: more numbers are data, not code."""
MOST_ROWS = 64


@dataclass(frozen=True, slots=True)
class Run:
    """`count` elements first, first + step, …; whole numbers where step is not 0."""

    first: float
    step: int
    count: int


@dataclass(frozen=True, slots=True)
class Table:
    """An array by the axes along which it changes; the others have stride 0.

    `runs` are its elements where they are few enough, `content` their bytes unless an even count
    says them all.
    """

    shape: tuple[int, ...]
    dtype: DType
    changes: tuple[int, ...]
    runs: tuple[Run, ...]
    content: bytes | None = None

    @property
    def core(self) -> tuple[int, ...]:
        """The shape of what differs."""
        return tuple(self.shape[d] for d in self.changes) or (1,)

    @property
    def size(self) -> int:
        """Elements that differ."""
        return prod(self.core)

    def source(self, buffer: str) -> Source:
        """The whole array, its core in C order in a buffer."""
        strides = dict(zip(self.changes, row_major(self.core), strict=True))
        return replace(
            array_source(buffer, self.shape, self.dtype),
            strides=tuple(strides.get(d, 0) for d in range(len(self.shape))),
        )


def table_of(node: Node) -> Table:
    """What the constant or iota is made of."""
    if node.op == "iota":
        axis, shape = node.attrs["axis"], node.spec.shape
        return Table(shape, node.spec.dtype, (axis,), (Run(0.0, 1, shape[axis]),))
    array = node.attrs["value"].array
    bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").reshape(array.shape)
    changes = tuple(d for d in range(array.ndim) if (bits != np.take(bits, [0], d)).any())
    core = array[tuple(slice(None) if d in changes else 0 for d in range(array.ndim))]
    flat = np.ascontiguousarray(core).reshape(-1)
    count = _even_count(flat, node.spec.dtype)
    if count is not None:
        return Table(array.shape, node.spec.dtype, changes, (count,))
    runs: tuple[Run, ...] = ()
    if flat.size <= MOST_ROWS * ROW_ELEMS:
        runs = tuple(islice(_runs(flat, node.spec.dtype), MOST_RUNS + 1))
    if len(runs) > MOST_RUNS:
        runs = ()
    return Table(array.shape, node.spec.dtype, changes, runs, flat.tobytes())


def row_of(node: Node) -> Table:
    """An array of one number, as what is held once: a row."""
    array = node.attrs["value"].array
    last = array.ndim - 1
    row = np.ascontiguousarray(array.reshape(-1)[: array.shape[last]])
    return Table(array.shape, node.spec.dtype, (last,), (), row.tobytes())


def _even_count(flat: np.ndarray, dtype: DType) -> Run | None:
    """All the elements as one run, if iota makes them."""
    first, second = (float(n) for n in flat[:2])
    step = second - first
    return Run(first, int(step), flat.size) if _counts(first, step, flat, dtype) else None


def _runs(flat: np.ndarray, dtype: DType) -> Iterator[Run]:
    bits = flat.view(f"u{flat.dtype.itemsize}")
    with np.errstate(all="ignore"):
        numbers = flat.astype(np.float64)
    equal = _stretch(bits[1:] == bits[:-1])
    steps = np.diff(numbers)
    even = _stretch(steps[1:] == steps[:-1])
    at = 0
    while at < flat.size:
        same = int(equal[at]) if at < equal.size else 0
        more = int(even[at]) + 1 if at < even.size else 0
        step = float(steps[at]) if at < steps.size else 0.0
        if not same and more >= 2 and _counts(numbers[at], step, flat[at : at + more + 1], dtype):
            yield Run(float(numbers[at]), int(step), more + 1)
            at += more + 1
        else:
            yield Run(float(numbers[at]), 0, same + 1)
            at += same + 1


def _stretch(holds: np.ndarray) -> np.ndarray:
    """How many elements from each on hold."""
    places = np.arange(holds.size)
    ends = np.where(holds, holds.size, places)
    return np.minimum.accumulate(ends[::-1])[::-1] - places


def _counts(first: float, step: float, given: np.ndarray, dtype: DType) -> bool:
    """Whether iota makes exactly these elements; the bits too, as -0.0 is not 0."""
    last = first + step * given.size
    if not (
        np.isfinite(step)
        and step == int(step)
        and first == int(first)
        and max(abs(first), abs(last)) <= int32.max
    ):
        return False
    made = int(first) + int(step) * np.arange(given.size)
    if not np.array_equal(made, given.astype(np.float64)):
        return False
    return cast(made.astype(np.int32), dtype, from_=int32).tobytes() == given.tobytes()


# -- writing --------------------------------------------------------------------------------------


def write_table(writer: Writer, table: Table, node: Node) -> Source:
    """The array in HBM, made by the kernel or a constant of it."""
    made: dict[str, Source] = {}

    def hold() -> None:
        assert table.content is not None
        held = held_as(table.dtype)
        made["constant"] = table.source(
            writer.constant("constant", table.core, held, table.content, node.origin).name
        )
        made["constant"] = replace(made["constant"], look=None)

    def write() -> None:
        made["written"] = _written(writer, table, node)

    documented = version_tuple(writer.nki) >= (0, 3)
    roads = [Road("constant", hold)] if table.content is not None else []
    if table.runs and (table.content is None or not documented):
        roads = [Road("written", write)]
    elif table.runs:
        roads.append(Road("written", write))
    return made[fastest(writer, roads).partition(":")[0]]


def _written(writer: Writer, table: Table, node: Node) -> Source:
    """The array by instructions."""
    made = writer.allocate(f"{node.op}_in_hbm", (table.size,), table.dtype, Memory.private_hbm)
    source = array_source(made.name, (table.size,), table.dtype)
    if len(table.runs) == 1 and table.size > ROW_ELEMS:
        _count_up(writer, table.runs[0], source, node)
    else:
        for start in range(0, table.size, ROW_ELEMS):
            _row(writer, table, source, start, node)
    return table.source(made.name)


def _row(writer: Writer, table: Table, to: Source, start: int, node: Node) -> None:
    """Elements from `start` on, as many as a row has."""
    count = min(ROW_ELEMS, table.size - start)
    row = writer.allocate("row", (1, count), held_as(table.dtype), Memory.sbuf, node.origin)
    at = -start
    for run in table.runs:
        low, high = max(at, 0), min(at + run.count, count)
        if low < high:
            first = run.first + run.step * (low - at) if run.step else run.first  # -0.0 stays
            skipped = replace(run, first=first, count=high - low)
            _write(writer, row, low, skipped, node)
        at += run.count
    _store(writer, to, start, whole(row))


def _write(writer: Writer, row: Buffer, start: int, run: Run, node: Node) -> None:
    dst = Access(row.name, Affine(start), (1, run.count), (row.row, 1))
    if run.step:
        writer.call(
            "iota", node.origin, dst=dst, pattern=[[run.step, run.count]], offset=int(run.first)
        )
        return
    look = int32 if is_by_bits(run.first, row.dtype) else None
    writer.call("memset", node.origin, dst=replace(dst, dtype=look),
                value=literal(run.first, row.dtype))  # fmt: skip


def _count_up(writer: Writer, run: Run, to: Source, node: Node) -> None:
    """One long run: rows on all partitions, then fewer, then what is left of a row."""
    start = 0
    while start < run.count:
        left = run.count - start
        width = min(ROW_ELEMS, left)
        rows = min(PARTITIONS, left // width)
        tile = writer.allocate("rows", (rows, width), held_as(to.dtype), Memory.sbuf, node.origin)
        writer.call(
            "iota", node.origin, dst=whole(tile), pattern=[[run.step, width]],
            offset=int(run.first) + run.step * start, channel_multiplier=run.step * width,
        )  # fmt: skip
        _store(writer, to, start, whole(tile))
        start += rows * width


def _store(writer: Writer, to: Source, start: int, tile: Access) -> None:
    shape = tile.shape
    dst = Access(to.buffer, Affine(start), shape, row_major(shape), to.look)
    writer.call("dma_copy", dst=dst, src=tile)
