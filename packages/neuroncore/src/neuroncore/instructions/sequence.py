"""sequence_bounds: where the run of equal segment ids around each element begins and ends."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from neuroncore.enums import SBUF, Engine, MemorySpace
from neuroncore.errors import AttributeValueError, PartitionError, ShapeError
from neuroncore.instructions._cost import one_pass
from neuroncore.instructions._numerics import raw_reader, writer
from neuroncore.instructions._record import Call, Example, In, Instruction, Out
from neuroncore.instructions._rules import rule
from neuroncore.memory import View
from nki_dtypes import float32, int32

RULE = "NKI: sequence_bounds"
PADDING = 0


def sequence_bounds(c: Call) -> Callable[..., None]:
    """dst[0, 0, i], dst[0, 1, i] = first and past-the-last place of the run of equal ids around i.

    segment_ids (1, n) are not negative; padding, id 0, gives (n, -1). dst is (1, 2, n).
    """
    n = c.segment_ids.free
    read, write = raw_reader(c.segment_ids, (n,)), writer(c.dst)

    def find(dst: View, segment_ids: View) -> None:
        ids = read(segment_ids)
        if (ids < 0).any():
            raise AttributeValueError(
                f"segment id {ids.min():g}", expected="ids of 0 (padding) and above",
                got=f"{ids.min():g} at place {int(ids.argmin())}", operand="segment_ids",
                instruction="sequence_bounds", rule=RULE,
            )  # fmt: skip
        write(dst, np.where(ids == PADDING, [[n], [-1]], _bounds(ids)).astype(np.float32))

    return find


def _bounds(ids: np.ndarray) -> np.ndarray:
    """(2, n): begin and end of each element's run."""
    begins = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
    ends = np.append(begins[1:], len(ids))
    run = np.zeros(len(ids), np.intp)
    run[begins[1:]] = 1
    run = run.cumsum()
    return np.stack([begins[run], ends[run]])


_IDS = np.array([[0, 1, 1, 2, 2, 2, 0, 3, 3]])
_BOUNDS = np.array([[9, 1, 1, 3, 3, 3, 9, 7, 7], [-1, 3, 3, 6, 6, 6, -1, 9, 9]])
_KINDS = frozenset({float32, int32})

SEQUENCE_BOUNDS = Instruction(
    name="sequence_bounds",
    engines=(Engine.gpsimd,),
    operands={
        "dst": Out("1 2 N", SBUF, dtypes=_KINDS),
        "segment_ids": In("1 N", SBUF, dtypes=_KINDS),
    },
    limits=[
        rule(
            lambda c: c.segment_ids.partitions == 1,
            PartitionError, "segment_ids", "segment_ids has {c.segment_ids.partitions} partitions",
            expected="1 partition", section="shapes", segment_ids="int32[2, 9] sbuf",
        ),
        rule(
            lambda c: c.dst.shape == (1, 2, c.segment_ids.free),
            ShapeError, "dst", "dst has shape {c.dst.shape}",
            expected="(1, 2, {c.segment_ids.free})", section="shapes", dst="int32[1, 18] sbuf",
        ),
    ],
    # No figure is published for it; assumed to stream its elements once.
    work=lambda c: one_pass(c, c.segment_ids.free),
    run=sequence_bounds,
    result=lambda c: ((1, 2, c.segment_ids.free), c.segment_ids.dtype, MemorySpace.sbuf),
    examples=[
        Example({"dst": "int32[1, 2, 9] sbuf", "segment_ids": ("sbuf int32", _IDS)},
                {"dst": _BOUNDS[None]}),
    ],
)  # fmt: skip
