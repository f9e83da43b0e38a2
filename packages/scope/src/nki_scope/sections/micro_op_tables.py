"""A program as a table of micro-ops and of what they touch, for other players of the model.

Who touches which bytes in which order does not depend on time: with this table, other costs, queues
and buffer counts are played without the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from neuroncore.errors import KernelError
from neuroncore.instructions import Call as MachineCall
from neuroncore.machine.core import NeuronCore
from neuroncore.machine.garbage_collection import no_collection
from neuroncore.program import Call, Program, check
from neuroncore.program.verification.findings import raise_findings
from neuroncore.targets import TARGETS
from neuroncore.timeline.compilation.buffer_places import copies
from neuroncore.timeline.compilation.call_demands import Demand, Described
from neuroncore.timeline.compilation.compiler import Compiler
from neuroncore.timeline.compilation.toolchain import Transformation
from neuroncore.timeline.dependences.regions import Region
from neuroncore.timeline.estimate import Freedoms, candidates
from neuroncore.timeline.model.bars import CAUSES, KINDS, MULTIPLY, PASS, TRANSFER
from neuroncore.timeline.model.clock import Clock, latency_name
from neuroncore.timeline.model.constants import Constants, constants, machine
from neuroncore.timeline.model.lanes import DMA, ENGINES, FIRST_QUEUE, SCALAR
from neuroncore.timeline.periodicity.steady_state import loop_player
from neuroncore.timeline.playing.sites import Site, Step
from neuroncore.timeline.playing.state import State
from neuroncore.timeline.results.timeline import LINKS
from neuroncore.work import LoadStationary, MultiplyMoving, Pass, Transfer, charging, costs

WORK_CONSTANTS = frozenset(
    {"MIN_II", "ACCESS_OVERHEAD", "GPSIMD_START", "MIN_II_DYNAMIC", "RECIPROCAL"}
)
"""Constants that records make micro-ops of; every other one is applied when these are played."""

Work = dict[str, Any]
"""What a player needs of a call, beside its regions."""


@dataclass(frozen=True, slots=True)
class Table:
    """One program in program order."""

    program: Program
    calls: list[Call]
    """By site."""
    executed: list[tuple[int, ...]]
    """Each executed instruction: its site, then the regions that it reads, writes, adds to."""
    made: list[tuple[int, str]]
    """Each allocation on chip: the number of executed instructions before it, the buffer."""
    tracks: list[str]
    """By region: the buffer, memory or register that it is in."""
    overlaps: list[tuple[int, int]]
    """Regions that share bytes, the lower number first."""
    hbm_bytes: list[int]
    """What each site moves to or from HBM."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One thing that a toolchain may make of a program; the fastest of several is its timeline."""

    table: int
    """Which table of the replay has its instructions."""
    works: list[Work]
    """By site."""
    reorders: bool
    """Whether an instruction starts in the first gap of its engine, and a DMA on any queue."""
    copies: list[dict[str, int]]
    """Buffer → how many copies take turns, by the bit length of the number of DMA queues."""


@dataclass(frozen=True, slots=True)
class Replay:
    """A program with the transformations of its toolchain, ready to be played."""

    tables: list[Table]
    candidates: dict[str, list[Candidate] | str]
    """Target → what is played there, or why the program does not run there."""


def replay(
    program: Program,
    applied: tuple[Transformation, ...] = (),
    values: Constants | None = None,
    no_others: str = "",
) -> Replay:
    """The tables of `program`, which `check` has passed, with these transformations.

    `values`: what micro-ops are made with; None are the constants of costs.json. `no_others`: why
    nothing is made for other targets.
    """
    making = _Making(applied, values or constants())
    found: dict[str, list[Candidate] | str] = {program.target: making.candidates(program)}
    for target in TARGETS:
        if target != program.target:
            found[target] = no_others or making.elsewhere(program, target)
    return Replay(making.tables, found)


def rules() -> dict[str, Any]:
    """The names, numbers and constants of the model that a player needs, by target."""
    table = costs()["constants"]
    return {
        "kinds": list(KINDS), "causes": list(CAUSES), "links": LINKS, "dma": DMA,
        "lanes": [engine.name for engine in ENGINES],
        "latency": [latency_name(n) for n in range(len(ENGINES))],
        "constants": {name: {"unit": row["unit"], "work": name in WORK_CONSTANTS}
                      for name, row in table.items()},
        "targets": {t: {"values": constants().at(t), "machine": machine(t)} for t in TARGETS},
    }  # fmt: skip


