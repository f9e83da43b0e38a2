"""Constant arrays in HBM: parameters or constants of the program, or made by instructions.

What is the same along an axis is held once. An even count is made by iota. The rest is a constant
of the program, or cut into runs of one number and steps of whole numbers, which memset and iota
write into a row on chip: what is predicted faster. 0.2 documents no NumPy array as a constant: it
is one there where there are too many runs. Constants of more than MOST_BYTES become parameters
behind the function's: a kernel is code, not data.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.program import Access, Affine, Allocate, Buffer, Program, elements_of, whole
from neuroncore.spec import row_major
from neuroncore.surface import version_tuple
from neuroncore.targets import PARTITIONS
from nki_dtypes import int32
from nkigen_lite.codegen.emission.candidates import Candidate, fastest
from nkigen_lite.codegen.emission.writer import Writer, columns_of
from nkigen_lite.fusion.array_view import (
    ArrayView,
    array_view_of,
)
from nkigen_lite.fusion.constant_tables import ROW_ELEMS, Progression, Table
from nkigen_lite.ir import Node
from nkigen_lite.selection.engine_operations import held_as
from nkigen_lite.selection.literals import is_by_bits, literal

MOST_BYTES = 4 * 1024
"""Of a constant in a kernel's source."""


def constants_as_parameters(program: Program) -> tuple[Program, dict[str, np.ndarray]]:
    """The program with its large constants as parameters, and their arrays by name."""
    large = [b for b in program.buffers().values() if len(b.content or b"") > MOST_BYTES]
    arrays = {b.name: elements_of(b) for b in large}
    body = tuple(
        s for s in program.body if not (isinstance(s, Allocate) and s.buffer.name in arrays)
    )
    new = [replace(b, space=MemorySpace.hbm, content=None) for b in large]
    return replace(program, parameters=(*program.parameters, *new), body=body), arrays


def write_table(writer: Writer, table: Table, node: Node) -> ArrayView:
    """The array in HBM, made by the kernel or a constant of it."""
    made: dict[str, ArrayView] = {}

    def hold() -> None:
        assert table.content is not None
        held, name = held_as(table.dtype), node.attrs["value"].name or "constant"
        made["constant"] = table.source(
            writer.constant(name, table.core, held, table.content, node.origin).name
        )
        made["constant"] = replace(made["constant"], look=None)

    def write() -> None:
        made["written"] = _written(writer, table, node)

    documented = version_tuple(writer.nki) >= (0, 3)
    candidates = [Candidate("constant", hold)] if table.content is not None else []
    if table.runs and (table.content is None or not documented):
        candidates = [Candidate("written", write)]
    elif table.runs:
        candidates.append(Candidate("written", write))
    return made[fastest(writer, candidates).partition(":")[0]]


def _written(writer: Writer, table: Table, node: Node) -> ArrayView:
    """The array by instructions."""
    made = writer.allocate(f"{node.op}_in_hbm", (table.size,), table.dtype, MemorySpace.private_hbm)
    source = array_view_of(made.name, (table.size,), table.dtype)
    if len(table.runs) == 1 and table.size > ROW_ELEMS:
        _count_up(writer, table.runs[0], source, node)
    else:
        for start in range(0, table.size, ROW_ELEMS):
            _row(writer, table, source, start, node)
    return table.source(made.name)


def _row(writer: Writer, table: Table, to: ArrayView, start: int, node: Node) -> None:
    """Elements from `start` on, as many as a row has."""
    count = min(ROW_ELEMS, table.size - start)
    row = writer.allocate("row", (1, count), held_as(table.dtype), MemorySpace.sbuf, node.origin)
    at = -start
    for run in table.runs:
        low, high = max(at, 0), min(at + run.count, count)
        if low < high:
            first = run.first + run.step * (low - at) if run.step else run.first  # -0.0 stays
            skipped = replace(run, first=first, count=high - low)
            _write(writer, row, low, skipped, node)
        at += run.count
    _store(writer, to, start, whole(row))


def _write(writer: Writer, row: Buffer, start: int, run: Progression, node: Node) -> None:
    dst = columns_of(row, start, run.count)
    if run.step:
        writer.call(
            "iota", node.origin, dst=dst, pattern=[[run.step, run.count]], offset=int(run.first)
        )
        return
    look = int32 if is_by_bits(run.first, row.dtype) else None
    writer.call("memset", node.origin, dst=replace(dst, dtype=look),
                value=literal(run.first, row.dtype))  # fmt: skip


def _count_up(writer: Writer, run: Progression, to: ArrayView, node: Node) -> None:
    """One long run: rows on all partitions, then fewer, then what is left of a row."""
    start = 0
    while start < run.count:
        left = run.count - start
        width = min(ROW_ELEMS, left)
        rows = min(PARTITIONS, left // width)
        tile = writer.allocate(
            "rows", (rows, width), held_as(to.dtype), MemorySpace.sbuf, node.origin
        )
        writer.call(
            "iota", node.origin, dst=whole(tile), pattern=[[run.step, width]],
            offset=int(run.first) + run.step * start, channel_multiplier=run.step * width,
        )  # fmt: skip
        _store(writer, to, start, whole(tile))
        start += rows * width


def _store(writer: Writer, to: ArrayView, start: int, tile: Access) -> None:
    shape = tile.shape
    dst = Access(to.buffer, Affine(start), shape, row_major(shape), to.look)
    writer.call("dma_copy", dst=dst, src=tile)
