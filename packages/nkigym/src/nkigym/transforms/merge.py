"""merge: two neighbouring instructions become one wider instruction.

    nc_matmul(acc[:, 0:256], a, b[:, 0:256])
    nc_matmul(acc[:, 256:512], a, b[:, 256:512])   →   nc_matmul(acc[:, 0:512], a, b[:, 0:512])

As `widen` does for a loop of two iterations: sums into PSUM merge like everything else.
"""

from __future__ import annotations

from collections.abc import Iterable

from neuroncore.program import Access, Affine, Call, Loop, Program
from nkigym.analysis.claims import Claims, StepResult
from nkigym.analysis.legality import check_legal
from nkigym.kernels.step import Path, TransformError, TransformStep
from nkigym.kernels.tree import (
    block_of,
    following,
    loops_around,
    statement_at,
    with_block,
    with_offset,
    with_operands,
)
from nkigym.transforms._transform import Transform
from nkigym.transforms.widen import WIDE, rule_of, wider, writing

SIDE = "which of two"
"""The variable that selects one of the two instructions; it belongs to no loop."""


def _merge(program: Program, step: TransformStep) -> StepResult:
    first, block, n = statement_at(program, step.at), block_of(program, step.at), step.at[-1]
    m = following(block, n)
    second = None if m is None else block[m]
    if not isinstance(first, Call) or not isinstance(second, Call) or m is None:
        raise TransformError("two neighbouring instructions are needed")
    rule = rule_of(first)
    if (first.instruction, first.attrs) != (second.instruction, second.attrs):
        raise TransformError(
            f"{first.instruction} and {second.instruction} differ in more than tiles"
        )
    operands = {name: _both(a, second.operands[name]) for name, a in first.operands.items()}
    claims = Claims(program, step.at)
    claims.require_disjoint(
        writing(claims.accesses((first,))), writing(claims.accesses((second,))), (),
        "one needs the other",
    )  # fmt: skip
    pair = Loop(SIDE, 0, 2, ())
    wide = wider(with_operands(first, operands), pair, rule)
    ranges = {loop.variable: loop.values for loop in loops_around(program, step.at)}
    check_legal(wide, ranges, claims.reader.buffers, program)
    between = block[n + 1 : m]
    return claims.result(
        with_block(program, step.at, (*block[:n], *between, wide, *block[m + 1 :]))
    )


def _both(a: Access | float | None, b: Access | float | None) -> Access | float | None:
    """The operand of one as a function of SIDE."""
    if not isinstance(a, Access) or not isinstance(b, Access):
        if type(a) is not type(b) or a != b:
            raise TransformError(f"an operand is {a} in one and {b} in the other")
        return a
    if (a.buffer, a.shape, a.strides, a.dtype, a.indirect) != (
        b.buffer, b.shape, b.strides, b.dtype, b.indirect
    ):  # fmt: skip
        raise TransformError(f"{a.buffer} and {b.buffer} are not tiles of one form")
    distance = b.offset - a.offset
    if not distance.is_constant:
        raise TransformError(f"tiles of {a.buffer} have no fixed distance")
    return with_offset(a, a.offset + Affine.variable(SIDE, distance.constant))


def _merges(program: Program, at: Path, call: Call) -> Iterable[TransformStep]:
    if call.instruction not in WIDE:
        return ()
    block = block_of(program, at)
    m = following(block, at[-1])
    other = None if m is None else block[m]
    is_like = isinstance(other, Call) and other.instruction == call.instruction
    return (TransformStep("merge", at),) if is_like else ()


MERGE = Transform(
    "merge", "an instruction and the next like it as a wider one", _merges, _merge, (Call,), rank=19
)
