"""Plays micro-ops as the closed compiler may have ordered them: each as early as it can.

A deliberately simple model: an instruction starts in the first gap of its engine behind its
operands.
"""

from __future__ import annotations

from neuroncore.timeline.lanes import SCALAR, TENSOR
from neuroncore.timeline.play import load_table, matmul_passes
from neuroncore.timeline.regions import NOBODY
from neuroncore.timeline.sites import Site, Step
from neuroncore.timeline.state import LANE, MULTIPLY, PASS, RESOURCE, State, played
from neuroncore.timeline.streams import LooseLane
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
    own = lane.number
    state.num_ops += site.trips

    def play() -> None:
        ready, behind, by = look(), wait.bar, wait.why
        if table is not None:
            if state.table != table:
                at = lane.free
                load_table(state, number, table)
                lane.loaded(at, state.reason(NOBODY, LANE))
            if state.table_there > ready:
                ready, behind, by = state.table_there, state.table_bar, LANE
        if ready >= lane.free and not ports:
            alone = start = ready
        else:
            alone, start = lane.room(ready, interval, ports)
        cause, why = (behind, by) if alone == ready else (lane.before(alone), LANE)
        if start > alone:
            why = RESOURCE
        for port in ports:
            port.reserve(start, interval)
        bar = len(bars) + state.skipped
        lane.occupy(start, interval, state.reason(cause, why), bar)
        end = start + interval + latency
        bars.append(played((number, own, PASS, start, start + interval, end, cause, why)))
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
    warmth = state.warmth
    state.num_ops += site.trips * 2 * len(passes)
    state.flops += site.trips * site.flops

    def play() -> None:
        ready, end, behind, by = wait.look(), 0, wait.bar, wait.why
        for load, multiply in passes:
            free = lane.free
            interval = warmth.interval(max(ready, free), max(load, multiply))
            start = ready if ready >= free else lane.room(ready, interval)[0]
            cause, why = (behind, by) if start == ready else (lane.before(start), LANE)
            lane.last = behind = len(bars) + state.skipped
            lane.occupy(start, interval, state.reason(cause, why), behind)
            ready = start + interval
            end = ready + latency
            by = LANE
            bars.append(played((number, TENSOR, MULTIPLY, start, ready, end, cause, why)))
            lane.busy += interval
        lane.end = max(lane.end, end)
        wait.done(end + semaphore, lane.last)

    return play
