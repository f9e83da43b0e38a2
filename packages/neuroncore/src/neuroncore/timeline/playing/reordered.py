"""Plays micro-ops as the closed compiler may have ordered them: each as early as it can.

A deliberately simple model: an instruction starts in the first gap of its engine behind its
operands.
"""

from __future__ import annotations

from neuroncore.timeline.model.bars import LANE, MULTIPLY, NO_BAR, PASS, RESOURCE
from neuroncore.timeline.model.lanes import SCALAR, TENSOR
from neuroncore.timeline.playing.in_order import load_table, matmul_passes
from neuroncore.timeline.playing.sites import Site, Step
from neuroncore.timeline.playing.state import State
from neuroncore.timeline.resources.streams import LooseLane
from neuroncore.work import Pass


def loose_pass(state: State, site: Site) -> Step:
    """Plays an instruction of VectorE, ScalarE or GpSimdE."""
    clock, bars, lane = state.clock, state.bars, state.lanes[site.lane]
    (op,) = site.work
    assert isinstance(op, Pass) and isinstance(lane, LooseLane)
    interval, latency = clock.cycles(site.lane, op.interval), clock.latency(site.lane)
    semaphore = clock.ticks("SEMAPHORE")
    wait, number, ports = site.wait(latency + semaphore), site.number, site.ports
    look, done, table = wait.look, wait.done, op.table if site.lane == SCALAR else None
    own, note, reason = lane.number, bars.append, state.reason
    state.num_ops += site.trips

    def play() -> None:
        ready, behind, by = look(), wait.bar, wait.why
        if table is not None:
            if state.table != table:
                at = lane.free
                load_table(state, number, table)
                lane.loaded(at, reason(NO_BAR, LANE))
            if state.table_there > ready:
                ready, behind, by = state.table_there, state.table_bar, LANE
        if ready >= lane.free and not ports:
            alone = start = ready
        else:
            alone, start = lane.room(ready, interval, ports)
        if alone != ready:
            behind, by = lane.before(alone), LANE
        if start > alone:
            by = RESOURCE
        for port in ports:
            port.reserve(start, interval)
        bar = state.next_bar
        state.next_bar = bar + 1
        lane.occupy(start, interval, behind, by, bar, reason)
        free = start + interval
        end = free + latency
        note((number, own, PASS, start, free, end, behind, by))
        lane.last = bar
        if end > lane.end:
            lane.end = end
        lane.busy += interval
        done(end + semaphore, bar)

    return play


def loose_matmul(state: State, site: Site) -> Step:
    """Plays a matmul; its weights are loaded behind the multiply before, whichever that is."""
    clock, bars = state.clock, state.bars
    lane = state.lanes[TENSOR]
    assert isinstance(lane, LooseLane)
    passes, latency = matmul_passes(state, site), clock.latency(TENSOR)
    semaphore = clock.ticks("SEMAPHORE")
    lag = latency + semaphore
    wait, number = site.wait(lag), site.number
    look, done, note, reason = wait.look, wait.done, bars.append, state.reason
    warmth = state.warmth
    state.num_ops += site.trips * 2 * len(passes)
    state.flops += site.trips * site.flops

    def play() -> None:
        ready, end, behind, by = look(), 0, wait.bar, wait.why
        for load, multiply in passes:
            free = lane.free
            interval = warmth.interval(max(ready, free), max(load, multiply))
            start = ready
            if ready < free:
                start = lane.room(ready, interval)[0]
                if start != ready:
                    behind, by = lane.before(start), LANE
            bar = state.next_bar
            state.next_bar = bar + 1
            lane.occupy(start, interval, behind, by, bar, reason)
            ready = start + interval
            end = ready + latency
            note((number, TENSOR, MULTIPLY, start, ready, end, behind, by))
            behind, by = bar, LANE
            lane.busy += interval
        lane.last = behind
        if end > lane.end:
            lane.end = end
        done(end + semaphore, behind)

    return play
