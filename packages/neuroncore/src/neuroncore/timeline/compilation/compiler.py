"""From a program to steps that can be played: sites, tracks, lanes, ports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from neuroncore.effects import Footprint, absolute
from neuroncore.enums import DgeMode, Engine
from neuroncore.errors import UnsupportedError, Violation
from neuroncore.findings import Finding
from neuroncore.instructions import Call as MachineCall
from neuroncore.memory import Storage
from neuroncore.program import (
    Allocate,
    Buffer,
    Call,
    Loop,
    Program,
    Statement,
    calls,
)
from neuroncore.program.ir.effects import BoundEffect
from neuroncore.program.verification.findings import found
from neuroncore.timeline.compilation.buffer_places import copies
from neuroncore.timeline.compilation.call_demands import Demand, Described, balanced
from neuroncore.timeline.compilation.loops import Body, as_one
from neuroncore.timeline.dependences.access import TrackedAccess
from neuroncore.timeline.dependences.order import Order
from neuroncore.timeline.dependences.regions import Parts
from neuroncore.timeline.dependences.tracks import Track
from neuroncore.timeline.model.lanes import FIRST_QUEUE, LANE
from neuroncore.timeline.playing.micro_ops import (
    engine_pass,
    made,
    matmul,
    reordered_matmul,
    reordered_pass,
    transfer,
)
from neuroncore.timeline.playing.sites import Site, Step
from neuroncore.timeline.playing.state import State
from neuroncore.timeline.resources.ports import Ports
from neuroncore.timeline.resources.reservations import Gaps
from neuroncore.work import LoadStationary, MultiplyMoving, Pass, Transfer


class Compiler:
    """Makes a program's sites, each with its tracks and the lane that plays it."""

    def __init__(
        self, program: Program, described: Described, state: State,
        balanced: bool = False, order: Order | None = None,
        rotates: bool = False,
    ) -> None:  # fmt: skip
        self.program, self.state, self.queues = program, state, len(state.queues)
        self.core = described.core
        self.order = order
        self.copies = copies(program, self.core, self.queues) if rotates else {}
        self.buffers = described.buffers
        self.values: list[int] = []
        self.variables: dict[str, int] = {}
        self.tracks: dict[str, Track] = {}
        self.sites: list[Site] = []
        self.last_use: dict[int, int] = {}
        """Lane → the number of the last site that may take it."""
        self.overfull: list[Track] = []
        self.num_transfers = 0
        self.trips = 1
        """How often what is compiled now is executed."""
        self.without_cost: list[Finding] = []
        self.demands = described.demands
        self.is_balanced = balanced and self._balance()
        """Whether calls were given to another engine than as written."""
        self.ports = Ports(state.ports)
        self.written: set[str] = set()
        """The buffers of which some is written."""
        touched: dict[str, int] = {}
        for call in calls(program.body):
            demand = self.demands[id(call)]
            self.ports.learn(demand.ports, demand.engines)
            self.written.update(demand.changes)
            for place in demand.places:
                touched[place.buffer] = touched.get(place.buffer, 0) + 1
        self.untracked = {
            name
            for name in self.written
            if touched[name] == 1
            and not state.reorders
            and not rotates
            and not _is_placed(self.buffers[name])
        }
        """Buffers that one call alone touches, by writing: in order it never waits there."""

    @property
    def changes(self) -> set[str]:
        """The transformations that changed how it is played, by name."""
        are_made = {
            "engine_shares": self.is_balanced,
            "slot_rotation": max(self.copies.values(), default=1) > 1,
        }
        return {name for name, is_made in are_made.items() if is_made}

    def body(self, body: tuple[Statement, ...]) -> list[Step | Body]:
        """Players of these statements, in order."""
        steps: list[Step | Body] = []
        for statement in body:
            match statement:
                case Loop():
                    steps.append(self._loop(statement))
                case Call():
                    steps += self._call(statement)
                case Allocate(buffer):
                    track = self._track(buffer)
                    step = made(self.state, buffer.name, track) if buffer.space.on_chip else None
                    if step is not None:
                        steps.append(step)
        return steps

    def _loop(self, loop: Loop) -> Body:
        slot, first = len(self.values), len(self.sites)
        self.values.append(loop.start)
        outer = self.variables.get(loop.variable)
        self.variables[loop.variable] = slot
        self.trips *= loop.trips
        steps = self.body(loop.body)
        self.trips //= loop.trips or 1
        if outer is None:
            del self.variables[loop.variable]
        else:
            self.variables[loop.variable] = outer
        trips = range(loop.start, loop.stop, loop.step)
        return as_one(Body(slot, trips, steps, self.sites[first:]))

    # -- calls ------------------------------------------------------------------------------------

    def _call(self, call: Call) -> Iterator[Step]:
        demand = self.demands[id(call)]
        made, work = demand.made, demand.work
        if not work:
            self.without_cost.append(found(call, _unknown_cost(made)))
            return
        is_dma = isinstance(work[0], Transfer)
        lane = self._queue() if is_dma else LANE[work[0].engine]
        site = Site(len(self.sites), call, lane, work, self.trips)
        site.elements = demand.elements if self.state.records else 1
        if self.order is not None:
            site.gate = self.order.gate(site.number)
        for place in demand.places:
            access = self._access(place)
            if access is not None:
                site.touching(place.effect.touch).append(access)
        # A matmul that adds reads what it adds to; it does not wait for itself.
        adding = {id(access.track) for access in site.adds}
        site.reads = [a for a in site.reads if id(a.track) not in adding]
        self.sites.append(site)
        self._use(site)
        yield self._step(site, demand)

    def _step(self, site: Site, demand: Demand) -> Step:
        """The player of the site."""
        reorders = self.state.reorders
        match site.work[0]:
            case Transfer() as op:
                self._count_bytes(site, demand.made, op)
                site.begins = _begins(demand.made)
                site.generator = self._generator(demand.made, site.lane)
                return transfer(self.state, site)
            case LoadStationary():
                flops = [op.flops for op in site.work if isinstance(op, MultiplyMoving)]
                site.flops = sum(flops)
                return (reordered_matmul if reorders else matmul)(self.state, site)
        site.ports = self.ports.of(demand.ports)
        return (reordered_pass if reorders else engine_pass)(self.state, site)

    def _balance(self) -> bool:
        """Distribute the calls that leave their engine open evenly over VectorE and ScalarE.

        Whether any was given to another engine than as written.
        """
        ways = {
            id(call): [demand, *demand.elsewhere(call)]
            for call in calls(self.program.body)
            for demand in [self.demands[id(call)]]
        }
        passes = {key: [op for way in each for op in way.passes] for key, each in ways.items()}
        chosen = balanced(self.program.body, self.state.clock, passes)
        self.demands = self.demands | {key: ways[key][way] for key, way in chosen.items()}
        return any(chosen.values())

    def _access(self, place: BoundEffect) -> TrackedAccess | None:
        if place.at_zero is None:
            track = self.tracks.setdefault(place.effect.operand, Track(place.effect.operand))
            return TrackedAccess(track, self.values)
        if place.buffer not in self.written or place.buffer in self.untracked:
            return None
        buffer = self.buffers[place.buffer]
        offset = place.offset
        terms = tuple((self.variables[n], c * place.width) for n, c in offset.terms)
        track = self._track(buffer)
        return TrackedAccess(
            track, self.values, offset.constant * place.width, terms, place.at_zero,
            self._in_memory(buffer),
        )  # fmt: skip

    def _track(self, buffer: Buffer) -> Track:
        """A tensor's own; those with a fixed address share their memory's."""
        shared = _is_placed(buffer)
        name = f"{buffer.space.name}@" if shared else buffer.name
        found = self.tracks.get(name)
        if found is None:
            found = Track(name, self.copies.get(name, 1), shared, self.overfull)
            self.tracks[name] = found
        return found

    def lanes_behind(self, body: Body) -> set[int]:
        """The lanes of what is played when an outermost loop is through."""
        at = body.sites[-1].number + 1 if body.sites else 0
        return {lane for lane, last in self.last_use.items() if last >= at}

    def _lanes(self, site: Site) -> Iterable[int]:
        """The lanes that it may take: reordered transfers take any queue."""
        if site.lane < FIRST_QUEUE or not self.state.reorders:
            return (site.lane,)
        return [queue.number for queue in self.state.queues]

    def close(self) -> None:
        """Nothing is played any more: drop what only playing needs."""
        for track in self.tracks.values():
            track.close()

    def forget(self) -> None:
        """Drop regions without waiters: every lane of the program is past them."""
        before = self.state.earliest
        for track in self.overfull:
            track.forget(before)
        self.overfull.clear()

    def _in_memory(self, buffer: Buffer) -> Callable[[Footprint], Parts] | None:
        if not _is_placed(buffer):
            return None
        storage = Storage(
            np.empty(0), buffer.shape, buffer.dtype, buffer.space, address=buffer.address
        )
        return lambda found: absolute(storage, found, self.core.target)

    # -- what DMAs and passes share ---------------------------------------------------------------

    def _use(self, site: Site) -> None:
        """Note which lanes it takes, an engine for how long."""
        state, lane = self.state, site.lane
        self.last_use.update(dict.fromkeys(self._lanes(site), site.number))
        state.used.update(self.last_use)
        if lane < FIRST_QUEUE:
            used = [op for op in site.work if isinstance(op, Pass | MultiplyMoving)]
            ticks = [state.clock.cycles(lane, op.interval) for op in used]
            site.shortest = min(ticks)

    def _queue(self) -> int:
        """Every DMA of the source has its queue, as far as there are some; reordered ones share."""
        if self.state.reorders:
            return FIRST_QUEUE
        if self.order is not None:
            return FIRST_QUEUE + self.order.queue(len(self.sites)) % self.queues
        self.num_transfers += 1
        return FIRST_QUEUE + (self.num_transfers - 1) % self.queues

    def _generator(self, call: MachineCall, lane: int) -> Gaps | None:
        """The unit that makes the descriptors: GpSimdE, one of two hardware units, or none."""
        mode = call.attrs.get("dge_mode", DgeMode.unknown)
        dynamic = any(spec.indirect is not None for spec in call.tiles.values())
        if mode is DgeMode.swdge or (dynamic and mode is DgeMode.unknown):
            return self.state.generators["gpsimd"]
        if mode is not DgeMode.hwdge:
            return None  # addresses are known: descriptors are in HBM beforehand
        engine = call.attrs.get("engine", Engine.unknown)
        if engine is Engine.unknown:
            engine = (Engine.sync, Engine.scalar)[(lane - FIRST_QUEUE) % 2]
        return self.state.generators[engine.name]

    @staticmethod
    def _count_bytes(site: Site, call: MachineCall, op: Transfer) -> None:
        ends = sum(not spec.space.on_chip for spec in call.tiles.values())
        site.hbm_bytes = op.bytes * ends


def _begins(call: MachineCall) -> str:
    """The constant of a load, or of a store out of on-chip memory."""
    dst, src = call.tiles.get("dst"), call.tiles.get("src")
    is_store = dst is not None and src is not None and src.space.on_chip > dst.space.on_chip
    return "DMA_STORE_START" if is_store else "DMA_START"


def _is_placed(buffer: Buffer) -> bool:
    """Whether it may share bytes with others: on chip, at an address that is given."""
    return buffer.address is not None and buffer.space.on_chip


def _unknown_cost(call: MachineCall) -> Violation:
    return Violation(
        UnsupportedError,
        f"no cost is known for {call.record.name} on {call.target.name}",
        None,
        expected="an instruction whose record declares its work",
        hint="estimate the program for another target, or leave the instruction out",
    )
