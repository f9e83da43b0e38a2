"""Loop steps: what a certified visit costs, and how near the bound schedules by hand come.

    python benchmarks/gym_loops.py

A visit is one step of a schedule by hand, with the claims that make it legal, from the program that
the step before left. CPU time, the mean of five rounds, beside that at a small size: it does not
depend on sizes. What was made before the first round is no garbage that a visit pays for. The bound
is the time for which the engine that binds is busy.
"""

from __future__ import annotations

import gc
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
from packages.nkigym.tests.loop_schedules import (
    ATTENTION,
    GATED,
    MATMUL,
    RMSNORM_MATMUL,
    SOFTMAX,
)

from neuroncore.program import Program, check, walk
from neuroncore.timeline import estimate
from nkigym.loops import Step, opportunities, take
from nkigym.naive import naive

ROUNDS = 5
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
        start = naive(function, *REAL[function])
        program, steps = scheduled(start, text)
        check(program)
        before, after = estimate(start).total_ns / 1e3, estimate(program)
        total, lanes = after.total_ns / 1e3, after.lanes
        name, bound = max(((n, u.busy_ns / 1e3) for n, u in lanes.items()), key=lambda e: e[1])
        print(
            f"{function.__name__:15} {before:8.1f} µs naive, {total:6.1f} µs after {len(steps)} "
            f"steps: {before / total:.1f} times, {total / bound:.2f} of {name}, "
            f"MFU {100 * after.mfu:.1f} %"
        )
        small = naive(function, *HALFWAY[function])
        costs = [visits(start, steps), visits(small, steps)]
        listing = [_timed(lambda p=p: opportunities(p))[0] * 1e6 for p in (start, program)]
        sizes = [sum(1 for _ in walk(p.body)) for p in (start, program)]
        print(
            f"{'':15} a certified visit {mean(costs[0]):.0f} µs, median {median(costs[0]):.0f} µs "
            f"(small: {mean(costs[1]):.0f}, {median(costs[1]):.0f}); steps offered are listed in "
            f"{listing[0]:.0f} to {listing[1]:.0f} µs; {sizes[0]} to {sizes[1]} statements"
        )


def visits(start: Program, steps: Sequence[Step]) -> list[float]:
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
