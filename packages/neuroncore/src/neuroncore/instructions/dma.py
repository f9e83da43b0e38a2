"""dma_copy: between HBM and SBUF, also with addresses that are computed on the device.

src and dst pair their elements in row-major order of the two access patterns; only the element
counts must agree. Rows of a vector-offset view start at index[row] times the base row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from neuroncore.alu import ALU_OPS, alu_op
from neuroncore.effects import Effect, reads, writes
from neuroncore.enums import (
    HBM,
    ON_CHIP,
    SBUF,
    DgeMode,
    Engine,
    MaskBehaviour,
    MemorySpace,
    OobMode,
)
from neuroncore.errors import (
    AttributeValueError,
    DTypeError,
    EngineError,
    MemorySpaceError,
    ShapeError,
    UnsupportedError,
    Violation,
)
from neuroncore.instructions._convert import flag, member, optional
from neuroncore.instructions._example_operands import gathering, moving
from neuroncore.instructions._numerics import copying, like, reader, stored, wide, writer
from neuroncore.instructions._record import Attr, Call, Example, In, Instruction, Limit, Out
from neuroncore.instructions._rules import rule
from neuroncore.memory import View, dynamic_rows, resolve_scalar
from neuroncore.memory.dynamic import reject_out_of_bounds
from neuroncore.spec import Spec
from neuroncore.work import MicroOp, Transfer

RULE = "NKI: dma_copy"


def dma_copy(c: Call) -> Callable[..., None]:
    """dst = src, converted through float32 where dtypes differ; 0.2 may add into dst instead."""
    if _is_vector(c.src) or _is_vector(c.dst):
        return _indirect(c)
    if c.dst_rmw_op is not None:
        read, add, write = reader(c.dst), reader(c.src, c.dst.shape), writer(c.dst)
        return lambda dst, src: write(dst, read(dst) + add(src))
    return copying(c.dst, c.src)


def _is_vector(spec: Spec) -> bool:
    return spec.indirect is not None and spec.indirect.kind == "vector"


def _indirect(c: Call) -> Callable[..., None]:
    """Gather rows of src, scatter rows of dst, or both."""
    skip = c.oob_mode is OobMode.skip
    shape = (c.dst if _is_vector(c.dst) else c.src).shape
    convert = _conversion(c)
    add = c.dst_rmw_op is not None

    def rows_of(view: View) -> tuple[np.ndarray, np.ndarray]:
        elements, valid = dynamic_rows(view)
        if not skip and not valid.all():
            reject_out_of_bounds(view, valid)
        return elements, valid

    def gather(src: View) -> tuple[np.ndarray, np.ndarray]:
        if not _is_vector(src.spec):
            return src.array.reshape(shape), np.ones(shape[0], np.bool_)
        elements, valid = rows_of(src)
        return src.storage.flat.view(src.array.dtype)[elements].reshape(shape), valid

    def move(dst: View, src: View) -> None:
        values, valid = gather(src)
        values = convert(values)
        if not _is_vector(dst.spec):
            old = dst.array.reshape(shape)
            keep = valid.reshape((-1,) + (1,) * (len(shape) - 1))
            dst.array[...] = np.where(keep, values, old).reshape(dst.shape)
            return
        elements, inside = rows_of(dst)
        chosen = valid & inside
        flat = dst.storage.flat.view(dst.array.dtype)
        if add:
            np.add.at(flat, elements[chosen], values[chosen])
        else:
            flat[elements[chosen]] = values[chosen]

    return move


def _conversion(c: Call) -> Callable[[np.ndarray], np.ndarray]:
    """Stored elements of src as stored elements of dst."""
    if c.src.dtype is c.dst.dtype:
        return lambda values: values
    widen, store = wide(c.src), stored(c.dst)
    return store if widen is None else lambda values: store(widen(values))


def _is_dynamic(c: Call) -> bool:
    return c.src.indirect is not None or c.dst.indirect is not None


def _dge_is_legal(c: Call) -> Iterable[Violation]:
    mode, gather = c.dge_mode, _is_vector(c.src) or _is_vector(c.dst)
    if mode not in (DgeMode.hwdge, DgeMode.none):
        return
    if mode is DgeMode.hwdge and c.target.generation < 3:
        yield Violation(
            UnsupportedError, f"{c.target.name} has no hardware descriptor generation", "dge_mode",
            expected="gen3 or later", got=f"hwdge on {c.target.name}", rule=f"{RULE}, dge_mode",
        )  # fmt: skip
    if gather:
        yield Violation(
            AttributeValueError, f"{mode.name} does not take a vector offset", "dge_mode",
            expected="unknown or swdge", got=mode.name, rule=f"{RULE}, dge_mode",
        )  # fmt: skip
    elif mode is DgeMode.none and _is_dynamic(c):
        yield Violation(
            AttributeValueError, "dge_mode none needs static addresses", "dge_mode",
            expected="unknown, swdge or hwdge", got="none", rule=f"{RULE}, dge_mode",
        )  # fmt: skip
    if mode is DgeMode.hwdge and c.version >= (0, 3) and c.src.dtype is not c.dst.dtype:
        yield Violation(
            DTypeError, "hwdge moves raw bytes and cannot convert", "src",
            expected=str(c.dst.dtype), got=str(c.src.dtype),
            hint="use .view(dtype) on one side, or another dge_mode", rule=f"{RULE}, dge_mode",
        )  # fmt: skip


def _trigger_is_legal(c: Call) -> Iterable[Violation]:
    trigger = c.attrs["engine"]
    if trigger not in (Engine.unknown, Engine.sync, Engine.scalar):
        yield Violation(
            EngineError, f"the {trigger.name} engine does not trigger this DMA", "engine",
            expected="unknown, sync or scalar", got=trigger.name, rule=f"{RULE}, engine",
        )  # fmt: skip
    if trigger is not Engine.unknown and c.dge_mode is not DgeMode.hwdge:
        yield Violation(
            AttributeValueError, "engine= goes with dge_mode.hwdge only", "engine",
            expected="engine.unknown", got=f"{trigger.name} with {c.dge_mode.name}",
            rule=f"{RULE}, engine",
        )  # fmt: skip
    if c.priority is not None and (c.target.generation < 4 or c.priority not in range(4)):
        yield Violation(
            AttributeValueError, f"priority {c.priority} on {c.target.name}", "priority",
            expected="None, or 0 to 3 on gen4", got=str(c.priority), rule=f"{RULE}, priority",
        )  # fmt: skip


def _rmw_is_legal(c: Call) -> Iterable[Violation]:
    op = c.dst_rmw_op
    if op is not None and (op is not ALU_OPS["add"] or c.oob_mode is OobMode.skip):
        yield Violation(
            AttributeValueError, f"dst_rmw_op {op.name} with oob_mode {c.oob_mode.name}",
            "dst_rmw_op", expected="None or nl.add, with oob_mode.error", got=op.name,
            rule=f"{RULE}, dst_rmw_op",
        )  # fmt: skip
    if op is not None and (_is_vector(c.src) or (_is_vector(c.dst) and c.dst.dtype != c.src.dtype)):
        yield Violation(
            UnsupportedError, "dst_rmw_op with this gather is not modelled", "dst_rmw_op",
            expected="no vector_offset, or one on dst and src of dst's dtype",
            got=f"{c.src!r} into {c.dst!r}",
            rule=f"{RULE}, dst_rmw_op",
        )  # fmt: skip


def _effects(c: Call) -> list[Effect]:
    indices = [f"{n}.index" for n in ("src", "dst") if getattr(c, n).indirect is not None]
    merged = ["dst"] if c.dst_rmw_op is not None else []
    return reads("src", *indices, *merged) + writes("dst")


def contiguous_run(spec: Spec) -> int:
    """Elements that lie one after the other before the address jumps."""
    run = 1
    for size, stride in zip(reversed(spec.shape), reversed(spec.strides), strict=True):
        if size != 1 and stride != run:
            break
        run *= size
    if spec.space.on_chip:  # partitions are separate rows of SBUF
        return min(run, max(1, spec.free))
    return run


def _work(c: Call) -> list[MicroOp]:
    run = min(contiguous_run(c.src), contiguous_run(c.dst))
    width = max(c.src.dtype.itemsize, c.dst.dtype.itemsize)
    chip = c.dst if c.dst.space.on_chip else c.src
    return [
        Transfer(
            bytes=c.dst.size * width,
            descriptors=max(1, c.dst.size // run),
            run_bytes=run * width,
            partitions=chip.partitions if chip.space.on_chip else 0,
            indirect=_is_vector(c.src) or _is_vector(c.dst),
            casts=c.src.dtype is not c.dst.dtype,
        )
    ]


def _covers(c: Call) -> bool:
    return c.dst.indirect is None and c.oob_mode is OobMode.error and c.dst_rmw_op is None


def _chooses(c: Call, views: Mapping[str, Any]) -> np.ndarray | None:
    """With oob_mode.skip, the rows whose indices are in bounds; on a dst view by rows, src's."""
    if c.oob_mode is OobMode.error:
        return None
    kept = np.ones((1,) * c.dst.rank, np.bool_)
    for view in (views["dst"], views["src"]):
        if view.dynamic is None:
            continue
        if view.spec.indirect.kind == "scalar":
            kept = kept & (resolve_scalar(view, skips=True) is not None)
        else:
            valid = dynamic_rows(view)[1].reshape((-1,) + (1,) * (view.ndim - 1))
            kept = kept & np.broadcast_to(valid, view.shape).reshape(c.dst.shape)
    return kept


