"""local_gather: elements picked by the indices of a group of 16 partitions, on GpSimdE."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from math import ceil

import numpy as np

from neuroncore.enums import SBUF, Engine, MemorySpace
from neuroncore.errors import AccessError, AttributeValueError, ShapeError, Violation
from neuroncore.instructions._convert import optional, whole
from neuroncore.instructions._cost import one_pass
from neuroncore.instructions._numerics import Result, raw_reader
from neuroncore.instructions._record import Attr, Call, Example, In, Instruction, Limit, Out
from neuroncore.instructions._rules import same_dtype, same_free, same_partitions
from neuroncore.memory import View
from neuroncore.targets import GPSIMD_PARTITIONS
from neuroncore.work import MicroOp, Pass, constant
from nki_dtypes import uint16, uint32


def reject_outside(c: Call, name: str, largest: int, most: int) -> None:
    """Raise AccessError for an index past the last element of a row."""
    if largest > most:
        raise AccessError(
            f"an index is {largest}",
            expected=f"0 to {most}",
            got=str(largest),
            hint="what hardware reads there is undefined",
            operand=name,
            instruction=c.record.name,
            rule=f"NKI: {c.record.name}, index range",
        )


# -- local_gather ---------------------------------------------------------------------------------


def valid_indices(c: Call) -> int:
    """Indices that each processor uses; all of its 16 partitions' unless told otherwise."""
    return GPSIMD_PARTITIONS * c.index.free if c.num_valid_indices is None else c.num_valid_indices


def local_gather(c: Call) -> Callable[..., None]:
    """dst[p, j] = the num_elem_per_idx elements of src_buffer[p] from element offset flat[j] on.

    flat are the indices of p's group of 16 partitions, the partition running fastest. src_buffer
    (P, F), index (P, I) uint16, dst (P, valid indices, num_elem_per_idx).
    """
    groups, each, count = (
        c.index.partitions // GPSIMD_PARTITIONS,
        c.num_elem_per_idx,
        valid_indices(c),
    )
    read = raw_reader(c.src_buffer, (groups, GPSIMD_PARTITIONS, c.src_buffer.free))
    indices = raw_reader(c.index, (groups, GPSIMD_PARTITIONS, c.index.free))
    run = np.arange(each)

    def gather(dst: View, src_buffer: View, index: View) -> None:
        flat = indices(index).transpose(0, 2, 1).reshape(groups, -1)[:, :count].astype(np.intp)
        reject_outside(c, "index", int(flat.max()), c.src_buffer.free - each)
        places = (flat[:, :, None] + run).reshape(groups, 1, -1)
        taken = np.take_along_axis(read(src_buffer), places, axis=2)
        dst.array[...] = taken.reshape(dst.shape)

    return gather


def _sizes(c: Call) -> Iterable[Violation]:
    per_core = GPSIMD_PARTITIONS * c.index.free
    if c.index.partitions % GPSIMD_PARTITIONS:
        yield Violation(
            ShapeError, f"index has {c.index.partitions} partitions", "index",
            expected=f"a multiple of {GPSIMD_PARTITIONS}", got=f"shape {c.index!r}",
            rule="NKI: local_gather, tile size",
        )  # fmt: skip
    if per_core > 4096:
        yield Violation(
            ShapeError, f"{per_core} indices for each group of {GPSIMD_PARTITIONS} partitions",
            "index", expected="at most 4096", got=f"shape {c.index!r}",
            rule="NKI: local_gather, tile size",
        )  # fmt: skip
    if not 0 < valid_indices(c) <= per_core:
        yield Violation(
            AttributeValueError, f"num_valid_indices {valid_indices(c)}", "num_valid_indices",
            expected=f"1 to {per_core}: index.size / (P / {GPSIMD_PARTITIONS})",
            got=str(c.num_valid_indices), rule="NKI: local_gather, num_valid_indices",
        )  # fmt: skip
    if c.num_elem_per_idx not in (1, 2, 4, 8, 16, 32):
        yield Violation(
            AttributeValueError, f"num_elem_per_idx {c.num_elem_per_idx}", "num_elem_per_idx",
            expected="1, 2, 4, 8, 16 or 32", got=str(c.num_elem_per_idx),
            rule="NKI: local_gather, tile size",
        )  # fmt: skip
    if c.dst.free != valid_indices(c) * c.num_elem_per_idx:
        yield Violation(
            ShapeError, f"dst has {c.dst.free} elements per partition", "dst",
            expected=f"{valid_indices(c) * c.num_elem_per_idx}: valid indices times "
            "num_elem_per_idx",
            got=f"shape {c.dst!r}", rule="NKI: local_gather, shapes",
        )  # fmt: skip


