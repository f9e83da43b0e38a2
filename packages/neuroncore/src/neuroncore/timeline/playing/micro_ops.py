"""Plays micro-ops: in program order, or as the closed compiler may have ordered them.

Each instruction waits for its lane, for what it reads (until it is written), for what it writes
(until it is read and written), and for shared resources (ports, DMA bandwidth, descriptor
generators), which are taken first come, first gap. Reordered instructions start as early as they
can, in a deliberately simple model: in the first gap of their engine behind their operands.
"""

from __future__ import annotations

from heapq import heapreplace

from neuroncore.timeline.dependences.tracks import Track
from neuroncore.timeline.model.bars import (
    LANE,
    MULTIPLY,
    PASS,
    RESOURCE,
    TABLE,
    TRANSFER,
    WEIGHTS,
)
from neuroncore.timeline.model.lanes import SCALAR, TENSOR
from neuroncore.timeline.playing.sites import Site, Step
from neuroncore.timeline.playing.state import State
from neuroncore.timeline.resources.reservations import common_gap
from neuroncore.timeline.resources.streams import ReorderedLane
from neuroncore.work import LoadStationary, MultiplyMoving, Pass, Transfer


def made(state: State, buffer: str, track: Track) -> Step | None:
    """The step that allocates an on-chip buffer, in its next copy; None where it has no effect."""
    bars, copies, records = state.bars, track.copies, state.records
    note = state.made.append
    if not records and copies == 1:
        return None

    def play() -> None:
        if records:
            note((len(bars), buffer))
        if copies > 1:
            track.turns = turns = track.turns + 1
            track.slot = turns % copies

    return play


def engine_pass(state: State, site: Site) -> Step:
    """Plays an instruction of VectorE, ScalarE or GpSimdE."""
    clock, lane, bars = state.clock, state.lanes[site.lane], state.bars
    (op,) = site.work
    assert isinstance(op, Pass)
    interval = clock.cycles(site.lane, op.interval)
    latency, semaphore = clock.latency(site.lane), clock.ticks("SEMAPHORE")
    records = state.records
    wait, number, ports = site.wait(), site.number, site.ports
    look, done, table = wait.look, wait.done, op.table if site.lane == SCALAR else None
    state.num_ops += site.trips
    state.work[site.lane] += site.trips * interval

    def play() -> None:
        ready = look()
        if table is not None and state.table != table:
            _load_table(state, number, table, ready, wait.bar, wait.why)
        start, cause, why = lane.free, lane.last, LANE
        if ready > start:
            start, cause, why = ready, wait.bar, wait.why
        if ports:
            moved = common_gap(ports, start, interval)
            if moved > start:
                start, why = moved, RESOURCE
            for port in ports:
                port.reserve(start, interval)
        free = start + interval
        end = free + latency
        bar = state.next_bar
        state.next_bar = bar + 1
        if records:
            if start > lane.free:
                state.stall(lane, lane.free, start, cause, why)
            bars.append((number, lane.number, PASS, start, free, end, cause, why))
        lane.free, lane.last, lane.end = free, bar, end
        lane.busy += interval
        done(end + semaphore, bar)

    return play


def _load_table(state: State, number: int, table: str, ready: int, cause: int, why: int) -> None:
    """ScalarE loads the table of an activation once its operands are there: the profiles of the DMA
    overview show it behind the DMA that the activation waits for. Bar `cause` makes them.
    """
    lane, bar = state.lanes[SCALAR], state.next_bar
    loading = state.clock.cycles(SCALAR, state.clock.values["ACT_TABLE_LOAD"])
    start = lane.free
    if ready <= start:
        cause, why = lane.last, LANE
    else:
        start = ready
    free = start + loading
    if state.records:
        state.bars.append((number, SCALAR, TABLE, start, free, free, cause, why))
    state.next_bar = bar + 1
    if isinstance(lane, ReorderedLane):
        lane.occupy(start, loading, cause, why, bar, state.reason)
    elif start > lane.free and state.records:
        state.stall(lane, lane.free, start, cause, why)
    lane.last, lane.free = bar, free
    state.table_there, state.table_bar = free, bar
    lane.busy += loading
    state.num_ops += 1
    state.table = table


