"""A program as a table of micro-ops and of what they touch, for other players of the model.

Who touches which bytes in which order does not depend on time: with this table, other costs, queues
and buffer counts are played without the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from neuroncore.errors import KernelError
from neuroncore.instructions import Call as MachineCall
from neuroncore.machine.core import NeuronCore
from neuroncore.machine.garbage_collection import no_collection
from neuroncore.program import Call, Program, check
from neuroncore.program.verification.findings import raise_findings
from neuroncore.targets import TARGETS
from neuroncore.timeline.compilation.call_demands import Demand, Described
from neuroncore.timeline.compilation.compiler import Compiler
from neuroncore.timeline.dependences.regions import Region
from neuroncore.timeline.model.bars import CAUSES, KINDS, MULTIPLY, PASS, TRANSFER
from neuroncore.timeline.model.clock import PARTITIONS_PER_DMA_ENGINE, Clock, latency_name
from neuroncore.timeline.model.constants import constants, machine
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
class Replay:
    """One program, ready to be played in program order."""

    calls: list[Call]
    """By site."""
    works: dict[str, list[Work] | str]
    """Target → the work of each site, or why the program does not run there."""
    executed: list[tuple[int, ...]]
    """Each executed instruction: its site, then the regions that it reads, writes, adds to."""
    made: list[tuple[int, str]]
    """Each allocation on chip: the number of executed instructions before it, the buffer."""
    tracks: list[str]
    """By region: the buffer, memory or register that it is in."""
    overlaps: list[tuple[int, int]]
    """Regions that share bytes, the lower number first."""


def replay(program: Program) -> Replay:
    """The table of `program`, which `check` has passed."""
    compiler = _compiled(program)
    compiler.run()
    regions = compiler.numbers
    works: dict[str, list[Work] | str] = {program.target: compiler.works}
    for target in TARGETS:
        if target != program.target:
            works[target] = _works(program, target)
    overlaps = [(n, regions[o]) for r, n in regions.items() for o in r.others if n < regions[o]]
    compiler.close()
    return Replay(
        [site.call for site in compiler.sites], works, compiler.state.bars, compiler.state.made,
        compiler.names, overlaps,
    )  # fmt: skip


def rules() -> dict[str, Any]:
    """The names, numbers and constants of the model that a player needs, by target."""
    table = costs()["constants"]
    return {
        "kinds": list(KINDS), "causes": list(CAUSES), "links": LINKS, "dma": DMA,
        "lanes": [engine.name for engine in ENGINES],
        "latency": [latency_name(n) if e.name != "sync" else "" for n, e in enumerate(ENGINES)],
        "partitionsPerDmaEngine": PARTITIONS_PER_DMA_ENGINE,
        "constants": {name: {"unit": row["unit"], "work": name in WORK_CONSTANTS}
                      for name, row in table.items()},
        "targets": {t: {"values": constants().at(t), "machine": machine(t)} for t in TARGETS},
    }  # fmt: skip


def _works(program: Program, target: str) -> list[Work] | str:
    places = {what: p for what, p in program.places.items() if what != "target"}
    there = replace(program, target=target, places=places)
    try:
        check(there)
        return _compiled(there).works
    except KernelError as reason:
        return " ".join(str(reason).split("\n")[1:2]).strip() or reason.what


def _compiled(program: Program) -> _Recorder:
    values = constants().at(program.target)
    facts = machine(program.target)
    with charging(values), no_collection():
        described = Described(program, NeuronCore(program.target, watchers=()), values)
        state = State(Clock(facts, values), int(facts["dma_queues"]), reorders=False)
        return _Recorder(program, described, state)


class _Recorder(Compiler):
    """A compiler whose steps write down which regions they touch instead of being played."""

    def __init__(self, program: Program, described: Described, state: State) -> None:
        super().__init__(program, described, state)
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
