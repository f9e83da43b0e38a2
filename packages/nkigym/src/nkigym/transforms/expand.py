"""expand: a slot for the tile of each iteration.

for k in range(4):                        t = buffer(bfloat16[128, 4, 512], sbuf)
    t = buffer(bfloat16[128, 512], sbuf)  for k in range(4):
    load(t[:, :], …)                   →      load(t[:, k, :], …)
    use(t[:, :])                              use(t[:, k, :])
"""

from __future__ import annotations

from collections.abc import Iterator

from neuroncore.program import Allocate, Loop, Program
from nkigym.analysis.claims import StepResult
from nkigym.kernels.slots import expand_body
from nkigym.kernels.step import Path, TransformError, TransformStep
from nkigym.kernels.tree import loop_at, loops_around, replaced
from nkigym.transforms._transform import Transform


def _expand(program: Program, step: TransformStep) -> StepResult:
    loop, name = loop_at(program, step.at), step.option("buffer", str)
    if not any(isinstance(s, Allocate) and s.buffer.name == name for s in loop.body):
        raise TransformError(f"loop {loop.variable} makes no buffer {name}")
    front, made = expand_body(loop, loops_around(program, step.at), frozenset({name}))
    return StepResult(replaced(program, step.at, (*front, made)))


def _expands(program: Program, at: Path, loop: Loop) -> Iterator[TransformStep]:
    for statement in loop.body:
        if isinstance(statement, Allocate):
            yield TransformStep("expand", at, (("buffer", statement.buffer.name),))


EXPAND = Transform(
    "expand", "a buffer made in a loop, as one made before it, a slot per iteration",
    _expands, _expand, rank=6)  # fmt: skip
