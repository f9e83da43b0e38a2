"""Plays micro-ops as the closed compiler may have ordered them: early, and on either engine.

A deliberately simple model: an instruction starts in the first gap of its engine behind its
operands, and one that VectorE and ScalarE can both execute goes where it is done first.
"""

from __future__ import annotations

from typing import NamedTuple

from neuroncore.timeline.lanes import SCALAR, TENSOR
from neuroncore.timeline.play import load_table, matmul_passes
from neuroncore.timeline.sites import Site, Step
from neuroncore.timeline.state import LANE, MULTIPLY, PASS, RESOURCE, LooseLane, State, played
from neuroncore.work import Pass


class _Choice(NamedTuple):
    """The same instruction on one of the engines that can execute it, in ticks."""

    lane: LooseLane
    interval: int
    latency: int
    table: str | None
    site: Site


def loose_pass(state: State, sites: list[Site]) -> Step:
    """Plays an instruction of VectorE, ScalarE or GpSimdE; `sites` are the engines it may take."""
    clock, bars = state.clock, state.bars
    choices = [_choice(state, site) for site in sites]
    semaphore, site = clock.ticks("SEMAPHORE"), sites[0]
    wait, number = site.wait(False), site.number
    look, done = wait.look, wait.done
    alone = choices[0] if len(choices) == 1 else None

    def play() -> None:
        ready = look()
        chosen = alone or min(choices, key=lambda c: max(ready, c.lane.free) + c.interval)
        lane, interval = chosen.lane, chosen.interval
        if chosen.table is not None and state.table != chosen.table:
            load_table(state, number, chosen.table)
            lane.taken.reserve(lane.free - 1, 1)
        free, start = lane.free, lane.take(ready, interval)
        cause, why = (wait.bar, wait.why) if start == ready else (lane.last, LANE)
        for port in chosen.site.ports:
            moved = port.reserve(start, interval)
            if moved > start:
                start, why = moved, RESOURCE
        lane.free = max(lane.free, start + interval)
        if start > free:
            state.stall(lane, free, start, cause, why)
        end, bar = start + interval + chosen.latency, len(bars)
        bars.append(played((number, lane.number, PASS, start, start + interval, end, cause, why)))
        lane.last, lane.end = bar, max(lane.end, end)
        lane.busy += interval
        state.num_ops += 1
        wait.lane = lane.number
        done(end + semaphore, bar, state.age)

    return play


def _choice(state: State, site: Site) -> _Choice:
    (op,) = site.work
    lane = state.lanes[site.lane]
    assert isinstance(op, Pass) and isinstance(lane, LooseLane)
    interval, latency = state.clock.cycles(site.lane, op.interval), state.clock.latency(site.lane)
    return _Choice(lane, interval, latency, op.table if site.lane == SCALAR else None, site)


def loose_matmul(state: State, site: Site) -> Step:
    """Plays a matmul; its weights are loaded behind the multiply before, whichever that is."""
    clock, bars = state.clock, state.bars
    lane = state.lanes[TENSOR]
    assert isinstance(lane, LooseLane)
    passes, latency = matmul_passes(state, site), clock.latency(TENSOR)
    semaphore = clock.ticks("SEMAPHORE")
    wait, number, flops, warmth = site.wait(False), site.number, site.flops, state.warmth

    def play() -> None:
        ready, end = wait.look(), 0
        for load, multiply in passes:
            free = lane.free
            interval = warmth.interval(max(ready, free), max(load, multiply))
            start = lane.take(ready, interval)
            cause, why = (wait.bar, wait.why) if start == ready else (lane.last, LANE)
            if start > free:
                state.stall(lane, free, start, cause, why)
            ready = start + interval
            end = ready + latency
            lane.last = len(bars)
            bars.append(played((number, TENSOR, MULTIPLY, start, ready, end, cause, why)))
            lane.busy += interval
        lane.end = max(lane.end, end)
        state.num_ops += 2 * len(passes)
        state.flops += flops
        wait.done(end + semaphore, lane.last, state.age)

    return play
