"""iota and affine_select: patterns generated from affine expressions of the element's position.

The pattern [[step, num], …] (1 to 4 pairs, last one fastest) runs over the free elements:
value = offset + partition · channel_multiplier + Σ step · index, in int32 with wrap-around.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from neuroncore.alu import AluKind, alu_op
from neuroncore.enums import SBUF, Engine, MaskBehaviour, MemorySpace
from neuroncore.errors import AttributeValueError, ShapeError
from neuroncore.instructions._convert import pairs, whole
from neuroncore.instructions._cost import one_pass
from neuroncore.instructions._numerics import like, raw_reader, reader, writer
from neuroncore.instructions._record import Attr, Call, Example, In, Instruction, Limit, Number, Out
from neuroncore.instructions._rules import rule, same_free, same_partitions
from neuroncore.memory import View
from nki_dtypes import cast, int32

_FRONTEND_COMPARES = {"greater", "greater_equal", "equal", "not_equal"}


def affine_values(c: Call) -> np.ndarray:
    """(P, F) int32 values of the pattern."""
    values = np.int64(c.offset) + np.arange(c.dst.partitions).reshape(-1, 1) * c.channel_multiplier
    for step, count in c.pattern:
        values = values[..., None] + np.arange(count) * step
    return values.astype(np.int32).reshape(c.dst.partitions, -1)


def _pattern_size(c: Call) -> int:
    return prod(count for _, count in c.pattern)


def _pattern_fits(**breaks: Any) -> Limit:
    return rule(
        lambda c: _pattern_size(c) == c.dst.free, ShapeError, "pattern",
        lambda c: f"the pattern has {_pattern_size(c)} elements, dst {c.dst.free} free",
        expected="{c.dst.free} elements per partition",
        got=lambda c: str([list(p) for p in c.pattern]), section="pattern", **breaks,
    )  # fmt: skip


PATTERN = {
    "pattern": Attr(((0, 1),), pairs),
    "offset": Attr(0, whole("offset")),
    "channel_multiplier": Attr(0, whole("channel_multiplier")),
}


def iota(c: Call) -> Callable[..., None]:
    """dst[p, i…] = offset + p · channel_multiplier + Σ step · i, cast to dst's dtype."""

    def generate(dst: View) -> None:
        dst.array[...] = cast(affine_values(c), dst.dtype, from_=int32).reshape(dst.shape)

    return generate


IOTA = Instruction(
    name="iota",
    engines=(Engine.gpsimd,),
    operands={"dst": Out("P F", SBUF)},
    attrs=PATTERN,
    limits=[_pattern_fits(pattern=((1, 3),))],
    work=lambda c: one_pass(c, c.dst.free),
    run=iota,
    result=lambda c: (c.dst.shape, c.dst.dtype, MemorySpace.sbuf),
    mask=MaskBehaviour.elementwise,
    examples=[
        Example({"dst": "int32[2, 6] sbuf", "pattern": ((10, 2), (1, 3)), "offset": 5,
                 "channel_multiplier": 100},
                {"dst": np.array([[5, 6, 7, 15, 16, 17], [105, 106, 107, 115, 116, 117]])}),
    ],
)  # fmt: skip


def affine_select(c: Call) -> Callable[..., None]:
    """dst = where(cmp_op(pattern value, 0), on_true_tile, on_false_value)."""
    shape = (c.dst.partitions, c.dst.free)
    compare = c.cmp_op.function
    if c.dst.dtype is c.on_true_tile.dtype:
        read = raw_reader(c.on_true_tile, shape)

        def select(dst: View, on_true_tile: View, on_false_value: float) -> None:
            false = cast(np.float32(on_false_value), dst.dtype).astype(dst.array.dtype)
            chosen = np.where(compare(affine_values(c), 0), read(on_true_tile), false)
            dst.array[...] = chosen.reshape(dst.shape)

        return select
    widen, write = reader(c.on_true_tile, shape), writer(c.dst)

    def select_converted(dst: View, on_true_tile: View, on_false_value: float) -> None:
        keep = compare(affine_values(c), 0)
        write(dst, np.where(keep, widen(on_true_tile), np.float32(on_false_value)))

    return select_converted


def _compares(c: Call) -> bool:
    if c.options.affine_select_compare == "frontend":
        return c.cmp_op.name in _FRONTEND_COMPARES
    return c.cmp_op.kind is AluKind.compare


_TILE = np.arange(16.0).reshape(4, 4)

AFFINE_SELECT = Instruction(
    name="affine_select",
    engines=(Engine.gpsimd,),
    operands={
        "dst": Out("P F", SBUF),
        "on_true_tile": In("P F", SBUF),
        "on_false_value": Number(),
    },
    attrs=PATTERN | {"cmp_op": Attr("equal", alu_op)},
    limits=[
        same_partitions("dst", "on_true_tile", on_true_tile="float32[8, 4] sbuf"),
        same_free("dst", "on_true_tile", on_true_tile="float32[4, 5] sbuf"),
        _pattern_fits(pattern=((1, 3),)),
        rule(
            _compares,
            AttributeValueError, "cmp_op", "{c.cmp_op.name} is not a comparison here",
            expected=", ".join(sorted(_FRONTEND_COMPARES)), section="cmp_op", cmp_op="add",
        ),
    ],
    work=lambda c: one_pass(c, c.dst.free),
    run=affine_select,
    result=like("on_true_tile"),
    mask=MaskBehaviour.elementwise,
    examples=[
        Example({"dst": "float32[4, 4] sbuf", "pattern": ((-1, 4),), "channel_multiplier": 1,
                 "on_true_tile": _TILE, "on_false_value": -1.0, "cmp_op": "greater_equal"},
                {"dst": np.where(np.tri(4) > 0, _TILE, -1.0)}, note="a causal mask: row >= column"),
    ],
)  # fmt: skip