_RAMP = np.arange(32.0).reshape(4, 8)

_ROWS = gathering("float32[64, 8] hbm", "int32[4, 1] sbuf", 4)

DMA_COPY = Instruction(
    name="dma_copy",
    engines=(Engine.dma,),
    engine_of=lambda c: Engine.dma,
    operands={"dst": Out("any", HBM | SBUF), "src": In("any", HBM | ON_CHIP)},
    attrs={
        "dst_rmw_op": Attr(None, optional(alu_op)),
        "priority": Attr(None, optional(int)),
        "oob_mode": Attr(OobMode.error, member(OobMode, "oob_mode")),
        "dge_mode": Attr(DgeMode.unknown, member(DgeMode, "dge_mode")),
        "engine": Attr(Engine.unknown, member(Engine, "engine")),
        "unique_indices": Attr(True, flag),
    },
    limits=[
        rule(
            lambda c: c.src.size == c.dst.size, ShapeError, "src",
            "src has {it.size} elements, dst {c.dst.size}", expected="{c.dst.size} elements",
            got="{it!r} into {c.dst!r}", section="shapes", src="float32[4, 9] hbm",
            hint="slice both sides to the same size; ragged tiles clamp with min()",
        ),
        rule(
            lambda c: c.src.space is not MemorySpace.psum or c.version <= (0, 2),
            MemorySpaceError, "src", "src is in PSUM", expected="HBM or SBUF",
            hint="copy it to SBUF with nisa.tensor_copy first",
            section=f"{RULE}: no PSUM source since 0.3", src="float32[4, 8] psum",
        ),
        Limit(_dge_is_legal, {"dge_mode": DgeMode.hwdge, "target": "trn1"}),
        Limit(_dge_is_legal, {"dge_mode": DgeMode.hwdge, "src": "bfloat16[4, 8] hbm"}),
        Limit(_trigger_is_legal, {"engine": Engine.vector, "dge_mode": DgeMode.hwdge}),
        Limit(_trigger_is_legal, {"engine": Engine.sync}),
        Limit(_trigger_is_legal, {"priority": 1}),
        Limit(_rmw_is_legal, {"dst_rmw_op": "maximum"}),
        Limit(_dge_is_legal, {"src": _ROWS, "dge_mode": DgeMode.hwdge}),
        Limit(_dge_is_legal, {"src": moving("float32[64, 8] hbm", "int32[1, 1] sbuf", 4),
                              "dge_mode": DgeMode.none}),
        Limit(_rmw_is_legal, {"src": _ROWS, "dst_rmw_op": "add"}),
        Limit(_trigger_is_legal, {"priority": 4, "target": "trn3"}),
    ],
    effects=_effects,
    work=_work,
    run=dma_copy,
    result=like("src"),
    mask=MaskBehaviour.elementwise,
    covers=_covers,
    chooses=_chooses,
    moves_bits=lambda c: c.src.dtype is c.dst.dtype and c.dst_rmw_op is None,
    examples=[
        Example({"dst": "float32[4, 8] sbuf", "src": ("hbm", _RAMP)}, {"dst": _RAMP}),
        Example({"dst": "bfloat16[8, 4] sbuf", "src": ("hbm", _RAMP)},
                {"dst": _RAMP.reshape(8, 4)}, note="row-major pairing; values are converted"),
    ],
)  # fmt: skip