def _matmul_passes(state: State, site: Site) -> list[tuple[int, int]]:
    """The intervals of each LoadStationary and the MultiplyMoving behind it, in ticks."""
    cycles = state.clock.cycles
    return [
        (cycles(TENSOR, load.interval), cycles(TENSOR, multiply.interval))
        for load, multiply in zip(site.work[::2], site.work[1::2], strict=True)
        if isinstance(load, LoadStationary) and isinstance(multiply, MultiplyMoving)
    ]


def matmul(state: State, site: Site) -> Step:
    """Plays pairs of LoadStationary and MultiplyMoving.

    Weights go into a second set of registers while the multiply before runs; results are there
    once the last pass is through.
    """
    clock, lane, bars = state.clock, state.lanes[TENSOR], state.bars
    passes, latency = _matmul_passes(state, site), clock.latency(TENSOR)
    load_latency = clock.cycles(TENSOR, clock.values["LOAD_LATENCY"])
    semaphore = clock.ticks("SEMAPHORE")
    records = state.records
    weights, wait = site.matmul_waits()
    number, warm = site.number, state.warmth.interval
    look_weights, look = weights.look, wait.look
    state.num_ops += site.trips * 2 * len(passes)
    state.work[TENSOR] += site.trips * sum([multiply for _, multiply in passes])
    state.flops += site.trips * site.flops

    def play() -> None:
        start = max(state.weights_free, state.multiply_start)
        filled = begin = end = start
        loaded, ready = look_weights(), look()
        at = state.next_bar
        for load, multiply in passes:
            cause, why = lane.last, LANE
            if loaded > start:
                start, cause, why = loaded, weights.bar, weights.why
            filled = start + load
            begin, behind, by = lane.free, cause, lane.last
            if records:
                fields = number, TENSOR, WEIGHTS, start, filled, filled + load_latency, cause, why
                bars.append(fields)
            if filled > begin:
                begin, by = filled, at
            else:
                why = LANE
            if ready > begin:
                begin, by, behind, why = ready, wait.bar, wait.bar, wait.why
            lane.busy += (interval := warm(begin, multiply))
            end = begin + interval
            if records:
                if begin > lane.free:
                    state.stall(lane, lane.free, begin, behind, why)
                bars.append((number, TENSOR, MULTIPLY, begin, end, end + latency, by, why))
            lane.free, lane.last = end, at + 1
            start = filled if filled > begin else begin
            at += 2
        state.weights_free, state.multiply_start, state.next_bar = filled, begin, at
        lane.end = end = end + latency
        if weights is not wait:
            weights.done(end + semaphore, lane.last)
        wait.done(end + semaphore, lane.last)

    return play


