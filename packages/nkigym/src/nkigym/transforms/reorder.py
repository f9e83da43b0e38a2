"""reorder: two loops, one inside the other, change places (loop interchange).

for m in range(4):           for n in range(4):
    for n in range(4):   →       for m in range(4):
        f(m, n)                      f(m, n)
"""

from __future__ import annotations

from collections.abc import Iterator

from neuroncore.program import Loop, Program
from nkigym.analysis.claims import Claims, StepResult
from nkigym.analysis.disjointness import EARLIER, LATER
from nkigym.kernels.step import Path, TransformError, TransformStep
from nkigym.kernels.tree import allocated, loop_at, replaced, with_body
from nkigym.transforms._transform import Transform


def _reorder(program: Program, step: TransformStep) -> StepResult:
    outer = loop_at(program, step.at)
    inner = outer.body[0] if len(outer.body) == 1 else None
    if not isinstance(inner, Loop):
        raise TransformError(f"loop {outer.variable} contains more than a loop")
    claims = Claims(program, step.at)
    call_accesses = claims.accesses(inner.body, allocated(inner.body))
    related = ((outer, LATER), (inner, EARLIER))
    claims.require_disjoint(
        call_accesses, call_accesses, related, f"{inner.variable} cannot be around {outer.variable}"
    )
    made = with_body(inner, (with_body(outer, inner.body),))
    return claims.result(replaced(program, step.at, (made,)))


def _reorders(program: Program, at: Path, loop: Loop) -> Iterator[TransformStep]:
    if len(loop.body) == 1 and isinstance(loop.body[0], Loop):
        yield TransformStep("reorder", at)


REORDER = Transform(
    "reorder", "two loops, one inside the other, change places", _reorders, _reorder, rank=3
)
