"""bypass and direct: without a copy.

    tensor_copy(t, product)                               tensor_copy(t, e)
    use(t)                   →   use(product)   make(e);  use(t)               →   make(t); use(t)

`bypass` lets those who read the copy read its source; `direct` lets those who make the source make
the copy, where nobody else reads the source. Both tiles are of this block, and copied whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from neuroncore.program import Access, Allocate, Buffer, Call, Loop, Program, Statement
from nki_dtypes import float32
from nkigym.loops.legal import refuse_illegal
from nkigym.loops.step import Path, Refused, Step
from nkigym.loops.touches import READ, WRITE, Touch
from nkigym.loops.transform import Claims, Taken, Transform
from nkigym.loops.tree import (
    Body,
    allocated,
    block_of,
    buffers_of,
    loops_around,
    renamed,
    statement_at,
    with_block,
)

ROUNDING = frozenset({
    "activation", "reciprocal", "scalar_tensor_tensor", "tensor_copy", "tensor_scalar",
    "tensor_tensor",
})  # fmt: skip
"""Instructions that compute in float32 and round when they write."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of all of one tile to all of another, statement `at` of its block."""

    at: int
    block: Body
    source: Buffer
    into: Buffer
    claims: Claims

    def touches(self, name: str) -> Iterator[tuple[int, Touch]]:
        """What other statements of the block do to a tile."""
        for n, statement in enumerate(self.block):
            for touch in self.claims.touches((statement,)) if n != self.at else ():
                if touch.buffer == name:
                    yield n, touch


def _copy(program: Program, step: Step) -> Copy:
    call = statement_at(program, step.at)
    if not isinstance(call, Call) or call.instruction != "tensor_copy":
        raise Refused("it is no copy")
    claims, block = Claims(program, step.at), block_of(program, step.at)
    source, into = call.operands["src"], call.operands["dst"]
    assert isinstance(source, Access) and isinstance(into, Access)
    a, b = claims.reader.buffers[source.buffer], claims.reader.buffers[into.buffer]
    if (a.shape[0], a.row) != (b.shape[0], b.row) or not (
        _is_whole(source, a) and _is_whole(into, b)
    ):
        raise Refused(f"{a.name} is not copied whole to {b.name}")
    if a.address or b.address:
        raise Refused("a tile has a fixed place")
    return Copy(step.at[-1], block, a, b, claims)


def _is_whole(access: Access, buffer: Buffer) -> bool:
    """Whether it names each element once, in the order in which they lie."""
    if access.size != buffer.size or access.dtype is not None or access.offset.terms:
        return False
    step = 1
    for count, stride in zip(reversed(access.shape), reversed(access.strides), strict=True):
        if count > 1 and stride != step:
            return False
        step *= count
    return access.indirect is None


def _bypass(program: Program, step: Step) -> Taken:
    copy = _copy(program, step)
    if copy.source.dtype != copy.into.dtype:
        raise Refused(f"{copy.into.name} is in {copy.into.dtype}, not {copy.source.dtype}")
    if copy.into.name not in allocated(copy.block):
        raise Refused(f"{copy.into.name} is of an outer block")
    for n, touch in copy.touches(copy.into.name):
        if touch.kind != READ or n < copy.at:
            raise Refused(f"{copy.into.name} is not made by the copy alone")
    if any(touch.kind != READ and n > copy.at for n, touch in copy.touches(copy.source.name)):
        raise Refused(f"{copy.source.name} is written after the copy")
    return _without(program, step, copy, copy.into.name, copy.source.name)


def _direct(program: Program, step: Step) -> Taken:
    copy = _copy(program, step)
    source, into = copy.source, copy.into
    made = allocated(copy.block)
    if source.name not in made or into.name not in made:
        raise Refused(f"{source.name} or {into.name} is of an outer block")
    if source.dtype not in (into.dtype, float32):
        raise Refused(f"{source.name} is rounded to {source.dtype} first")
    first = copy.at
    for n, touch in copy.touches(source.name):
        if touch.kind != WRITE or n > copy.at:
            raise Refused(f"{source.name} has another use than the copy")
        first = min(first, n)
    for n, _ in copy.touches(into.name):
        if n < copy.at:
            raise Refused(f"{into.name} is in use before the copy")
    for call in _makers(copy.block[first : copy.at], source.name):
        if call.instruction not in ROUNDING and source.dtype != into.dtype:
            raise Refused(f"{call.instruction} does not round what it writes")
    return _without(program, step, copy, source.name, into.name)


def _makers(body: Iterable[Statement], name: str) -> Iterator[Call]:
    for statement in body:
        if isinstance(statement, Loop):
            yield from _makers(statement.body, name)
        elif isinstance(statement, Call) and any(
            a.buffer == name for a in statement.accesses.values()
        ):
            yield statement


def _without(program: Program, step: Step, copy: Copy, gone: str, kept: str) -> Taken:
    """The block without the copy and a tile, whose users use the other, made as early."""
    left = tuple(s for n, s in enumerate(copy.block) if n != copy.at)
    made = allocated(left)
    early = min(made[gone], made.get(kept, made[gone]))
    moved = [s for s in left if isinstance(s, Allocate) and s.buffer.name == kept]
    rest = [s for s in left if not (isinstance(s, Allocate) and s.buffer.name in (gone, kept))]
    body = renamed((*rest[:early], *moved, *rest[early:]), {gone: kept})
    after = with_block(program, step.at, body)
    ranges = {loop.variable: loop.values for loop in loops_around(program, step.at)}
    _refuse_illegal(body, kept, ranges, after)
    return copy.claims.taken(after)


def _refuse_illegal(body: Body, name: str, ranges: dict[str, range], program: Program) -> None:
    for statement in body:
        if isinstance(statement, Loop):
            inner = {**ranges, statement.variable: statement.values}
            _refuse_illegal(statement.body, name, inner, program)
        elif isinstance(statement, Call) and any(
            a.buffer == name for a in statement.accesses.values()
        ):
            refuse_illegal(statement, ranges, buffers_of(program), program)


def _options(name: str) -> Transform:
    def options(program: Program, at: Path, call: Call) -> Iterable[Step]:
        return (Step(name, at),) if call.instruction == "tensor_copy" else ()

    does = {
        "bypass": "readers of a copied tile read its source",
        "direct": "what is copied on is made where it goes",
    }
    return Transform(
        name, does[name], options, {"bypass": _bypass, "direct": _direct}[name], (Call,)
    )


BYPASS = _options("bypass")
DIRECT = _options("direct")
