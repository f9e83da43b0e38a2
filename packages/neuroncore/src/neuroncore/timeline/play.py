"""Plays micro-ops: when each instruction starts, what it waited for, when its result is there.

Instructions are taken in program order. Each waits for its lane (in-order streams), for what it
reads (until it is written), for what it writes (until it is read and written), and for shared
resources (ports, DMA bandwidth, descriptor generators), which are taken first come, first gap.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from neuroncore.timeline.access import TrackedAccess
from neuroncore.timeline.clock import Clock
from neuroncore.timeline.gaps import Gaps
from neuroncore.timeline.lanes import FIRST_QUEUE, SCALAR, TENSOR, Warmth
from neuroncore.timeline.sites import Site, Step
from neuroncore.timeline.tracks import NOBODY, Region
from neuroncore.work import LoadStationary, MultiplyMoving, Pass, Transfer

WEIGHTS, MULTIPLY, PASS, TABLE, TRANSFER = range(5)
KINDS = ("load_stationary", "multiply_moving", "pass", "table_load", "transfer")

DATA, SPACE, LANE, RESOURCE = range(4)
CAUSES = ("data", "buffer", "engine", "resource")
"""Why an instruction did not start earlier: its operands are being made, its destination is still
in use, its engine is busy, a port or descriptor generator or queue is."""


class Played(NamedTuple):
    """One micro-op in ticks: its engine is occupied from start to free, its result there at end."""

    site: int
    kind: int
    start: int
    free: int
    end: int
    cause: int
    """The bar it waited for (NOBODY: none)."""
    why: int


@dataclass(slots=True)
class Lane:
    """An in-order stream."""

    free: int = 0
    last: int = NOBODY
    """Its latest bar."""
    busy: int = 0
    end: int = 0
    """When its last result is there."""
    stalls: dict[tuple[int, int], int] = field(default_factory=dict)
    """(cause, lane waited for) → ticks."""


class State:
    """Everything that changes while a program is played."""

    def __init__(self, clock: Clock, num_queues: int) -> None:
        self.clock = clock
        self.lanes = [Lane() for _ in range(FIRST_QUEUE + num_queues)]
        self.bars: list[Played] = []
        self.site_lanes: list[int] = []
        self.weights_free = 0
        self.multiply_start = 0
        self.warmth = Warmth(clock.ticks("WARM_UP"))
        self.table: str | None = None
        self.bandwidth = Gaps()
        self.generators = {name: Gaps() for name in ("gpsimd", "sync", "scalar")}
        self.ports: dict[str, Gaps] = {}
        self.num_ops = 0
        self.hbm_bytes = self.moved_bytes = self.flops = 0
        self.transfer_work = 0
        self.repeats: list[tuple[int, int, int, int]] = []
        """(first bar, last bar, times, ticks): periods that were carried forward, not played."""
        self.age = 0
        """Counts iterations, so that regions know when they were touched last."""

    def counts(self) -> list[int]:
        """What only ever grows."""
        gaps = [self.bandwidth, *self.generators.values(), *self.ports.values()]
        return [
            self.num_ops, self.hbm_bytes, self.moved_bytes, self.flops, self.transfer_work,
            *[lane.busy for lane in self.lanes], *[g.busy for g in gaps],
        ]  # fmt: skip

    def add_counts(self, more: list[int]) -> None:
        """Let everything that `counts` lists grow."""
        (ops, hbm, moved, flops, work), rest = more[:5], more[5:]
        self.num_ops += ops
        self.hbm_bytes += hbm
        self.moved_bytes += moved
        self.flops += flops
        self.transfer_work += work
        gaps = [self.bandwidth, *self.generators.values(), *self.ports.values()]
        for owner, count in zip((*self.lanes, *gaps), rest, strict=True):
            owner.busy += count

    def stall(self, lane: Lane, start: int, cause: int, why: int) -> None:
        """The lane idles until `start`."""
        if lane.last == NOBODY or start <= lane.free:
            return
        behind = NOBODY
        if why != RESOURCE and cause >= 0:
            behind = self.site_lanes[self.bars[cause].site]
        key = (why, min(behind, FIRST_QUEUE))
        lane.stalls[key] = lane.stalls.get(key, 0) + start - lane.free


class Wait:
    """What holds an instruction back: the latest release among its regions."""

    __slots__ = ("adds", "bar", "lane", "reads", "ready", "regions", "why", "writes")

    def __init__(self, site: Site, reads: list[TrackedAccess]) -> None:
        self.lane, self.reads, self.writes, self.adds = site.lane, reads, site.writes, site.adds
        self.ready, self.bar, self.why = 0, NOBODY, LANE
        self.regions: list[Region] = []

    def look(self) -> int:
        """When everything is ready; `bar` and `why` say what was last."""
        ready, bar, why, lane = 0, NOBODY, LANE, self.lane
        self.regions = regions = []
        for access in self.reads:
            region = access()
            regions.append(region)
            if region.written > ready:
                ready, bar, why = region.written, region.writer, DATA
            for other in region.others:
                if other.written > ready:
                    ready, bar, why = other.written, other.writer, DATA
        for access in self.writes:
            region = access()
            regions.append(region)
            for one in (region, *region.others) if region.others else (region,):
                if one.wlane != lane and one.written > ready:
                    ready, bar, why = one.written, one.writer, SPACE
                if one.rlane != lane:
                    if one.read > ready:
                        ready, bar, why = one.read, one.reader, SPACE
                elif one.read2 > ready:
                    ready, bar, why = one.read2, one.reader2, SPACE
        for access in self.adds:
            region = access()
            regions.append(region)
            for one in (region, *region.others) if region.others else (region,):
                if one.wlane != lane and one.written > ready:
                    ready, bar, why = one.written, one.writer, DATA
                if one.rlane != lane:
                    if one.read > ready:
                        ready, bar, why = one.read, one.reader, SPACE
                elif one.read2 > ready:
                    ready, bar, why = one.read2, one.reader2, SPACE
        self.ready, self.bar, self.why = ready, bar, why
        return ready

    def done(self, release: int, bar: int, age: int) -> None:
        """The instruction lets go of everything at `release`."""
        lane, reads = self.lane, len(self.reads)
        for number, region in enumerate(self.regions):
            region.age = age
            if number < reads:
                region.was_read(lane, release, bar)
            else:
                region.was_written(lane, release, bar)


def engine_pass(state: State, site: Site) -> Step:
    """Plays an instruction of VectorE, ScalarE or GpSimdE."""
    clock, lane, bars = state.clock, state.lanes[site.lane], state.bars
    (op,) = site.work
    assert isinstance(op, Pass)
    interval = clock.cycles(site.lane, op.interval)
    latency = clock.latency(site.lane)
    semaphore = clock.ticks("SEMAPHORE")
    loading = clock.cycles(SCALAR, clock.values["ACT_TABLE_LOAD"])
    wait, number, ports = Wait(site, site.reads), site.number, site.ports
    look, done, table = wait.look, wait.done, op.table if site.lane == SCALAR else None

    def play() -> None:
        ready = look()
        if table is not None and state.table != table:
            state.table = table
            bars.append(
                Played(number, TABLE, lane.free, lane.free + loading, lane.free + loading,
                       lane.last, LANE)
            )  # fmt: skip
            lane.last, lane.free = len(bars) - 1, lane.free + loading
            lane.busy += loading
            state.num_ops += 1
        start, cause, why = lane.free, lane.last, LANE
        if ready > start:
            start, cause, why = ready, wait.bar, wait.why
        for port in ports:
            moved = port.reserve(start, interval)
            if moved > start:
                start, why = moved, RESOURCE
        if start > lane.free:
            state.stall(lane, start, cause, why)
        free = start + interval
        end = free + latency
        bar = len(bars)
        bars.append(Played(number, PASS, start, free, end, cause, why))
        lane.free, lane.last = free, bar
        lane.busy += interval
        lane.end = end
        state.num_ops += 1
        done(end + semaphore, bar, state.age)

    return play


def matmul(state: State, site: Site) -> Step:
    """Plays pairs of LoadStationary and MultiplyMoving.

    Weights go into a second set of registers while the multiply before runs; results are there
    once the last pass is through.
    """
    clock, lane, bars = state.clock, state.lanes[TENSOR], state.bars
    passes = [
        (clock.cycles(TENSOR, load.interval), clock.cycles(TENSOR, multiply.interval))
        for load, multiply in zip(site.work[::2], site.work[1::2], strict=True)
        if isinstance(load, LoadStationary) and isinstance(multiply, MultiplyMoving)
    ]
    latency = clock.latency(TENSOR)
    load_latency = clock.cycles(TENSOR, clock.values["LOAD_LATENCY"])
    semaphore = clock.ticks("SEMAPHORE")
    # The stationary operand is the first one read; the others hold the multiply back.
    weights, wait = Wait(Site(0, site.call, TENSOR, []), site.reads[:1]), Wait(site, site.reads[1:])
    number, flops, warmth = site.number, site.flops, state.warmth
    look_weights, look = weights.look, wait.look

    def play() -> None:
        loaded, ready = look_weights(), look()
        end = 0
        for load, multiply in passes:
            start = max(state.weights_free, state.multiply_start)
            cause, why = lane.last, LANE
            if loaded > start:
                start, cause, why = loaded, weights.bar, weights.why
            state.weights_free = free = start + load
            bars.append(Played(number, WEIGHTS, start, free, free + load_latency, cause, why))
            begin, by = lane.free, lane.last
            why = LANE
            if free > begin:
                begin, by = free, len(bars) - 1
                why = bars[-1].why if loaded >= start else LANE
                cause = bars[-1].cause if loaded >= start else lane.last
            if ready > begin:
                begin, by, why = ready, wait.bar, wait.why
                cause = by
            if begin > lane.free:
                state.stall(lane, begin, cause, why)
            interval = warmth.interval(begin, multiply)
            state.multiply_start, lane.free = begin, begin + interval
            end = lane.free + latency
            lane.last = len(bars)
            bars.append(Played(number, MULTIPLY, begin, lane.free, end, by, why))
            lane.busy += interval
        lane.end = end
        state.num_ops += 2 * len(passes)
        state.flops += flops
        weights.done(end + semaphore, lane.last, state.age)
        wait.done(end + semaphore, lane.last, state.age)

    return play


def transfer(state: State, site: Site, generator: Gaps | None) -> Step:
    """Plays a DMA: a slot of the descriptor generator, its queue, a latency, bandwidth."""
    clock, lane, bars = state.clock, state.lanes[site.lane], state.bars
    (op,) = site.work
    assert isinstance(op, Transfer)
    engines, length = clock.transfer(op)
    share = max(1, round((length + clock.ticks("DMA_GAP")) * engines / clock.dma_engines))
    tail = clock.of_ns(clock.values["DMA_STAGGER"] * (engines - 1))
    begins, completes = clock.ticks("DMA_START"), clock.ticks("DMA_COMPLETION")
    release, floor = clock.ticks("DMA_TO_CONSUMER"), clock.ticks("DMA_QUEUE_FLOOR")
    issue = clock.ticks("DMA_ISSUE")
    wait, number, bandwidth = Wait(site, site.reads), site.number, state.bandwidth
    look, done = wait.look, wait.done
    hbm, moved = site.hbm_bytes, op.bytes

    def play() -> None:
        ready = look()
        trigger, cause, why = lane.free, lane.last, LANE
        if ready > trigger:
            trigger, cause, why = ready, wait.bar, wait.why
        if generator is not None:
            slot = generator.reserve(trigger, issue)
            if slot > trigger:
                trigger, why = slot, RESOURCE
        if trigger > lane.free:
            state.stall(lane, trigger, cause, why)
        begin = trigger + begins
        end = max(bandwidth.fill(begin, share), begin + length)
        complete = end + tail + completes
        bar = len(bars)
        bars.append(Played(number, TRANSFER, trigger, end, complete, cause, why))
        lane.free, lane.last = trigger + floor, bar
        lane.busy += length
        lane.end = max(lane.end, complete)
        state.transfer_work += share
        state.num_ops += 1
        state.hbm_bytes += hbm
        state.moved_bytes += moved
        done(complete + release, bar, state.age)

    return play
