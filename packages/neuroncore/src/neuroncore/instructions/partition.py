"""tensor_partition_reduce and nc_stream_shuffle: work across partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from neuroncore.alu import AVERAGE, AluOp, alu_op
from neuroncore.enums import ON_CHIP, SBUF, Engine, MaskBehaviour, MemorySpace
from neuroncore.errors import AccessError, AttributeValueError, ShapeError, Violation
from neuroncore.instructions._cost import one_pass
from neuroncore.instructions._limits import start_partition
from neuroncore.instructions._numerics import like, raw_reader, reader, writer
from neuroncore.instructions._record import Attr, Call, Example, In, Instruction, Limit, Out
from neuroncore.instructions._rules import (
    integers_only,
    known_to_version,
    one_of,
    rule,
    same_dtype,
    same_free,
)
from neuroncore.memory import View
from neuroncore.options import Options
from neuroncore.targets import QUADRANT

# -- tensor_partition_reduce ----------------------------------------------------------------------

_REDUCTIONS = ("add", "maximum", "bitwise_or", "bitwise_and")


def _reduction(given: Any) -> AluOp:
    name = given if isinstance(given, str) else getattr(given, "__name__", "")
    return AVERAGE if given is AVERAGE or name == "average" else alu_op(given)


def tensor_partition_reduce(c: Call) -> Callable[..., None]:
    """dst (1, F) = op over the partitions of data (P, F): in float32, or on raw bits."""
    shape = (c.data.partitions, c.data.free)
    function: Any = c.op.function
    if c.op.is_bitvec:
        bits = raw_reader(c.data, shape)

        def combine(dst: View, data: View) -> None:
            dst.array[...] = function.reduce(bits(data), axis=0).reshape(dst.shape)

        return combine
    read, write = reader(c.data, shape), writer(c.dst)
    count = np.float32(shape[0] if c.op is AVERAGE else 1)

    def reduce(dst: View, data: View) -> None:
        write(dst, function.reduce(read(data), axis=0, dtype=np.float32) / count)

    return reduce


_DATA = np.arange(12.0).reshape(3, 4)

TENSOR_PARTITION_REDUCE = Instruction(
    name="tensor_partition_reduce",
    engines=(Engine.gpsimd,),
    operands={"dst": Out("1 F", SBUF), "data": In("P F", SBUF)},
    attrs={"op": Attr(convert=_reduction)},
    limits=[
        same_free("dst", "data", data="float32[3, 5] sbuf"),
        rule(
            lambda c: c.dst.partitions == 1,
            ShapeError, "dst", "dst has {c.dst.partitions} partitions",
            expected="1 partition: (1, {c.data.free})", section="shapes", dst="float32[3, 4] sbuf",
        ),
        one_of("op", *_REDUCTIONS, "average", op="minimum"),
        known_to_version("op", op="average", version=(0, 4)),
        integers_only("op", "dst", "data", op="bitwise_or"),
    ],
    # No figure is published for it; assumed to stream F elements like other GpSimdE instructions.
    work=lambda c: one_pass(c, c.data.free),
    run=tensor_partition_reduce,
    result=lambda c: ((1, *c.data.shape[1:]), c.data.dtype, MemorySpace.sbuf),
    mask=MaskBehaviour.reduction,
    examples=[
        Example({"dst": "float32[1, 4] sbuf", "data": _DATA, "op": "add"}, {"dst": _DATA.sum(0)}),
        Example({"dst": "int8[1, 2] sbuf", "op": "bitwise_or",
                 "data": ("sbuf int8", np.array([[1, 8], [2, 8], [4, 0]]))},
                {"dst": np.array([[7, 8]])}),
        Example({"dst": "float32[1, 4] sbuf", "data": _DATA[[0, 2]], "op": "average"},
                {"dst": _DATA[1]}),
    ],
)  # fmt: skip


# -- nc_stream_shuffle ----------------------------------------------------------------------------

KEEP = 255
"""The mask entry that leaves an output partition unmodified."""


def nc_stream_shuffle(c: Call) -> Callable[..., None]:
    """dst[32 q + i] = src[32 q + mask[i]] in every quadrant q; 255 keeps dst[32 q + i].

    src is read before dst is written, so both may be the same tile.
    """
    targets, sources = _moves(c)
    shape = (c.src.partitions, *c.dst.shape[1:])
    read = raw_reader(c.src, shape)

    def shuffle(dst: View, src: View) -> None:
        dst.array[targets] = read(src)[sources]

    return shuffle


def _moves(c: Call) -> tuple[np.ndarray, np.ndarray]:
    """The rows of dst that are written, and the rows of src that they get."""
    rows = np.arange(c.dst.partitions)
    entries = np.array(c.shuffle_mask)[rows % QUADRANT]
    targets = rows[entries != KEEP]
    return targets, targets - targets % QUADRANT + entries[targets]


def _chooses(c: Call, views: Mapping[str, Any]) -> np.ndarray:
    """The rows whose mask entry names a partition."""
    chosen = np.zeros((c.dst.partitions,) + (1,) * (c.dst.rank - 1), np.bool_)
    chosen[_moves(c)[0]] = True
    return chosen


def _mask(value: Any) -> tuple[int, ...]:
    """32 entries, each 0 to 31 or 255."""
    try:
        entries = tuple(int(v) for v in value)
    except (TypeError, ValueError):
        entries = ()
    if len(entries) == QUADRANT and all(v in range(QUADRANT) or v == KEEP for v in entries):
        return entries
    raise AttributeValueError(
        "shuffle_mask is not a list of 32 partitions",
        expected="32 ints, each 0 to 31, or 255 to keep dst",
        got=repr(value)[:80],
        operand="shuffle_mask",
        rule="NKI: nc_stream_shuffle, shuffle_mask",
    )


def _sources_exist(c: Call) -> Iterable[Violation]:
    _, sources = _moves(c)
    if sources.size and sources.max() >= c.src.partitions:
        yield Violation(
            AccessError, f"the mask reads partition {sources.max()} of src", "shuffle_mask",
            expected=f"partitions 0 to {c.src.partitions - 1}", got=f"shape {c.src!r}",
            rule="NKI: nc_stream_shuffle, shuffle_mask",
        )  # fmt: skip


def _starts_fit(c: Call) -> Iterable[Violation]:
    """Both operands are placed as if they had all partitions of the quadrants in use."""
    most = max(c.src.partitions, c.dst.partitions)
    active = -(-most // QUADRANT) * QUADRANT
    for name in ("dst", "src"):
        yield from start_partition(c, name, c.tiles[name], active)


_TALL = np.arange(64.0).reshape(32, 2)
_SWAP = tuple(i ^ 1 for i in range(QUADRANT))

NC_STREAM_SHUFFLE = Instruction(
    name="nc_stream_shuffle",
    engines=(Engine.vector,),
    operands={"dst": Out("P F", ON_CHIP), "src": In("P F", ON_CHIP)},
    attrs={"shuffle_mask": Attr(tuple(range(QUADRANT)), _mask)},
    limits=[
        same_free("dst", "src", src="float32[32, 3] sbuf"),
        same_dtype("src", dst="bfloat16[32, 2] sbuf"),
        Limit(_sources_exist, {"src": "float32[4, 2] sbuf"}),
        Limit(_starts_fit, {"src": "float32[32, 2] sbuf @32", "dst": "float32[64, 2] sbuf",
                            "options": Options(start_partition="error")}),
    ],
    work=lambda c: one_pass(c, c.dst.free),  # [NKI 0.1 API documents]
    run=nc_stream_shuffle,
    result=like("dst"),
    covers=lambda c: KEEP not in c.shuffle_mask,
    chooses=_chooses,
    moves_bits=lambda c: True,
    examples=[
        Example({"dst": "float32[32, 2] sbuf", "src": _TALL, "shuffle_mask": _SWAP},
                {"dst": _TALL[list(_SWAP)]}),
        Example({"dst": "float32[32, 2] sbuf", "src": np.array([[1.0, 2.0]]),
                 "shuffle_mask": (0,) * QUADRANT},
                {"dst": np.tile([1.0, 2.0], (32, 1))}, note="one partition to a whole quadrant"),
    ],
)  # fmt: skip
