"""Loops with nothing in them but a loop: played as one where all accesses go on at one pace."""

from __future__ import annotations

import pytest

from neuroncore.machine.core import NeuronCore
from neuroncore.timeline import constants, estimate, latency_ns, machine
from neuroncore.timeline.compilation.call_demands import Described
from neuroncore.timeline.compilation.compiler import Compiler
from neuroncore.timeline.model.clock import Clock
from neuroncore.timeline.playing.state import State
from neuroncore.work import charging

from ..kernels import program

WRITTEN = """
kept = buffer(float32[128, 4096], sbuf)
memset(dst=kept[:, :], value=1.0, engine=gpsimd)
for i in range({outer}):
    for j in range({inner}):
        memset(dst=kept[:, {at} : {at} + 64], value=0.0, engine=vector)
tensor_copy(dst=kept[:, 0:64], src=kept[:, 64:128], engine=scalar)
dma_copy(dst=out[0:128, 0:64], src=kept[:, 0:64])
"""


def ranges(kernel) -> list[range]:
    """Of the outermost loops, as they are played."""
    facts, values = machine(kernel.target), constants().at(kernel.target)
    state = State(Clock(facts, values), int(facts["dma_queues"]), reorders=False, records=False)
    with charging(values):
        described = Described(kernel, NeuronCore(kernel.target, watchers=()), values)
        steps = Compiler(kernel, described, state).body(kernel.body)
    return [step.trips for step in steps if not callable(step)]


@pytest.mark.parametrize(
    ("outer", "inner", "at", "expected"),
    [
        ("8", "4", "256*i + 64*j", range(32)),
        ("2, 10", "4", "256*i + 64*j", range(32)),
        ("0, 16, 2", "1, 5", "128*i + 64*j", range(32)),
        ("8", "4", "0", range(32)),
        ("1", "4", "64*j", range(4)),
        ("8", "1", "256*i", range(8)),
        ("8", "4", "64*j", range(8)),
        ("8", "4", "256*i", range(8)),
        ("8", "4", "64*i + 512*j", range(8)),
    ],
)
def test_two_loops_are_one_where_accesses_go_on(outer, inner, at, expected):
    kernel = program(WRITTEN.format(outer=outer, inner=inner, at=at))

    assert ranges(kernel) == [expected]
    assert latency_ns(kernel) == estimate(kernel, skip_periods=False, mode="as_written").total_ns


def test_an_instruction_that_delays_no_other_may_move():
    kernel = program("""
for i in range(8):
    for j in range(4):
        tile = buffer(float32[128, 64], sbuf)
        dma_copy(dst=tile[:, :], src=x[128*j : 128*j + 128, 64*i : 64*i + 64])
        dma_copy(dst=out[128*i : 128*i + 128, 64*j : 64*j + 64], src=tile[:, :])
""")
    assert ranges(kernel) == [range(32)]
    assert latency_ns(kernel) == estimate(kernel, skip_periods=False, mode="as_written").total_ns


def test_three_loops_are_one():
    kernel = program("""
kept = buffer(float32[128, 4096], sbuf)
for i in range(4):
    for j in range(3):
        for k in range(5):
            memset(dst=kept[:, 240*i + 80*j + 16*k : 240*i + 80*j + 16*k + 16], value=0.0)
dma_copy(dst=out[0:128, :], src=kept[:, :])
""")
    assert ranges(kernel) == [range(60)]


def test_loops_with_something_between_stay_two():
    kernel = program("""
kept = buffer(float32[128, 512], sbuf)
for i in range(8):
    memset(dst=kept[:, :], value=1.0)
    for j in range(4):
        memset(dst=kept[:, 0:64], value=0.0)
dma_copy(dst=out[0:128, 0:512], src=kept[:, :])
""")
    assert ranges(kernel) == [range(8)]
