"""What a loop takes at least where lanes keep their order, against what playing it takes."""

from __future__ import annotations

import pytest

from neuroncore.core import NeuronCore
from neuroncore.program import Program
from neuroncore.timeline import estimate
from neuroncore.timeline.bodies import Body
from neuroncore.timeline.clock import Clock
from neuroncore.timeline.compile import Compiler
from neuroncore.timeline.constants import constants, machine
from neuroncore.timeline.described import Described
from neuroncore.timeline.least import slack
from neuroncore.timeline.state import State
from neuroncore.work import charging

from .kernels import ALL, program
from .random_kernels import random_program


def least_ns(made: Program) -> list[float]:
    """What every engine needs at least for the program, from its first instruction on."""
    facts, values = machine(made.target), constants().at(made.target)
    core, clock = NeuronCore(made.target, watchers=()), Clock(facts, values)
    with charging(values):
        state = State(clock, int(facts["dma_queues"]), reorders=False)
        steps = Compiler(made, Described(made, core, values), state).body(made.body)
        slacks = [slack(clock, step) for step in steps if isinstance(step, Body)]
    return [clock.ns(sum(ticks)) for ticks in zip(state.least, *slacks, strict=True)]


@pytest.mark.parametrize("seed", range(60))
def test_nothing_is_over_before_the_least_time(seed: int) -> None:
    made = random_program(seed, "trn2")
    assert max(least_ns(made)) <= estimate(made, skip_periods=False).total_ns


@pytest.mark.parametrize("name", ALL)
def test_no_kernel_is_over_before_the_least_time(name: str) -> None:
    made = program(ALL[name], "trn2")
    assert max(least_ns(made)) <= estimate(made, verified=True).total_ns
