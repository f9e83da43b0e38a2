"""Arrays of different numbers, made by the kernel: it has only its parameters and its code.

What is the same along an axis is held once. The rest is cut into runs of one number and steps of
whole numbers, written by memset and iota into a row on chip, and stored in HBM, where every group
finds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from neuroncore.engines import Space as Memory
from neuroncore.program import Access, Affine, Buffer, whole
from neuroncore.spec import row_major
from nki_dtypes import DType, cast, int32
from nkigen_lite.ir import Node
from nkigen_lite.lower.literals import is_by_bits, literal
from nkigen_lite.lower.refuse import cannot
from nkigen_lite.lower.sources import Source, whole_source
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
    """An array as runs of the axes along which it changes; the others have stride 0."""

    shape: tuple[int, ...]
    dtype: DType
    changes: tuple[int, ...]
    runs: tuple[Run, ...]

    @property
    def size(self) -> int:
        """Elements that differ."""
        return sum(r.count for r in self.runs)


def table_of(node: Node) -> Table:
    """What the constant or iota is made of. Raises LoweringError where it has too many runs."""
    if node.op == "iota":
        axis, shape = node.attrs["axis"], node.spec.shape
        return Table(shape, node.spec.dtype, (axis,), (Run(0.0, 1, shape[axis]),))
    array = node.attrs["value"].array
    bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").reshape(array.shape)
    changes = [d for d in range(array.ndim) if (bits != np.take(bits, [0], d)).any()]
    core = array[tuple(slice(None) if d in changes else 0 for d in range(array.ndim))]
    flat = np.ascontiguousarray(core).reshape(-1)
    runs = tuple(_runs(flat, node.spec.dtype))
    alone = len(runs) == 1
    if not alone and (len(runs) > MOST_RUNS or flat.size > MOST_ROWS * ROW_ELEMS):
        raise cannot(
            node, f"the array in the program is {len(runs)} runs of numbers: too many to write",
            hint="pass the array as an argument",
        )  # fmt: skip
    return Table(node.spec.shape, node.spec.dtype, tuple(changes), runs)


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
    found = np.zeros(holds.size, np.int64)
    total = 0
    for at in range(holds.size - 1, -1, -1):
        total = total + 1 if holds[at] else 0
        found[at] = total
    return found


def _counts(first: float, step: float, given: np.ndarray, dtype: DType) -> bool:
    """Whether iota makes exactly these elements."""
    last = first + step * given.size
    if not (step == int(step) and first == int(first) and max(abs(first), abs(last)) <= int32.max):
        return False
    made = int(first) + int(step) * np.arange(given.size)
    return cast(made.astype(np.int32), dtype, from_=int32).tobytes() == given.tobytes()


# -- writing --------------------------------------------------------------------------------------


def write_table(writer: Writer, table: Table, node: Node) -> Source:
    """The array in HBM, made by the kernel."""
    made = writer.allocate(f"{node.op}_in_hbm", (table.size,), table.dtype, Memory.private_hbm)
    source = whole_source(made, (table.size,))
    if len(table.runs) == 1 and table.size > ROW_ELEMS:
        _count_up(writer, table.runs[0], source, node)
    else:
        for start in range(0, table.size, ROW_ELEMS):
            _row(writer, table, source, start, node)
    inner = row_major(tuple(table.shape[d] for d in table.changes))
    strides = dict(zip(table.changes, inner, strict=True))
    return replace(
        source, shape=table.shape, strides=tuple(strides.get(d, 0) for d in range(len(table.shape)))
    )


def _row(writer: Writer, table: Table, to: Source, start: int, node: Node) -> None:
    """Elements from `start` on, as many as a row has."""
    count = min(ROW_ELEMS, table.size - start)
    row = writer.allocate("row", (1, count), held_as(table.dtype), Memory.sbuf, node.origin)
    at = -start
    for run in table.runs:
        low, high = max(at, 0), min(at + run.count, count)
        if low < high:
            skipped = replace(run, first=run.first + run.step * (low - at), count=high - low)
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
