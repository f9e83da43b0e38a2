"""Loop steps: what a certified visit costs, and how near the bound hand-written schedules come.

    python benchmarks/gym_loops.py

A visit is one step of a hand-written schedule, with the claims that make it legal, from the program
that the step before left. CPU time, the mean of five rounds, beside that at a small size: it does
not depend on sizes. Objects from before the first round are not collected during a visit. The bound
is the time for which the engine that binds is busy.

Then random walks from the baseline matmul, as gym_peer.py walks the public original's: over the
kinds of steps that it has, in programs of its size, and over all kinds in larger ones.
"""

from __future__ import annotations

import gc
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from packages.nkigym.tests.loop_functions import (
    HALFWAY,
    REAL,
    attention,
    gated,
    matmul,
    rmsnorm_matmul,
    softmax,
)
from packages.nkigym.tests.loop_running import scheduled
from packages.nkigym.tests.loop_schedules import ATTENTION, GATED, MATMUL, RMSNORM_MATMUL, SOFTMAX

from neuroncore.program import Program, check, walk
from neuroncore.timeline import estimate
from nkigym.baseline import baseline_kernel
from nkigym.transforms import TRANSFORMS, TransformError, TransformStep, opportunities, take

ROUNDS = 5
SEED = 7
WALKED = 300
"""Steps that a random walk takes."""
PUBLIC = ("split", "fuse", "reorder", "hoist", "sink")
"""The kinds of the public original, whose compute-at is a hoist or a sink here."""
SCHEDULES: dict[Callable[..., Any], str] = {
    matmul: MATMUL,
    softmax: SOFTMAX,
    gated: GATED,
    rmsnorm_matmul: RMSNORM_MATMUL,
    attention: ATTENTION,
}


def main() -> None:
    """Two lines per kernel: its time before and after, and the cost of its steps."""
    for function, text in SCHEDULES.items():
        start = baseline_kernel(function, *REAL[function])
        program, steps = scheduled(start, text)
        check(program)
        played = [estimate(p, mode="as_written") for p in (start, program)]
        after, lanes = played[1], played[1].lanes
        before, total = (each.total_ns / 1e3 for each in played)
        name, bound = max(((n, u.busy_ns / 1e3) for n, u in lanes.items()), key=lambda e: e[1])
        print(
            f"{function.__name__:15} {before:8.1f} µs baseline, {total:6.1f} µs after {len(steps)} "
            f"steps: {before / total:.1f} times, {total / bound:.2f} of {name}, "
            f"MFU {100 * after.mfu:.1f} %"
        )
        small = baseline_kernel(function, *HALFWAY[function])
        costs = [visits(start, steps), visits(small, steps)]
        listing = [_timed(lambda p=p: opportunities(p))[0] * 1e6 for p in (start, program)]
        sizes = [sum(1 for _ in walk(p.body)) for p in (start, program)]
        print(
            f"{'':15} a certified visit {mean(costs[0]):.0f} µs, median {median(costs[0]):.0f} µs "
            f"(small: {mean(costs[1]):.0f}, {median(costs[1]):.0f}); steps offered are listed in "
            f"{listing[0]:.0f} to {listing[1]:.0f} µs; {sizes[0]} to {sizes[1]} statements"
        )
    print_walks()


def print_walks() -> None:
    """A line per walk: the cost of certified steps, of rejected steps, and of the listing."""
    start = baseline_kernel(matmul, *REAL[matmul])
    for name, kinds, most in (("public original's kinds", PUBLIC, 60), ("all", TRANSFORMS, 200)):
        taken, rejected, listed = _walk(start, frozenset(kinds), most)
        print(
            f"a random walk over {name}, programs of up to {most} statements: a certified step "
            f"{mean(taken):.0f} µs, median {median(taken):.0f} µs, rejected "
            f"{mean(rejected):.0f} µs, "
            f"all steps offered are listed in {mean(listed):.0f} µs"
        )


def _walk(start: Program, kinds: frozenset[str], most: int) -> tuple[list[float], ...]:
    """Microseconds of steps taken, steps rejected, lists of what is offered."""
    rng, program = random.Random(SEED), start
    taken: list[float] = []
    rejected: list[float] = []
    listed: list[float] = []
    gc.collect()
    gc.freeze()
    while len(taken) < WALKED:
        seconds, offered = _timed(lambda p=program: opportunities(p))
        listed.append(seconds * 1e6)
        steps = [step for step in offered if step.transform in kinds]
        if not steps or sum(1 for _ in walk(program.body)) > most:
            program = start
            continue
        step = rng.choice(steps)
        seconds, after = _timed(lambda p=program, s=step: _tried(p, s))
        (rejected if after is None else taken).append(seconds * 1e6)
        program = after or program
    return taken, rejected, listed


def _tried(program: Program, step: TransformStep) -> Program | None:
    """The program after a step; None where it is rejected."""
    try:
        return take(program, step).program
    except TransformError:
        return None


def visits(start: Program, steps: Sequence[TransformStep]) -> list[float]:
    """Microseconds of each step, round after round."""
    found = []
    gc.collect()
    gc.freeze()
    for _ in range(ROUNDS):
        program = start
        for step in steps:
            seconds, taken = _timed(lambda p=program, s=step: take(p, s))
            program = taken.program
            found.append(seconds * 1e6)
    return found


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


if __name__ == "__main__":
    main()
