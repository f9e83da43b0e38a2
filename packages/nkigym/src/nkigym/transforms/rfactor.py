"""rfactor: a sum in two stages, PSUM for each part and SBUF for all.

    acc = buffer(float32[…], psum)         sums = buffer(float32[…], sbuf)
    for k in range(4):                     memset(sums, -0.0)
        for k1 in range(4):                for k in range(4):
            nc_matmul(acc, …)          →       acc = buffer(float32[…], psum)
    use(acc)                                   for k1 in range(4):
                                                   nc_matmul(acc, …)
                                               tensor_tensor(sums, sums, acc, add)
                                           use(sums)

The order in which terms are added changes, and with it how sums round; integers do not. The sum
begins with -0, as +0 would make +0 of a sum that is -0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from neuroncore.enums import MemorySpace
from neuroncore.program import Access, Allocate, Buffer, Loop, Program, make_call, whole
from nkigym.analysis.accesses import ADD, READ, CallAccess
from nkigym.analysis.claims import Claims, StepResult
from nkigym.analysis.disjointness import ANY, LATER, SAME, Disjoint, Shared, is_disjoint
from nkigym.kernels.step import Path, TransformError, TransformStep
from nkigym.kernels.tree import (
    allocated,
    block_of,
    loop_at,
    renamed,
    unused_name,
    with_block,
    with_body,
)
from nkigym.transforms._transform import Transform


def _rfactor(program: Program, step: TransformStep) -> StepResult:
    loop, name = loop_at(program, step.at), step.option("buffer", str)
    block, n = block_of(program, step.at), step.at[-1]
    made = allocated(block)
    if name not in made or made[name] > n:
        raise TransformError(f"{name} is not made in front of loop {loop.variable}")
    allocation = block[made[name]]
    assert isinstance(allocation, Allocate)
    acc = allocation.buffer
    if acc.space is not MemorySpace.psum or acc.address is not None:
        raise TransformError(f"{name} is not a tile in PSUM without an address")
    claims = Claims(program, step.at)
    touch = _sum(claims, block, n, acc)
    _claim_all_written(claims, touch, loop, acc)
    sums = replace(acc, name=unused_name(program, f"{name}_sums"), space=MemorySpace.sbuf)
    add = make_call("tensor_tensor", dst=whole(sums), data1=whole(sums), data2=whole(acc), op="add")
    zero = make_call("memset", dst=whole(sums), value=-0.0)
    inner = with_body(loop, (allocation, *loop.body, add))
    before = tuple(s for s in block[:n] if s is not allocation)
    after = renamed(block[n + 1 :], {name: sums.name})
    body = (*before, Allocate(sums), zero, inner, *after)
    return claims.result(with_block(program, step.at, body))


def _sum(claims: Claims, block: tuple, n: int, acc: Buffer) -> CallAccess:
    """The one access that adds to the tile, in loop n of its block; all others read it when the
    loop is done: inside of it the sum is not complete.
    """
    found: list[CallAccess] = []
    for k, statement in enumerate(block):
        for touch in claims.accesses((statement,)):
            if touch.buffer != acc.name:
                continue
            if k == n and touch.kind == ADD:
                found.append(touch)
            elif touch.kind != READ or k <= n:
                raise TransformError(f"{acc.name} is not a sum of this loop alone")
    if len(found) != 1:
        raise TransformError(f"{len(found)} instructions of the loop add to {acc.name}, not one")
    return found[0]


def _claim_all_written(claims: Claims, touch: CallAccess, loop: Loop, acc: Buffer) -> None:
    """Each iteration adds to every element: its tiles are disjoint, and as many as fill it."""
    access, inner = touch.access, touch.loops[1:]
    assert isinstance(access, Access)
    moving = {name for name, _ in access.offset.terms}
    related = [r for r in inner if r.variable in moving]
    if len(related) != len(moving):
        raise TransformError(f"iterations of {loop.variable} add to different parts of {acc.name}")
    if access.size * prod(len(range(r.start, r.stop, r.step)) for r in related) != acc.size:
        raise TransformError(f"an iteration of {loop.variable} does not add to all of {acc.name}")
    alone = touch._replace(loops=tuple(r for r in inner if r.variable not in moving))
    around = [Shared(r, SAME) for r in (*claims.around, touch.loops[0])]
    for k in range(len(related)):
        relations = [SAME] * k + [LATER] + [ANY] * (len(related) - k - 1)
        shared = tuple(around + [Shared(*pair) for pair in zip(related, relations, strict=True)])
        claim = Disjoint(alone, alone, shared, acc)
        if not is_disjoint(claim):
            raise TransformError(f"tiles of {acc.name} overlap")
        claims.made.append(claim)


def _rfactors(program: Program, at: Path, loop: Loop) -> Iterator[TransformStep]:
    block = block_of(program, at)
    if not any(isinstance(s, Loop) for s in loop.body):
        return
    for statement in block[: at[-1]]:
        if isinstance(statement, Allocate) and statement.buffer.space is MemorySpace.psum:
            yield TransformStep("rfactor", at, (("buffer", statement.buffer.name),))


RFACTOR = Transform(
    "rfactor", "a sum in PSUM in two stages, one of them in SBUF", _rfactors, _rfactor, rank=20
)
