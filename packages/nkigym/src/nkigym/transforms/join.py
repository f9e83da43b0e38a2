"""join: a loop and the next loop, of equal range, as one loop (loop fusion).

for i in range(4):           for i in range(4):
    f(i)                 →       f(i)
for i in range(4):               g(i)
    g(i)
"""

from __future__ import annotations

from collections.abc import Iterator

from neuroncore.program import Affine, Loop, Program, walk
from nkigym.analysis.claims import Claims, StepResult
from nkigym.analysis.disjointness import LATER
from nkigym.kernels.step import Path, TransformError, TransformStep
from nkigym.kernels.tree import (
    Body,
    allocated,
    block_of,
    following,
    loop_at,
    substituted,
    unused_name,
    with_block,
    with_body,
)
from nkigym.transforms._transform import Transform


def _next_loop(block: Body, n: int) -> int | None:
    """The number of the next loop behind statement n, with nothing but allocations between."""
    m = following(block, n)
    return m if m is not None and isinstance(block[m], Loop) else None


def _join(program: Program, step: TransformStep) -> StepResult:
    first = loop_at(program, step.at)
    block, n = block_of(program, step.at), step.at[-1]
    m = _next_loop(block, n)
    if m is None:
        raise TransformError(f"no loop follows {first.variable}")
    second = block[m]
    assert isinstance(second, Loop)
    if first.values != second.values:
        raise TransformError(
            f"{first.variable} and {second.variable} do not run over the same values"
        )
    claims = Claims(program, step.at)
    first, second = _of_one_name(program, first, second)
    private = (*allocated(first.body), *allocated(second.body))
    claims.require_disjoint(
        claims.accesses(first.body, private), claims.accesses(second.body, private),
        ((first, LATER),), f"loops {first.variable} and {second.variable} cannot be one",
    )  # fmt: skip
    made = with_body(first, first.body + second.body)
    return claims.result(
        with_block(program, step.at, (*block[:n], *block[n + 1 : m], made, *block[m + 1 :]))
    )


def _of_one_name(program: Program, first: Loop, second: Loop) -> tuple[Loop, Loop]:
    """Both with the first's variable, or a fresh one where a loop inside the second has it."""
    inner = {s.variable for s in walk(second.body) if isinstance(s, Loop)}
    name = unused_name(program, first.variable) if first.variable in inner else first.variable
    return _with_variable(first, name), _with_variable(second, name)


def _with_variable(loop: Loop, name: str) -> Loop:
    if loop.variable == name:
        return loop
    body = substituted(loop.body, {loop.variable: Affine.variable(name)})
    return Loop(name, loop.start, loop.stop, body, loop.step, loop.origin)


def _joins(program: Program, at: Path, loop: Loop) -> Iterator[TransformStep]:
    block = block_of(program, at)
    m = _next_loop(block, at[-1])
    following = None if m is None else block[m]
    if isinstance(following, Loop) and following.values == loop.values:
        yield TransformStep("join", at)


JOIN = Transform("join", "a loop and the next one, of equal range, as one", _joins, _join, rank=5)
