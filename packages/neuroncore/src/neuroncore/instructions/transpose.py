"""nc_transpose: data (P, F) into dst (F, P), on TensorE or, up to 32 x 32, on VectorE."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from neuroncore.enums import ON_CHIP, Engine, MaskBehaviour, MemorySpace
from neuroncore.errors import DTypeError, EngineError, ShapeError, Violation
from neuroncore.instructions._accumulate import mark_written
from neuroncore.instructions._convert import as_engine
from neuroncore.instructions._cost import one_pass
from neuroncore.instructions._numerics import Result, transpose_into
from neuroncore.instructions._record import Attr, Call, Example, In, Instruction, Limit, Out
from neuroncore.instructions._rules import rule
from neuroncore.memory import View
from neuroncore.targets import PARTITIONS, QUADRANT
from neuroncore.work import LoadStationary, MicroOp, MultiplyMoving


def nc_transpose(c: Call) -> Callable[..., None]:
    """dst = dataᵀ, free dimensions flattened first; no dtype change."""
    shape = (c.data.partitions, c.data.free)
    in_psum = c.dst.space is MemorySpace.psum and c.engine is Engine.tensor
    is_flat = c.dst.rank == 2

    def transpose(dst: View, data: View) -> None:
        rows = data.array.reshape(shape)
        if is_flat:
            transpose_into(dst.array, rows)
        else:
            dst.array[...] = rows.T.reshape(dst.shape)
        if in_psum:
            mark_written(dst)

    return transpose


def _transpose_engine(c: Call) -> Engine:
    """Up to 0.3 chosen by shape, from 0.4 by dst's memory; 0.2 and 0.3 ignored engine=."""
    asked = c.attrs["engine"]
    if asked is not Engine.unknown and c.version not in ((0, 2), (0, 3)):
        return asked
    small = c.data.partitions <= QUADRANT and c.data.free <= QUADRANT
    if c.version >= (0, 4):
        return Engine.tensor if c.dst.space is MemorySpace.psum else Engine.vector
    tensor = c.dst.space is MemorySpace.psum and c.data.space is MemorySpace.sbuf
    return Engine.tensor if tensor or not small else Engine.vector


def _transpose_limits(c: Call) -> Iterable[Violation]:
    most = PARTITIONS if c.engine is Engine.tensor else QUADRANT
    if c.data.partitions > most or c.data.free > most:
        yield Violation(
            ShapeError, f"the {c.engine.name} engine transposes at most {most} x {most}", "data",
            expected=f"at most ({most}, {most})", got=f"shape {c.data!r}",
            hint="transpose tile by tile", rule="NKI: nc_transpose, tile limits",
        )  # fmt: skip
    if (c.dst.partitions, c.dst.free) != (c.data.free, c.data.partitions):
        yield Violation(
            ShapeError, "dst is not the transposed shape", "dst",
            expected=f"({c.data.free}, {c.data.partitions})", got=f"shape {c.dst!r}",
            rule="NKI: nc_transpose, shapes",
        )  # fmt: skip
    if c.engine is Engine.tensor and (c.data.space, c.dst.space) != (
        MemorySpace.sbuf,
        MemorySpace.psum,
    ):
        yield Violation(
            EngineError, "the tensor engine transposes from SBUF into PSUM", "dst",
            expected="data in SBUF, dst in PSUM", got=f"{c.data!r} into {c.dst!r}",
            rule="NKI: nc_transpose, memories",
        )  # fmt: skip


def _transpose_work(c: Call) -> list[MicroOp]:
    if c.engine is not Engine.tensor:
        return one_pass(c, c.data.free)
    p, f = c.data.partitions, c.data.free
    cycles = max(p, min(64, f))
    return [
        LoadStationary(p, max(1, p // 4)),
        MultiplyMoving(f, cycles, 0),
    ]


def _transpose_result(c: Call) -> Result:
    small = c.data.partitions <= 32 and c.data.free <= 32
    space = MemorySpace.sbuf if small and c.attrs["engine"] is Engine.vector else MemorySpace.psum
    return (c.data.free, c.data.partitions), c.data.dtype, space


_DATA = np.arange(12.0).reshape(4, 3)

NC_TRANSPOSE = Instruction(
    name="nc_transpose",
    engines=(Engine.tensor, Engine.vector),
    engine_of=_transpose_engine,
    operands={"dst": Out("F P", ON_CHIP), "data": In("P F", ON_CHIP)},
    attrs={"engine": Attr(Engine.unknown, as_engine)},
    limits=[
        Limit(_transpose_limits, {"data": "float32[4, 129] sbuf", "dst": "float32[128, 4] psum"}),
        Limit(_transpose_limits, {"dst": "float32[3, 5] psum"}),
        Limit(_transpose_limits, {"data": "float32[4, 3] psum", "engine": Engine.tensor}),
        rule(
            lambda c: c.dst.dtype is c.data.dtype,
            DTypeError, "dst", "dst is {c.dst.dtype}, data {c.data.dtype}",
            expected="{c.data.dtype}", got="{c.dst.dtype}", section="dtypes",
            dst="bfloat16[3, 4] psum",
        ),
        Limit(_transpose_limits, {"data": "float32[4, 33] sbuf", "dst": "float32[33, 4] sbuf",
                                   "engine": Engine.vector}),
    ],
    work=_transpose_work,
    run=nc_transpose,
    result=_transpose_result,
    mask=MaskBehaviour.rectangular,
    moves_bits=lambda c: True,
    examples=[Example({"dst": "float32[3, 4] psum", "data": _DATA}, {"dst": _DATA.T})],
)  # fmt: skip
