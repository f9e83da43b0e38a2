"""dma_transpose: a tensor transposed on its way into SBUF, also with gathered rows.

2-D: axes (1, 0); 3-D: (2, 1, 0); 4-D: (3, 1, 2, 0). No dtype change. With a vector offset on src,
row r of src is the one that the r-th index names, the index tile read column by column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from neuroncore.enums import HBM, SBUF, DgeMode, Engine, MaskBehaviour, MemorySpace, OobMode
from neuroncore.errors import (
    AttributeValueError,
    DTypeError,
    MemorySpaceError,
    ShapeError,
    UnsupportedError,
    Violation,
)
from neuroncore.instructions._convert import member, optional, whole, wholes
from neuroncore.instructions._example_operands import gathering, make_operand, moving
from neuroncore.instructions._limits import warn_at_kernel
from neuroncore.instructions._numerics import Result
from neuroncore.instructions._record import Attr, Call, Example, In, Instruction, Limit, Out
from neuroncore.instructions._rules import rule, ways
from neuroncore.instructions.dma import contiguous_run
from neuroncore.memory import View, dynamic_rows
from neuroncore.memory.dynamic import reject_out_of_bounds
from neuroncore.spec import Spec
from neuroncore.work import MicroOp, Transfer
from nki_dtypes import uint32

RULE = "NKI: dma_transpose"
AXES = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}


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


# -- limits ---------------------------------------------------------------------------------------


def transposed_shape(c: Call) -> tuple[int, ...]:
    """The shape of src, transposed."""
    return tuple(c.src.shape[axis] for axis in AXES[c.src.rank])


def gathers(c: Call) -> bool:
    """Whether src has a vector offset: the indirect form."""
    return c.src.indirect is not None and c.src.indirect.kind == "vector"


def shapes_fit(c: Call) -> Iterable[Violation]:
    """dst is src transposed, by the axes that its rank has."""
    rank = c.src.rank
    if rank not in AXES:
        yield Violation(
            ShapeError, f"src has {rank} dimensions", "src", expected="2, 3 or 4",
            got=f"shape {c.src!r}", rule=f"{RULE}, axes",
        )  # fmt: skip
        return
    if c.axes not in (None, AXES[rank]):
        yield Violation(
            AttributeValueError, f"axes {c.axes} for {rank} dimensions", "axes",
            expected=f"None or {AXES[rank]}", got=str(c.axes), rule=f"{RULE}, axes",
        )  # fmt: skip
    wanted, got = transposed_shape(c), c.dst.shape
    padded = c.version < (0, 4) and _dense(wanted) == _dense(got)  # lower ranks were padded
    if got != wanted and not padded:
        yield Violation(
            ShapeError, f"dst has shape {got}", "dst",
            expected=f"{wanted}, the shape of src transposed by {AXES[rank]}",
            got=f"{c.src!r} into {c.dst!r}",
            hint="from 0.4 on the rank counts too: use dst.reshape or .ap",
            rule=f"{RULE}, shapes",
        )  # fmt: skip


def _dense(shape: tuple[int, ...]) -> list[int]:
    return [n for n in shape if n != 1]


def _two_bytes(c: Call, why: str) -> Iterable[Violation]:
    if c.src.dtype.itemsize != 2:
        yield Violation(
            DTypeError, f"src is {c.src.dtype}", "src", expected=f"a 2-byte dtype for {why}",
            got=f"shape {c.src!r}", rule=f"{RULE}, dtypes",
        )  # fmt: skip


def is_direct(c: Call) -> Iterable[Violation]:
    """Without a vector offset: which dge_mode takes which shapes."""
    if gathers(c) or c.dge_mode is DgeMode.unknown:
        return
    if c.dge_mode is DgeMode.none and c.options.transpose_dge_none != "error":
        if c.options.transpose_dge_none == "warn":
            warn_at_kernel(f"dma_transpose: dge_mode none is not a documented value [{RULE}]")
        return
    if c.dge_mode is not DgeMode.hwdge:
        yield Violation(
            AttributeValueError, f"dge_mode {c.dge_mode.name} without a vector offset", "dge_mode",
            expected="unknown or hwdge", got=c.dge_mode.name, rule=f"{RULE}, direct",
        )  # fmt: skip
        return
    if c.target.generation < 3:
        yield Violation(
            UnsupportedError, f"{c.target.name} has no hardware descriptor generation", "dge_mode",
            expected="gen3 or later", got=f"hwdge on {c.target.name}", rule=f"{RULE}, dge_mode",
        )  # fmt: skip
    yield from _two_bytes(c, "hwdge")
    if not _fits_hwdge(c):
        yield Violation(
            ShapeError, f"hwdge does not transpose {c.src.shape}", "src", expected=_hwdge_shapes(c),
            got=f"shape {c.src!r}", hint="leave dge_mode to the compiler", rule=f"{RULE}, direct",
        )  # fmt: skip


def _fits_hwdge(c: Call) -> bool:
    first, last = c.src.shape[0], c.src.shape[-1]
    if c.version < (0, 6):
        return first == 16 and last % 128 == 0
    if c.src.rank == 2:
        return first == 16 and last <= 128
    return first in {1, 2, 4, 8, 16} and first * c.src.shape[-2] % 16 == 0 and last <= 128


def _hwdge_shapes(c: Call) -> str:
    if c.version < (0, 6):
        return "shape[0] 16 and shape[-1] a multiple of 128"
    first = "16" if c.src.rank == 2 else "1, 2, 4, 8 or 16, times shape[-2] a multiple of 16"
    return f"shape[0] {first}; shape[-1] at most 128"


def is_indirect(c: Call) -> Iterable[Violation]:
    """With a vector offset: generation, dge_mode, shapes of src and of the index tile."""
    if not gathers(c):
        return
    wrong = f"{RULE}, indirect"
    if c.target.generation < 3:
        yield Violation(
            UnsupportedError, f"{c.target.name} does not gather while it transposes", "src",
            expected="gen3 or later", got=c.target.name, rule=wrong,
        )  # fmt: skip
    if c.dge_mode not in (DgeMode.unknown, DgeMode.swdge):
        yield Violation(
            AttributeValueError, f"{c.dge_mode.name} does not take a vector offset", "dge_mode",
            expected="unknown or swdge", got=c.dge_mode.name, rule=wrong,
        )  # fmt: skip
    yield from _two_bytes(c, "a gather")
    if c.src.space.on_chip:
        yield Violation(
            MemorySpaceError, f"src is in {c.src.space.name.upper()}", "src", expected="HBM",
            got=f"shape {c.src!r}", rule=wrong,
        )  # fmt: skip
    if not _source_fits(c):
        last = "128" if c.version < (0, 4) else "at most 128"
        ranks = "3-D, " if c.version == (0, 2) else ""
        yield Violation(
            ShapeError, f"src has shape {c.src.shape}", "src",
            expected=f"{ranks}shape[0] a multiple of 16, shape[-1] {last}, and in 4-D shape[1] or "
            "shape[2] 1",
            got=f"shape {c.src!r}", rule=wrong,
        )  # fmt: skip
    index: Spec = c.src.indirect.index
    if not _index_fits(c, index):
        columns = "1" if c.version == (0, 2) else "1, or any with 128 partitions"
        yield Violation(
            ShapeError, f"the index tile is {index!r}", "src",
            expected=f"uint32 in SBUF, 2-D, 16 to 128 partitions in steps of 16, columns {columns}",
            got=repr(index), rule=wrong,
        )  # fmt: skip


def _source_fits(c: Call) -> bool:
    shape = c.src.shape
    fits = shape[0] % 16 == 0 and shape[-1] <= 128
    fits = fits and (len(shape) < 4 or 1 in shape[1:3])
    if c.version < (0, 4):
        fits = fits and shape[-1] == 128
    return fits and (c.version != (0, 2) or len(shape) == 3)


def _index_fits(c: Call, index: Spec) -> bool:
    rows = index.partitions
    fits = index.dtype is uint32 and index.space is MemorySpace.sbuf and index.rank == 2
    fits = fits and 16 <= rows <= 128 and rows % 16 == 0
    return fits and (index.free == 1 or (rows == 128 and c.version != (0, 2)))


def skipping(c: Call) -> bool:
    """oob_mode.skip goes with a dynamic src: a vector offset, from 0.5 on a scalar one too."""
    dynamic = c.src.indirect
    return c.oob_mode is OobMode.error or (
        dynamic is not None and (dynamic.kind == "vector" or c.version >= (0, 5))
    )


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
        "axes": Attr(None, optional(wholes("axes"))),
        "priority": Attr(None, optional(whole("priority"))),
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
