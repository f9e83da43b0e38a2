"""swap: a statement and the next statement change places.

f()        g()
g()   →    f()
"""

from __future__ import annotations

from collections.abc import Iterator

from neuroncore.program import Allocate, Call, Loop, Program, Statement
from nkigym.analysis.claims import Claims, StepResult
from nkigym.kernels.step import Path, TransformError, TransformStep
from nkigym.kernels.tree import block_of, following, statement_at, with_block
from nkigym.transforms._transform import Transform


def _swap(program: Program, step: TransformStep) -> StepResult:
    block, n = block_of(program, step.at), step.at[-1]
    first = statement_at(program, step.at)
    m = following(block, n)
    if isinstance(first, Allocate) or m is None:
        raise TransformError("two statements are needed")
    claims = Claims(program, step.at)
    claims.require_disjoint(
        claims.accesses((first,)),
        claims.accesses((block[m],)),
        (),
        "their order matters",
    )
    swapped = (*block[:n], *block[n + 1 : m], block[m], first, *block[m + 1 :])
    return claims.result(with_block(program, step.at, swapped))


def _swaps(program: Program, at: Path, statement: Statement) -> Iterator[TransformStep]:
    if following(block_of(program, at), at[-1]):
        yield TransformStep("swap", at)


SWAP = Transform(
    "swap", "a statement and the next one change places", _swaps, _swap, (Call, Loop), rank=18
)
