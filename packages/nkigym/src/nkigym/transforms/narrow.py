"""narrow: a wide instruction becomes a loop around narrower ones, as `widen` found them.

                                               for n in range(4):
load(t[:, 0:4, :], x[128*m …, 0:2048])     →       load(t[:, n, :], x[128*m …, 512*n …])
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from neuroncore.program import Access, Affine, Call, Loop, Program
from nkigym.analysis.claims import Claims, StepResult
from nkigym.analysis.disjointness import LATER
from nkigym.analysis.legality import check_legal
from nkigym.kernels.step import Path, TransformError, TransformStep
from nkigym.kernels.tree import replaced, statement_at, unused_name, with_operands
from nkigym.transforms._transform import Transform
from nkigym.transforms.widen import WIDE, Wide, rule_of, writing

LEAST = 128
"""Elements beside each other that listed steps do not cut."""
LIKE = "part"
"""What the variable of the new loop is called, and a number."""


def _narrow(program: Program, step: TransformStep) -> StepResult:
    call = statement_at(program, step.at)
    if not isinstance(call, Call):
        raise TransformError("not an instruction")
    rule, trips = rule_of(call), step.option("trips")
    loop = Loop(unused_name(program, LIKE), 0, trips, (), 1, call.origin)
    narrow = narrower(call, loop, rule)
    claims = Claims(program, step.at)
    call_accesses = writing(claims.accesses((narrow,)))
    claims.require_disjoint(call_accesses, call_accesses, ((loop, LATER),), "parts need an order")
    inside = {r.variable: range(r.start, r.stop, r.step) for r in claims.around}
    check_legal(narrow, {**inside, loop.variable: loop.values}, claims.reader.buffers, program)
    made = Loop(loop.variable, 0, trips, (narrow,), 1, call.origin)
    return claims.result(replaced(program, step.at, (made,)))


def narrower(call: Call, loop: Loop, rule: Wide) -> Call:
    """The part of a call that an iteration of the loop does: its outermost free dimension cut."""
    cut: dict[str, Access] = {}
    for name in rule.grow:
        value = call.operands[name]
        if not isinstance(value, Access) or value.indirect is not None:
            raise TransformError(f"{name} of {call.instruction} is not a tile with a fixed place")
        cut[name] = value
    if len({access.shape[1:] for access in cut.values()}) != 1:
        raise TransformError(f"tiles of {call.instruction} are not of one form")
    parts = {name: _part(access, loop) for name, access in cut.items()}
    return with_operands(call, {**call.operands, **parts})


def _part(access: Access, loop: Loop) -> Access:
    p, *free = access.shape
    first, *strides = access.strides
    if not free or loop.trips < 2 or free[0] % loop.trips or free[0] == loop.trips == prod(free):
        raise TransformError(f"{loop.trips} is not a number of parts for a tile of {access.shape}")
    size = free[0] // loop.trips
    offset = access.offset + Affine.variable(loop.variable, size * strides[0])
    if size > 1 or len(free) == 1:
        free, strides = [size, *free[1:]], strides
    else:
        free, strides = free[1:], strides[1:]
    return Access(access.buffer, offset, (p, *free), (first, *strides), access.dtype)


def _narrows(program: Program, at: Path, call: Call) -> Iterator[TransformStep]:
    dst = call.operands.get("dst") if call.instruction in WIDE else None
    if not isinstance(dst, Access) or len(dst.shape) < 2:
        return
    extent, deep = dst.shape[1], len(dst.shape) > 2
    numbers = {2, extent} if deep else {2, 4}
    for trips in sorted(numbers):
        if trips > 1 and extent % trips == 0 and (deep or extent // trips >= LEAST):
            yield TransformStep("narrow", at, (("trips", trips),))


NARROW = Transform(
    "narrow",
    "a wide instruction as a loop around narrower ones",
    _narrows,
    _narrow,
    (Call,),
    rank=21,
)
