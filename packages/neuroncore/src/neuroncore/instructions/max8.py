"""max8: the eight largest values of each partition."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from neuroncore.enums import ON_CHIP, Engine, MaskBehaviour, MemorySpace
from neuroncore.errors import ShapeError
from neuroncore.instructions._cost import one_pass
from neuroncore.instructions._numerics import reader, writer
from neuroncore.instructions._record import Call, Example, In, Instruction, Out
from neuroncore.instructions._rules import rule, same_partitions, ways
from neuroncore.memory import View


def max8(c: Call) -> Callable[..., None]:
    """dst (P, 8) = the 8 largest elements of each row of src (P, F), largest first.

    Compared in float32, cast to dst's dtype. Free dimensions of src are flattened.
    """
    read, write = reader(c.src, (c.src.partitions, c.src.free)), writer(c.dst)

    def largest(dst: View, src: View) -> None:
        top = np.partition(read(src), -8, axis=1)[:, -8:]
        write(dst, np.ascontiguousarray(np.sort(top, axis=1)[:, ::-1]))

    return largest


def _highest_rank(c: Call) -> int:
    """3 dimensions; documents before 0.4 say 5."""
    return 3 if c.version >= (0, 4) else 5


MAX8 = Instruction(
    name="max8",
    engines=(Engine.vector,),
    operands={"dst": Out("P 8", ON_CHIP), "src": In("P F", ON_CHIP)},
    limits=[
        same_partitions("dst", "src", src="float32[4, 9] sbuf"),
        rule(
            lambda c: 8 <= c.src.free <= 16384,
            ShapeError, "src", "src has {c.src.free} elements per partition", expected="8 to 16384",
            hint="split longer rows and take the largest of the results", section="tile size",
            src="float32[2, 7] sbuf",
        ),
        *ways(
            rule(
                lambda c: c.src.rank <= _highest_rank(c),
                ShapeError, "src", "src has {c.src.rank} dimensions",
                expected=lambda c: f"at most {_highest_rank(c)}",
                hint="reshape it: free dimensions are flattened anyway", section="shapes",
                src="float32[2, 1, 3, 3] sbuf",
            ),
            {"src": "float32[2, 1, 1, 1, 3, 3] sbuf", "version": (0, 3)},
        ),
        rule(
            lambda c: (c.dst.rank, c.dst.free) == (2, 8),
            ShapeError, "dst", "dst has shape {c.dst.shape}", expected="({c.dst.partitions}, 8)",
            section="shapes", dst="float32[2, 7] sbuf",
        ),
    ],
    work=lambda c: one_pass(c, c.src.free),  # N [NKI 0.1 API documents]
    run=max8,
    result=lambda c: ((c.src.partitions, 8), c.src.dtype, MemorySpace.sbuf),
    mask=MaskBehaviour.rectangular,
    examples=[
        Example(
            {"dst": "float32[2, 8] sbuf",
             "src": np.array([[3.0, 1, 4, 1, 5, 9, 2, 6, 5], [0.0, 1, 2, 3, 4, 5, 6, 7, -8]])},
            {"dst": np.array([[9.0, 6, 5, 5, 4, 3, 2, 1], [7.0, 6, 5, 4, 3, 2, 1, 0]])},
        ),
    ],
)  # fmt: skip