@dataclass(slots=True)
class _Making:
    """The tables of a replay, as far as they are made."""

    applied: tuple[Transformation, ...]
    values: Constants
    tables: list[Table] = field(default_factory=list)

    def elsewhere(self, program: Program, target: str) -> list[Candidate] | str:
        """The candidates on another target, or why it does not run there."""
        places = {what: p for what, p in program.places.items() if what != "target"}
        there = replace(program, target=target, places=places)
        try:
            check(there, content=False)  # what is in memory does not depend on the target
            return self.candidates(there)
        except KernelError as reason:
            return " ".join(str(reason).split("\n")[1:2]).strip() or reason.what

    def candidates(self, program: Program) -> list[Candidate]:
        """The candidates on the target of `program`."""
        values, facts = self.values.at(program.target), machine(program.target)
        found: list[Candidate] = []
        with charging(values), no_collection():
            core, clock = NeuronCore(program.target, watchers=()), Clock(facts, values)
            for made in candidates(program, core, self.applied):
                each, how = made.program, made.how
                state = State(clock, int(facts["dma_queues"]), reorders=False)
                described = Described(each, core, values)
                compiler = _Recorder(each, described, state, how.balances, not self.applied)
                candidate = Candidate(
                    self._table(compiler), compiler.works, how.reorders, _copies(compiler, how)
                )
                compiler.close()
                if candidate not in found:
                    found.append(candidate)
        return found

    def _table(self, compiler: _Recorder) -> int:
        """The number of the table of what was compiled."""
        program = compiler.program
        for number, table in enumerate(self.tables):
            if table.program is program or table.program.body == program.body:
                return number
        compiler.run()
        regions, sites = compiler.numbers, compiler.sites
        overlaps = [(n, regions[o]) for r, n in regions.items() for o in r.others if n < regions[o]]
        table = Table(
            program, [site.call for site in sites], compiler.state.bars, compiler.state.made,
            compiler.names, overlaps, [site.hbm_bytes for site in sites],
        )  # fmt: skip
        self.tables.append(table)
        return len(self.tables) - 1


def _copies(compiler: Compiler, how: Freedoms) -> list[dict[str, int]]:
    bits = range(compiler.queues.bit_length() + 1) if how.rotates else ()
    return [copies(compiler.program, compiler.core, (1 << n) - 1) for n in bits]


class _Recorder(Compiler):
    """A compiler whose steps write down which regions they touch instead of being played."""

    def __init__(
        self, program: Program, described: Described, state: State, balances: bool, in_order: bool
    ) -> None:
        super().__init__(program, described, state, balances)
        if not in_order:
            self.untracked = set()  # a lane may overtake itself, or write another copy
        self.numbers: dict[Region, int] = {}
        self.names: list[str] = []
        """By region: its track."""
        self.works: list[Work] = []
        self.steps = self.body(program.body)
        raise_findings(program, self.without_cost)

    def run(self) -> None:
        """Write everything down, in program order."""
        for step in self.steps:
            (step if callable(step) else loop_player(self, step, False))()

    def forget(self) -> None:
        """Keep all regions: none is released."""
        self.overfull.clear()

    def _step(self, site: Site, demand: Demand) -> Step:
        super()._step(site, demand)
        self.works.append(self._work(site, demand.made))
        accesses, numbers, note = site.accesses, self.numbers, self.state.bars.append

        def record() -> None:
            found = [access.fixed or access.find() for access in accesses]
            for access, region in zip(accesses, found, strict=True):
                if region not in numbers:
                    numbers[region] = len(numbers)
                    self.names.append(access.track.name)
            note((site.number, *[numbers[region] for region in found]))

        return record

    def _work(self, site: Site, made: MachineCall) -> Work:
        touched = {"reads": len(site.reads), "writes": len(site.writes), "adds": len(site.adds)}
        return {"lane": min(site.lane, FIRST_QUEUE), **touched, **self._ops(site, made)}

    def _ops(self, site: Site, made: MachineCall) -> Work:
        match site.work:
            case [Transfer() as op]:
                units = self.state.generators
                slots = (self._generator(made, FIRST_QUEUE + parity) for parity in (0, 1))
                return {
                    "kind": TRANSFER, "partitions": op.partitions, "descriptors": op.descriptors,
                    "run": op.run_bytes, "begins": site.begins,
                    "generators": [_name_of(units, slot) for slot in slots],
                }  # fmt: skip
            case [LoadStationary(), *_]:
                loads, multiplies = site.work[::2], site.work[1::2]
                both = [load.interval for load in loads if isinstance(load, LoadStationary)]
                pairs = zip(both, multiplies, strict=True)
                passes = [(a, b.interval) for a, b in pairs if isinstance(b, MultiplyMoving)]
                return {"kind": MULTIPLY, "passes": passes}
        (op,) = site.work
        assert isinstance(op, Pass)
        return {
            "kind": PASS, "interval": op.interval,
            "table": op.table if site.lane == SCALAR else None,
            "ports": [_name_of(self.state.ports, port) for port in site.ports],
        }  # fmt: skip


def _name_of(units: Mapping[str, Any], unit: object) -> str | None:
    return next((name for name, each in units.items() if each is unit), None)