def transfer(state: State, site: Site) -> Step:
    """Plays a DMA: a slot of the descriptor generator, its queue, a latency, bandwidth.

    In program order every DMA of the source has its queue; reordered ones take whichever is free.
    """
    clock, bars, records = state.clock, state.bars, state.records
    (op,) = site.work
    assert isinstance(op, Transfer)
    engines, load, length = clock.transfer(op)
    idle = clock.ticks("DMA_GAP") * engines / clock.dma_engines
    share, gap = max(1, round(length * load / clock.dma_engines + idle)), round(idle)
    tail = clock.of_ns(clock.values["DMA_STAGGER"] * (engines - 1))
    begins, completes = clock.ticks(site.begins), clock.ticks("DMA_COMPLETION")
    release, floor = clock.ticks("DMA_TO_CONSUMER"), clock.ticks("DMA_QUEUE_FLOOR")
    issue = clock.ticks("DMA_ISSUE")
    wait, number = site.wait(0 if state.reorders else None), site.number
    fill, generator = state.bandwidth.fill, site.generator
    look, done = wait.look, wait.done
    queues = state.queues
    own = None if state.reorders else state.lanes[site.lane]
    state.num_ops += site.trips
    state.transfer_work += site.trips * share
    site.alone = max(0, length + gap - share)
    state.hbm_bytes += site.trips * site.hbm_bytes
    state.moved_bytes += site.trips * op.bytes

    def play() -> None:
        ready = look()
        lane = own or queues[state.turns[0][2]]
        trigger, cause, why = lane.free, lane.last, LANE
        if ready > trigger:
            trigger, cause, why = ready, wait.bar, wait.why
        if generator is not None:
            slot = generator.reserve(trigger, issue)
            if slot > trigger:
                trigger, why = slot, RESOURCE
        begin = trigger + begins
        end = max(fill(begin, share) - gap, begin + length)
        complete = end + tail + completes
        bar = state.next_bar
        state.next_bar = bar + 1
        if records:
            if trigger > lane.free:
                state.stall(lane, lane.free, trigger, cause, why)
            bars.append((number, lane.number, TRANSFER, trigger, end, complete, cause, why))
        lane.free, lane.last = trigger + floor, bar
        lane.busy += length
        if complete > lane.end:
            lane.end = complete
        if own is None:
            heapreplace(state.turns, (lane.free, bar, state.turns[0][2]))
        done(complete + release, bar)

    return play


# -- reordered ------------------------------------------------------------------------------------


def reordered_pass(state: State, site: Site) -> Step:
    """Plays an instruction of VectorE, ScalarE or GpSimdE."""
    clock, bars, lane = state.clock, state.bars, state.lanes[site.lane]
    (op,) = site.work
    assert isinstance(op, Pass) and isinstance(lane, ReorderedLane)
    interval, latency = clock.cycles(site.lane, op.interval), clock.latency(site.lane)
    semaphore = clock.ticks("SEMAPHORE")
    wait, number, ports = site.wait(latency + semaphore), site.number, site.ports
    look, done, table = wait.look, wait.done, op.table if site.lane == SCALAR else None
    own, note, reason = lane.number, bars.append, state.reason
    state.num_ops += site.trips
    state.work[site.lane] += site.trips * interval

    def play() -> None:
        ready, behind, by = look(), wait.bar, wait.why
        if table is not None:
            if state.table != table:
                _load_table(state, number, table, ready, behind, by)
            if state.table_there > ready:
                ready, behind, by = state.table_there, state.table_bar, LANE
        if ready >= lane.free and not ports:
            alone = start = ready
        else:
            alone, start = lane.first_gap(ready, interval, ports)
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


def reordered_matmul(state: State, site: Site) -> Step:
    """Plays a matmul; its weights are loaded behind the multiply before, whichever that is."""
    clock, bars = state.clock, state.bars
    lane = state.lanes[TENSOR]
    assert isinstance(lane, ReorderedLane)
    passes, latency = _matmul_passes(state, site), clock.latency(TENSOR)
    semaphore = clock.ticks("SEMAPHORE")
    lag = latency + semaphore
    wait, number = site.wait(lag), site.number
    look, done, note, reason = wait.look, wait.done, bars.append, state.reason
    warmth = state.warmth
    state.num_ops += site.trips * 2 * len(passes)
    state.work[TENSOR] += site.trips * sum([max(each) for each in passes])
    state.flops += site.trips * site.flops

    def play() -> None:
        ready, end, behind, by = look(), 0, wait.bar, wait.why
        for load, multiply in passes:
            free = lane.free
            interval = warmth.interval(max(ready, free), max(load, multiply))
            start = ready
            if ready < free:
                start = lane.first_gap(ready, interval)[0]
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