def _local_work(c: Call) -> list[MicroOp]:
    """150 + indices · e / C, C = ((28 + 4 e) / 4 e) / min(4 / itemsize, e) [NKI 0.1 API documents].

    As printed; C grows with the overhead, so the division may be meant the other way round.
    """
    e = c.num_elem_per_idx
    share = ((28 + 4 * e) / (4 * e)) / min(4 / c.src_buffer.dtype.itemsize, e)
    interval = constant("GPSIMD_START") + round(valid_indices(c) * e / share)
    return [Pass(Engine.gpsimd, interval)]


def _local_result(c: Call) -> Result:
    """(P, I, 16, e) as in the documents' example; (P, n, e) for another number of indices."""
    rows, each, count = c.index.partitions, c.num_elem_per_idx, valid_indices(c)
    whole_slices = count == GPSIMD_PARTITIONS * c.index.free
    middle = (c.index.free, GPSIMD_PARTITIONS) if whole_slices else (count,)
    return (rows, *middle, each), c.src_buffer.dtype, MemorySpace.sbuf


_SRC = np.arange(64.0).reshape(16, 4)
_INDEX = np.array([[2], [0], *[[1]] * 14])
_LOCAL = np.stack([_SRC[:, [2, 3]], _SRC[:, [0, 1]], _SRC[:, [1, 2]]], axis=1)

LOCAL_GATHER = Instruction(
    name="local_gather",
    engines=(Engine.gpsimd,),
    operands={
        "dst": Out("P N", SBUF),
        "src_buffer": In("P F", SBUF),
        "index": In("P I", SBUF, dtypes=frozenset({uint16})),
    },
    attrs={
        "num_elem_per_idx": Attr(1, whole("num_elem_per_idx")),
        "num_valid_indices": Attr(None, optional(whole("num_valid_indices"))),
    },
    limits=[
        same_partitions("index", "src_buffer", "dst", src_buffer="float32[32, 4] sbuf"),
        same_dtype("src_buffer", dst="bfloat16[16, 3, 2] sbuf"),
        Limit(_sizes, {"index": "uint16[8, 2] sbuf", "src_buffer": "float32[8, 4] sbuf",
                       "dst": "float32[8, 3, 2] sbuf"}),
        Limit(_sizes, {"index": "uint16[16, 257] sbuf"}),
        Limit(_sizes, {"num_valid_indices": 17}),
        Limit(_sizes, {"num_elem_per_idx": 3}),
        Limit(_sizes, {"dst": "float32[16, 5] sbuf"}),
    ],
    work=_local_work,
    run=local_gather,
    result=_local_result,
    moves_bits=lambda c: True,
    examples=[
        Example({"dst": "float32[16, 3, 2] sbuf", "src_buffer": _SRC,
                 "index": ("sbuf uint16", _INDEX), "num_elem_per_idx": 2, "num_valid_indices": 3},
                {"dst": _LOCAL}, note="indices are element offsets: 2, 0, 1 of the 16 partitions"),
    ],
)  # fmt: skip


def nc_n_gather(c: Call) -> Callable[..., None]:
    """dst[p, i] = data[p, indices[p, i]], free dimensions flattened; raises AccessError outside."""
    read = raw_reader(c.data, (c.data.partitions, c.data.free))
    places = raw_reader(c.indices, (c.data.partitions, c.indices.free))

    def gather(dst: View, data: View, indices: View) -> None:
        found = places(indices)
        reject_outside(c, "indices", int(found.max()), c.data.free - 1)
        taken = np.take_along_axis(read(data), found.astype(np.intp), axis=1)
        dst.array[...] = taken.reshape(dst.shape)

    return gather


def _n_work(c: Call) -> list[MicroOp]:
    """ceil(F / 512) groups of instructions [NKI: nc_n_gather] behind each other; their cost is not
    published: N each."""
    (group,) = one_pass(c, min(c.dst.free, 512))
    assert isinstance(group, Pass)
    return [replace(group, interval=group.interval * ceil(c.dst.free / 512))]


NC_N_GATHER = Instruction(
    name="nc_n_gather",
    engines=(Engine.gpsimd,),
    operands={
        "dst": Out("P I", SBUF),
        "data": In("P F", SBUF),
        "indices": In("P I", SBUF, dtypes=frozenset({uint32})),
    },
    limits=[
        same_partitions("dst", "data", "indices", data="float32[8, 4] sbuf"),
        same_free("dst", "indices", indices="uint32[2, 4] sbuf"),
        same_dtype("data", dst="bfloat16[2, 3] sbuf"),
    ],
    work=_n_work,
    run=nc_n_gather,
    result=lambda c: (c.indices.shape, c.data.dtype, MemorySpace.sbuf),
    moves_bits=lambda c: True,
    examples=[
        Example({"dst": "float32[2, 3] sbuf", "data": np.arange(8.0).reshape(2, 4),
                 "indices": ("sbuf uint32", np.array([[3, 3, 0], [1, 2, 0]]))},
                {"dst": np.array([[3.0, 3, 0], [5, 6, 4]])}),
    ],
)  # fmt: skip
