"""tensor_reduce: along trailing free axes.

data (P, F…), dst (P, kept…); axis names trailing dimensions up to the last one, never 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from neuroncore.alu import AluKind, alu_op
from neuroncore.enums import ON_CHIP, Engine, MaskBehaviour, MemorySpace
from neuroncore.errors import AttributeValueError, ShapeError
from neuroncore.instructions._convert import axes, flag
from neuroncore.instructions._cost import one_pass
from neuroncore.instructions._numerics import Result, raw_reader, reader, rounds, writer
from neuroncore.instructions._record import Attr, Call, Example, In, Instruction, Out
from neuroncore.instructions._rules import integers_only, rule, same_partitions
from neuroncore.memory import View
from neuroncore.work import MicroOp
from nki_dtypes import bfloat16


def reduced_axes(c: Call) -> tuple[int, ...]:
    """The axes as non-negative numbers, ascending.

    Up to 0.2, axis=1 also meant the last dimension of 3-D and 4-D tiles (fixed in 0.3).
    """
    rank = c.data.rank
    if c.version == (0, 2) and c.axis == (1,) and rank > 2:
        return (rank - 1,)
    return tuple(sorted(a + rank if a < 0 else a for a in c.axis))


def _is_trailing(c: Call) -> bool:
    found = reduced_axes(c)
    rank = c.data.rank
    return bool(found) and found[0] > 0 and found == tuple(range(rank - len(found), rank))


def kept_shape(c: Call) -> tuple[int, ...]:
    """The result's shape: reduced axes dropped, or 1 with keepdims; at least (P, 1)."""
    gone = set(reduced_axes(c))
    if c.keepdims:
        return tuple(1 if d in gone else n for d, n in enumerate(c.data.shape))
    kept = tuple(n for d, n in enumerate(c.data.shape) if d not in gone)
    return kept if len(kept) > 1 else (*kept, 1)


def tensor_reduce(c: Call) -> Callable[..., None]:
    """dst = op over `axis` of data, in float32; negated at the end when asked."""
    along = reduced_axes(c)
    axis: Any = along[0] if len(along) == 1 else along
    if c.op.is_bitvec:
        bits = partial(c.op.function.reduce, axis=axis)
        read_bits = raw_reader(c.data)

        def raw(dst: View, data: View) -> None:
            dst.array[...] = bits(read_bits(data)).reshape(dst.array.shape)

        return raw
    read, total = reader(c.data), _reduction(c, axis)
    if not rounds(c.dst) and not c.negate and c.op.kind is AluKind.arithmetic:
        flat = tuple(n for d, n in enumerate(c.data.shape) if d not in along)

        def into(dst: View, data: View) -> None:
            total(read(data), out=dst.array.reshape(flat))

        if c.dst.free_is_contiguous:  # the reshape is a view
            return into
    write, sign = writer(c.dst), np.float32(-1 if c.negate else 1)

    def rounded(dst: View, data: View) -> None:
        write(dst, total(read(data)) * sign)

    return rounded


def _reduction(c: Call, axis: Any) -> Callable[..., np.ndarray]:
    """Reduces float32 values. Subtraction takes the first element minus the others, in order."""
    reduce = partial(c.op.function.reduce, dtype=_dtype_of(c))
    if c.op.function is np.subtract and isinstance(axis, tuple):  # NumPy: one axis at a time
        flat = (*c.data.shape[: axis[0]], -1)
        return lambda values, out=None: reduce(values.reshape(flat), axis=axis[0], out=out)
    return partial(reduce, axis=axis)


def _dtype_of(c: Call) -> Any:
    return np.float32 if c.op.kind is AluKind.arithmetic else None


def _work(c: Call) -> list[MicroOp]:
    """N/2 for bf16 in and out with add or maximum, otherwise N [NKI 0.1 API documents]."""
    fast = c.data.dtype is bfloat16 and c.dst.dtype is bfloat16
    fast = fast and c.op.name in {"add", "maximum"}
    return one_pass(c, c.data.free / (2 if fast else 1))


def _result(c: Call) -> Result:
    return kept_shape(c), c.data.dtype, MemorySpace.sbuf


_RAMP = np.arange(32.0).reshape(4, 8)

TENSOR_REDUCE = Instruction(
    name="tensor_reduce",
    engines=(Engine.vector,),
    operands={"dst": Out("P R", ON_CHIP), "data": In("P F", ON_CHIP)},
    attrs={
        "op": Attr(convert=alu_op),
        "axis": Attr(1, axes),
        "negate": Attr(False, flag),
        "keepdims": Attr(False, flag),
    },
    limits=[
        rule(
            _is_trailing,
            ShapeError, "axis", "axis {c.axis} is not the trailing free axes",
            expected=lambda c: f"axes up to {c.data.rank - 1}, without gaps, never 0",
            got="axis {c.axis} of shape {c.data.shape}",
            hint="the partition axis is reduced by nc_matmul with ones, or after nc_transpose",
            section="axis", axis=0,
        ),
        same_partitions("dst", "data", data="float32[8, 8] sbuf"),
        rule(
            lambda c: not _is_trailing(c) or c.dst.free == max(1, _kept(c)),
            ShapeError, "dst", "dst has {c.dst.free} elements per partition",
            expected=lambda c: f"{max(1, _kept(c))}: shape {kept_shape(c)}", section="shapes",
            dst="float32[4, 2] sbuf",
        ),
        rule(
            lambda c: c.op.reduces and c.op.first_generation == 2,
            AttributeValueError, "op", "{c.op.name} does not reduce",
            expected="add, subtract, multiply, maximum, minimum, logical_* or bitwise_*",
            section="op", op="power",
        ),
        rule(
            lambda c: not c.negate or c.op.kind is AluKind.arithmetic,
            AttributeValueError, "negate", "negate does not go with {c.op.name}",
            expected="an arithmetic operation", got="{c.op.name}", section="negate",
            op="logical_and", negate=True,
        ),
        integers_only("op", "dst", "data", op="bitwise_and"),
    ],
    work=_work,
    run=tensor_reduce,
    result=_result,
    mask=MaskBehaviour.reduction,
    gathers=("dst", "data"),
    examples=[
        Example({"dst": "float32[4, 1] sbuf", "data": _RAMP, "op": "add", "axis": 1},
                {"dst": _RAMP.sum(1, keepdims=True)}),
        Example({"dst": "float32[4, 1] sbuf", "data": _RAMP, "op": "maximum", "axis": (1,),
                 "negate": True, "keepdims": True}, {"dst": -_RAMP.max(1, keepdims=True)}),
    ],
)  # fmt: skip


def _kept(c: Call) -> int:
    gone = set(reduced_axes(c))
    return int(
        np.prod([n for d, n in enumerate(c.data.shape) if d > 0 and d not in gone], dtype=int)
    )
