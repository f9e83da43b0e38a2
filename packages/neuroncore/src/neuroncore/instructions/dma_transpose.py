"""dma_transpose: a tensor transposed on its way into SBUF, also with gathered rows.

2-D: axes (1, 0); 3-D: (2, 1, 0); 4-D: (3, 1, 2, 0). No dtype change. With a vector offset on src,
row r of src is the one that the r-th index names, the index tile read column by column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from neuroncore.enums import HBM, SBUF, DgeMode, Engine, MaskBehaviour, MemorySpace, OobMode
from neuroncore.errors import AttributeValueError, DTypeError
from neuroncore.instructions._convert import member, whole, wholes
from neuroncore.instructions._dma_transpose_limits import (
    AXES,
    gathers,
    is_direct,
    is_indirect,
    shapes_fit,
    skipping,
    transposed_shape,
)
from neuroncore.instructions._example_operands import gathering, make_operand, moving
from neuroncore.instructions._numerics import Result
from neuroncore.instructions._record import Attr, Call, Example, In, Instruction, Limit, Out
from neuroncore.instructions._rules import rule, ways
from neuroncore.instructions.dma import contiguous_run
from neuroncore.memory import View, dynamic_rows
from neuroncore.memory.dynamic import reject_out_of_bounds
from neuroncore.work import MicroOp, Transfer


def dma_transpose(c: Call) -> Callable[..., None]:
    """dst = transpose(src, axes)."""
    if gathers(c):
        return _gathered(c)
    axes = AXES[c.src.rank]

    def transpose(dst: View, src: View) -> None:
        dst.array[...] = src.array.transpose(axes).reshape(dst.shape)

    return transpose


def _gathered(c: Call) -> Callable[..., None]:
    """Rows out of bounds are an error, or leave their columns of dst as they are."""
    axes, shape, skip = AXES[c.src.rank], transposed_shape(c), c.oob_mode is OobMode.skip

    def gather(dst: View, src: View) -> None:
        elements, valid = dynamic_rows(src, by_column=True)
        if not skip and not valid.all():
            reject_out_of_bounds(src, valid, by_column=True)
        transposed = src.storage.flat.view(src.array.dtype)[elements].transpose(axes)
        kept = np.where(valid, transposed, dst.array.reshape(shape))  # rows came to the last axis
        dst.array[...] = kept.reshape(dst.shape)

    return gather


def _chooses(c: Call, views: Mapping[str, Any]) -> np.ndarray | None:
    """The columns of dst whose rows of src are in bounds, where others are skipped."""
    if c.oob_mode is OobMode.error or not gathers(c):
        return None
    valid = dynamic_rows(views["src"], by_column=True)[1]
    return np.broadcast_to(valid, transposed_shape(c)).reshape(c.dst.shape)


def _axes(value: Any) -> tuple[int, ...] | None:
    return None if value is None else wholes("axes")(value)


def _priority(value: Any) -> int | None:
    return None if value is None else whole("priority")(value)


def _work(c: Call) -> list[MicroOp]:
    """Descriptors over the contiguous runs of src; how well they use the engines is the timeline's.

    At most 0.9 of the bandwidth from HBM and 0.5 from SBUF [Trainium2 architecture guide].
    """
    run, width = contiguous_run(c.src), c.src.dtype.itemsize
    transfer = Transfer(
        bytes=c.dst.size * width,
        descriptors=max(1, c.src.size // run),
        run_bytes=run * width,
        partitions=c.dst.partitions,
        indirect=gathers(c),
    )
    return [transfer]


def _result(c: Call) -> Result:
    return transposed_shape(c), c.src.dtype, MemorySpace.sbuf


_RAMP = np.arange(12.0).reshape(3, 4)
_ROWS, _BACK = np.arange(64.0).reshape(16, 4), np.arange(15, -1, -1)


def _backwards(core: Any) -> View:
    """16 rows of 4 in HBM, last one first, by a (16, 1) uint32 tile."""
    base = make_operand(core, ("hbm bfloat16", _ROWS))
    offsets = make_operand(core, ("sbuf uint32", _BACK[:, None]))
    return base.ap([[4, 16], [1, 4]], vector_offset=offsets)


def _planes(rows: int, columns: int) -> Callable[[Any], View]:
    """A 3-D gather, as in 0.2, by an index tile of so many rows and columns."""

    def make(core: Any) -> View:
        base = make_operand(core, "bfloat16[64, 128] hbm")
        offsets = make_operand(core, f"uint32[{rows}, {columns}] sbuf")
        pattern = [[128, rows * columns], [128, 1], [1, 128]]
        return base.ap(pattern, vector_offset=offsets)

    make.__doc__ = f"{rows * columns} planes of (1, 128), named by uint32[{rows}, {columns}] sbuf"
    return make


_GATHER = {"dst": "bfloat16[128, 16] sbuf"}

DMA_TRANSPOSE = Instruction(
    name="dma_transpose",
    engines=(Engine.dma,),
    engine_of=lambda c: Engine.dma,
    operands={"dst": Out("any", SBUF), "src": In("any", HBM | SBUF)},
    attrs={
        "axes": Attr(None, _axes),
        "priority": Attr(None, _priority),
        "dge_mode": Attr(DgeMode.unknown, member(DgeMode, "dge_mode")),
        "oob_mode": Attr(OobMode.error, member(OobMode, "oob_mode")),
    },
    limits=[
        Limit(shapes_fit, {"src": "float32[2, 2, 2, 2, 2] hbm"}),
        Limit(shapes_fit, {"axes": (2, 1, 0)}),
        Limit(shapes_fit, {"dst": "float32[4, 1, 3] sbuf"}),
        rule(
            lambda c: c.dst.dtype is c.src.dtype,
            DTypeError, "dst", "dst is {c.dst.dtype}, src {c.src.dtype}", expected="{c.src.dtype}",
            got="{c.src!r} into {c.dst!r}", section="dtypes", dst="bfloat16[4, 3] sbuf",
        ),
        Limit(is_direct, {"dge_mode": DgeMode.swdge}),
        Limit(is_direct, {"dge_mode": DgeMode.hwdge, "target": "trn1"}),
        Limit(is_direct, {"dge_mode": DgeMode.hwdge, "src": "float32[16, 4] hbm",
                          "dst": "float32[4, 16] sbuf"}),
        Limit(is_direct, {"dge_mode": DgeMode.hwdge, "src": "bfloat16[16, 4] hbm",
                          "dst": "bfloat16[4, 16] sbuf", "version": (0, 5)}),
        Limit(is_indirect, _GATHER | {
            "src": gathering("bfloat16[64, 128] hbm", "uint32[16, 1] sbuf", 16),
            "target": "trn1"}),
        Limit(is_indirect, _GATHER | {
            "src": gathering("bfloat16[64, 128] hbm", "uint32[16, 1] sbuf", 16),
            "dge_mode": DgeMode.hwdge}),
        Limit(is_indirect, {
            "src": gathering("float32[64, 128] hbm", "uint32[16, 1] sbuf", 16),
            "dst": "float32[128, 16] sbuf"}),
        Limit(is_indirect, {
            "src": gathering("bfloat16[64, 64] hbm", "uint32[16, 1] sbuf", 16),
            "dst": "bfloat16[64, 16] sbuf", "version": (0, 3)}),
        Limit(is_indirect, {
            "src": gathering("bfloat16[64, 8] hbm", "uint32[8, 1] sbuf", 8),
            "dst": "bfloat16[8, 8] sbuf"}),
        Limit(is_indirect, {
            "src": gathering("bfloat16[64, 8] hbm", "uint32[16, 2] sbuf", 32),
            "dst": "bfloat16[8, 32] sbuf"}),
        Limit(is_indirect, _GATHER | {
            "src": gathering("bfloat16[64, 128] hbm", "int32[16, 1] sbuf", 16)}),
        *ways(
            rule(
                skipping,
                AttributeValueError, "oob_mode", "oob_mode skip without a dynamic src",
                expected="error, or a src with vector_offset (from 0.5 on also scalar_offset)",
                got="skip", section="oob_mode", oob_mode=OobMode.skip,
            ),
            {"oob_mode": OobMode.skip, "version": (0, 4), "dst": "float32[4, 3] sbuf",
             "src": moving("float32[8, 4] hbm", "int32[1, 1] sbuf", 3)},
        ),
        *ways(
            rule(
                lambda c: c.priority is None or (
                    c.target.generation >= 4 and c.priority in range(4)
                ),
                AttributeValueError, "priority", "priority {c.priority} on {c.target.name}",
                expected="None, or 0 to 3 on gen4", section="priority", priority=1,
            ),
            {"priority": 4, "target": "trn3"},
        ),
        Limit(shapes_fit, {"dst": "float32[4, 4] sbuf", "version": (0, 3)}),
        Limit(is_direct, {"dge_mode": DgeMode.hwdge, "src": "bfloat16[15, 64] hbm",
                          "dst": "bfloat16[64, 15] sbuf"}),
        Limit(is_direct, {"dge_mode": DgeMode.hwdge, "src": "bfloat16[8, 3, 64] hbm",
                          "dst": "bfloat16[64, 3, 8] sbuf"}),
        Limit(is_indirect, {
            "src": gathering("bfloat16[64, 128] hbm", "uint32[16, 2] sbuf", 32),
            "dst": "bfloat16[128, 32] sbuf", "version": (0, 3)}),
        Limit(is_indirect, {
            "src": _planes(128, 2), "dst": "bfloat16[128, 1, 256] sbuf", "version": (0, 2)}),
    ],
    work=_work,
    run=dma_transpose,
    result=_result,
    mask=MaskBehaviour.rectangular,
    covers=lambda c: c.dst.indirect is None and c.oob_mode is OobMode.error,
    chooses=_chooses,
    moves_bits=lambda c: True,
    examples=[
        Example({"dst": "float32[4, 3] sbuf", "src": ("hbm", _RAMP)}, {"dst": _RAMP.T}),
        Example({"dst": "bfloat16[4, 16] sbuf", "src": _backwards}, {"dst": _ROWS[_BACK].T},
                note="rows gathered by a vector offset"),
    ],
)  # fmt: skip
