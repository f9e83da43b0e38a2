"""bypass and direct: without a copy.

    tensor_copy(t, product)                               tensor_copy(t, e)
    use(t)                   →   use(product)   make(e);  use(t)               →   make(t); use(t)

`bypass` redirects the readers of the copy to its source; `direct` redirects the writers of the
source to the copy, where the source has no other readers. Both tiles are of this block, and copied
whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from neuroncore.program import Access, Allocate, Buffer, Call, Loop, Program, Statement
from nki_dtypes import float32
from nkigym.analysis.accesses import READ, WRITE, CallAccess
from nkigym.analysis.claims import Claims, StepResult
from nkigym.analysis.legality import check_legal
from nkigym.kernels.step import Path, TransformError, TransformStep
from nkigym.kernels.tree import (
    Body,
    allocated,
    block_of,
    buffers_of,
    loops_around,
    renamed,
    statement_at,
    with_block,
)
from nkigym.transforms._transform import Transform

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

    def accesses(self, name: str) -> Iterator[tuple[int, CallAccess]]:
        """Accesses of the block's other statements to a tile."""
        for n, statement in enumerate(self.block):
            for touch in self.claims.accesses((statement,)) if n != self.at else ():
                if touch.buffer == name:
                    yield n, touch


def _copy(program: Program, step: TransformStep) -> Copy:
    call = statement_at(program, step.at)
    if not isinstance(call, Call) or call.instruction != "tensor_copy":
        raise TransformError("not a copy")
    claims, block = Claims(program, step.at), block_of(program, step.at)
    source, into = call.operands["src"], call.operands["dst"]
    assert isinstance(source, Access) and isinstance(into, Access)
    a, b = claims.reader.buffers[source.buffer], claims.reader.buffers[into.buffer]
    if (a.shape[0], a.row) != (b.shape[0], b.row) or not (
        _is_whole(source, a) and _is_whole(into, b)
    ):
        raise TransformError(f"{a.name} is not copied whole to {b.name}")
    if a.address or b.address:
        raise TransformError("a tile has a fixed place")
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


def _bypass(program: Program, step: TransformStep) -> StepResult:
    copy = _copy(program, step)
    if copy.source.dtype != copy.into.dtype:
        raise TransformError(f"{copy.into.name} is in {copy.into.dtype}, not {copy.source.dtype}")
    if copy.into.name not in allocated(copy.block):
        raise TransformError(f"{copy.into.name} is of an outer block")
    for n, touch in copy.accesses(copy.into.name):
        if touch.kind != READ or n < copy.at:
            raise TransformError(f"{copy.into.name} is not made by the copy alone")
    if any(touch.kind != READ and n > copy.at for n, touch in copy.accesses(copy.source.name)):
        raise TransformError(f"{copy.source.name} is written after the copy")
    return _without(program, step, copy, copy.into.name, copy.source.name)


def _direct(program: Program, step: TransformStep) -> StepResult:
    copy = _copy(program, step)
    source, into = copy.source, copy.into
    made = allocated(copy.block)
    if source.name not in made or into.name not in made:
        raise TransformError(f"{source.name} or {into.name} is of an outer block")
    if source.dtype not in (into.dtype, float32):
        raise TransformError(f"{source.name} is rounded to {source.dtype} first")
    writers = [copy.at]
    for n, touch in copy.accesses(source.name):
        if touch.kind != WRITE or n > copy.at:
            raise TransformError(f"{source.name} has another use than the copy")
        writers.append(n)
    if any(n < copy.at for n, _ in copy.accesses(into.name)):
        raise TransformError(f"{into.name} is in use before the copy")
    if source.dtype != into.dtype:
        _check_rounding(copy.block[min(writers) : copy.at], source.name)
    return _without(program, step, copy, source.name, into.name)


def _check_rounding(body: Body, name: str) -> None:
    """Raise TransformError where a writer of the tile does not round its result."""
    for call in _makers(body, name):
        if call.instruction not in ROUNDING:
            raise TransformError(f"{call.instruction} does not round what it writes")


def _makers(body: Iterable[Statement], name: str) -> Iterator[Call]:
    for statement in body:
        if isinstance(statement, Loop):
            yield from _makers(statement.body, name)
        elif isinstance(statement, Call) and any(
            a.buffer == name for a in statement.accesses.values()
        ):
            yield statement


def _without(program: Program, step: TransformStep, copy: Copy, gone: str, kept: str) -> StepResult:
    """The block without the copy and a tile, whose users use the other, made as early."""
    left = tuple(s for n, s in enumerate(copy.block) if n != copy.at)
    made = allocated(left)
    early = min(made[gone], made.get(kept, made[gone]))
    moved = [s for s in left if isinstance(s, Allocate) and s.buffer.name == kept]
    rest = [s for s in left if not (isinstance(s, Allocate) and s.buffer.name in (gone, kept))]
    body = renamed((*rest[:early], *moved, *rest[early:]), {gone: kept})
    after = with_block(program, step.at, body)
    ranges = {loop.variable: loop.values for loop in loops_around(program, step.at)}
    _check_users(body, kept, ranges, after)
    return copy.claims.result(after)


def _check_users(body: Body, name: str, ranges: dict[str, range], program: Program) -> None:
    for statement in body:
        if isinstance(statement, Loop):
            inner = {**ranges, statement.variable: statement.values}
            _check_users(statement.body, name, inner, program)
        elif isinstance(statement, Call) and any(
            a.buffer == name for a in statement.accesses.values()
        ):
            check_legal(statement, ranges, buffers_of(program), program)


def _on_copies(name: str) -> Callable[[Program, Path, Call], Iterable[TransformStep]]:
    """Offers the transform `name` for every tensor_copy."""

    def options(program: Program, at: Path, call: Call) -> Iterable[TransformStep]:
        return (TransformStep(name, at),) if call.instruction == "tensor_copy" else ()

    return options


BYPASS = Transform(
    "bypass", "readers of a copied tile read its source", _on_copies("bypass"), _bypass, (Call,),
    rank=16,
)  # fmt: skip
DIRECT = Transform(
    "direct", "what is copied on is made where it goes", _on_copies("direct"), _direct, (Call,),
    rank=17,
)  # fmt: skip
