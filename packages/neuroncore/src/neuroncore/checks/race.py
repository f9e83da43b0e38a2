"""`race`: accesses to the same HBM bytes that nothing orders.

What orders accesses, and what does not:

- The programs of a grid (SPMD programs of 0.1, logical cores from 0.2 on) run at the same time:
  nothing orders what one does with what another does. Two of them that write the same bytes, or one
  that reads what another writes, race. Accumulations into the same bytes commute. A barrier of both
  cores orders what they do with its tensor, and nothing else.
- Within a program the compiler keeps every dependence through SBUF, PSUM and HBM in program order,
  with semaphores between engines and queues (Options.dma_order "dependences"). Under "tiles" only
  what goes through on-chip tensors or one engine's stream orders two DMAs, not the HBM bytes that
  they share.
- The rows of one scatter are written in no order: an index that comes twice races with itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from neuroncore.checks._check import Check
from neuroncore.checks.report import Report
from neuroncore.checks.tensor_labels import Lines, Made, described, label
from neuroncore.effects import Touch
from neuroncore.enums import Engine
from neuroncore.errors import UnsupportedError
from neuroncore.findings import Certainty, Finding
from neuroncore.machine.accesses import Touched, conflict, touched
from neuroncore.machine.launch import RUNNING
from neuroncore.machine.observe import Event, Watcher
from neuroncore.memory import Shadow, Storage, View, is_gathered, named_elements
from neuroncore.source_location import Place

GRID = "NKI: programs of a grid run in no order"
SCATTER = "NKI: DMA writes the rows of an indirect access in no order"
QUEUES = "Options.dma_order: DMAs are ordered by what goes through on-chip tensors"


@dataclass(frozen=True, slots=True)
class _Access:
    """Which program touched memory where, and how."""

    program: tuple[int, ...]
    instruction: str
    place: Place | None
    touch: Touch

    def __str__(self) -> str:
        return f"{self.instruction} ({_VERBS[self.touch]}) at {self.place}"


_VERBS = {Touch.read: "reads", Touch.write: "writes", Touch.accumulate: "accumulates"}


@dataclass(slots=True)
class _Tensor:
    """Per element of an HBM tensor and kind of access: the first program's last access, by number.

    The machine runs programs one after another, so that the first is enough: a later program that
    does not conflict with it conflicts with no earlier program.
    """

    made: Made
    first: dict[Touch, Shadow] = field(default_factory=dict)

    def of(self, touch: Touch, storage: Storage) -> Shadow:
        """Numbers of accesses, -1 where there is none."""
        if touch not in self.first:
            self.first[touch] = Shadow.beside(storage, -1, np.int32)
        return self.first[touch]


class Race(Watcher):
    """Remembers who touched which HBM bytes and reports unordered conflicts."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self._lines = Lines()
        self._accesses: list[_Access] = []
        self._numbers: dict[_Access, int] = {}
        self._programs = np.zeros(0, np.int32)
        """The program of every access, by a number of its own."""
        self._known: dict[tuple[int, ...], int] = {}
        self._streams: dict[tuple[int, tuple[int, ...]], Streams] = {}

    def told(self, consumer: Place | None, producers: Sequence[Place | None]) -> None:
        launch = RUNNING.get()
        if launch is not None and launch.core.options.dma_order == "tiles":
            raise UnsupportedError(
                "an edge of depends_on or with_schedule, which dma_order='tiles' cannot say",
                place=consumer, got=f"it waits for {', '.join(map(str, producers))}",
                hint="leave it out, or take dma_order='dependences'", rule=QUEUES,
            )  # fmt: skip

    def returned(self, value: Any) -> None:
        launch = RUNNING.get()
        if launch is not None:
            self._streams.pop((launch.number, launch.program), None)

    def allocated(self, storage: Storage) -> None:
        if not storage.space.on_chip:
            assert storage.notes is not None
            storage.notes[self] = _Tensor(self._lines.made(storage))

    def will(self, event: Event) -> None:
        self._scatters(event)
        launch = RUNNING.get()
        if launch is None:
            return
        if prod(launch.grid) > 1:
            for touch, view in _in_hbm(event):
                self._touched(event, launch.program, touch, view)
        if event.call.options.dma_order == "tiles":
            streams = self._streams.setdefault((launch.number, launch.program), Streams())
            for earlier, storage in streams.unordered(event):
                self._report_queues(event, earlier, storage)

    def arrived(self, data: View) -> None:
        assert data.storage.notes is not None
        data.storage.notes[self].first.clear()

    # -- programs of a grid -----------------------------------------------------------------------

    def _touched(self, event: Event, program: tuple[int, ...], touch: Touch, view: View) -> None:
        assert view.storage.notes is not None
        tensor: _Tensor = view.storage.notes[self]
        access = _Access(program, event.call.record.name, event.place, touch)
        for other, shadow in tensor.first.items():
            if touch is not other or touch is Touch.write:
                self._compare(access, view, shadow)
        self._remember(tensor, access, view)

    def _compare(self, access: _Access, view: View, shadow: Shadow) -> None:
        numbers = shadow.get(view)
        if numbers is None:
            return
        foreign = self._foreign(numbers, access)
        if not foreign.any():
            return
        earlier = self._accesses[int(numbers[foreign].flat[0])]
        self._report_grid(access, earlier, view, int(np.count_nonzero(foreign)))

    def _remember(self, tensor: _Tensor, access: _Access, view: View) -> None:
        number = self._numbers.get(access)
        if number is None:
            number = self._numbers[access] = len(self._accesses)
            self._accesses.append(access)
            program = self._known.setdefault(access.program, len(self._known))
            self._programs = np.append(self._programs, np.int32(program))
        first = tensor.of(access.touch, view.storage)
        held = first.get(view)
        if held is not None:
            first.set(view, number, ~self._foreign(held, access))

    def _foreign(self, numbers: np.ndarray, access: _Access) -> np.ndarray:
        """Which of these accesses are another program's."""
        if not self._accesses:
            return np.zeros(numbers.shape, np.bool_)
        return (numbers >= 0) & (self._programs[numbers] != self._known.get(access.program, -1))

    def _made(self, storage: Storage) -> Made:
        assert storage.notes is not None
        return storage.notes[self].made

    def _report_grid(self, access: _Access, earlier: _Access, view: View, count: int) -> None:
        name = label(view.storage)
        other, now = (_VERBS[t] for t in (earlier.touch, access.touch))
        much = f"{count:,} element" + "s" * (count > 1)
        self.report.add(
            Finding(
                "race",
                f"program {_number(access)} {now} {much} of {name} that "
                f"program {_number(earlier)} {other}",
                access.place,
                expected="programs of a grid that touch different elements, unless all read",
                got=f"{name}{self._made(view.storage)}: {described(view.storage)}",
                cure="give each program its own part, by nl.program_id",
                source=GRID,
                code="grid",
                instruction=access.instruction,
                notes=(f"the other: {earlier}",),
            )
        )

    # -- one program ------------------------------------------------------------------------------

    def _scatters(self, event: Event) -> None:
        if _accumulates(event):
            return
        for name in event.call.record.outputs:
            view = event.views.get(name)
            if not isinstance(view, View) or view.buffer.on_chip or not is_gathered(view):
                continue
            elements, valid = named_elements(view)
            rows = elements.reshape(len(elements), -1)[valid]
            repeated = rows.size - np.unique(rows).size
            if repeated:
                self.report.add(
                    Finding(
                        "race",
                        f"{name} names {repeated:,} elements twice",
                        event.place,
                        expected="each row named by one index",
                        got=f"{len(rows)} rows of {described(view.storage)}",
                        cure="make the indices unique, or add the rows up",
                        source=SCATTER,
                        code="scatter",
                        instruction=event.call.record.name,
                        operand=name,
                    )
                )

    def _report_queues(self, event: Event, earlier: str, storage: Storage) -> None:
        name = label(storage)
        self.report.add(
            Finding(
                "race",
                f"nothing but {name} itself orders this DMA behind an earlier one",
                event.place,
                expected="a tensor in SBUF that the later one waits for",
                got=f"{name}{self._made(storage)}: {described(storage)}",
                source=QUEUES,
                code="queues",
                certainty=Certainty.ASSUMED,
                instruction=event.call.record.name,
                notes=(f"the other: {earlier}",),
            )
        )


def _number(access: _Access) -> str:
    return str(access.program[0] if len(access.program) == 1 else access.program)


def _accumulates(event: Event) -> bool:
    return event.call.attrs.get("dst_rmw_op") is not None


def _in_hbm(event: Event) -> list[tuple[Touch, View]]:
    """The HBM operands and how they are touched; what is added into is neither read nor written."""
    found: dict[str, Touch] = {}
    for effect in event.call.effects:
        if not effect.is_register and "." not in effect.operand:
            found[effect.operand] = effect.touch
    if _accumulates(event):
        found["dst"] = Touch.accumulate
    views = [(touch, event.views[name]) for name, touch in found.items()]
    return [(t, v) for t, v in views if isinstance(v, View) and not v.storage.space.on_chip]


Ended = int
"""A set of DMAs, one bit for each."""


@dataclass(slots=True)
class Streams:
    """Completed work, by on-chip tensor and by engine; the DMAs that accessed HBM so far."""

    _written: dict[Storage, Ended] = field(default_factory=lambda: defaultdict(int))
    _read: dict[Storage, Ended] = field(default_factory=lambda: defaultdict(int))
    _engines: dict[Engine, Ended] = field(default_factory=lambda: defaultdict(int))
    _dmas: dict[Storage, list[tuple[int, Touched, str]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _count: int = 0

    def unordered(self, event: Event) -> Iterator[tuple[str, Storage]]:
        """The earlier DMAs that this one conflicts with and does not wait for."""
        places = [t for t in touched(event) if isinstance(t.where, Storage)]
        chip = [t for t in places if _storage(t).space.on_chip]
        ended = self._before(event, chip)
        if event.call.engine is Engine.dma:
            for mine in (t for t in places if not _storage(t).space.on_chip):
                known = self._dmas[_storage(mine)]
                for number, other, text in known:
                    if not ended >> number & 1 and conflict(mine, other):
                        yield text, _storage(mine)
                        break
                known.append((self._count, mine, f"{event.call.record.name} at {event.place}"))
            ended |= 1 << self._count
            self._count += 1
        self._after(event, chip, ended)

    def _before(self, event: Event, chip: list[Touched]) -> Ended:
        ended = 0
        for place in chip:
            where = _storage(place)
            ended |= self._written[where]
            if place.touch is not Touch.read:
                ended |= self._read[where]
        return ended | (0 if event.call.engine is Engine.dma else self._engines[event.call.engine])

    def _after(self, event: Event, chip: list[Touched], ended: Ended) -> None:
        for place in chip:
            memory = self._read if place.touch is Touch.read else self._written
            memory[_storage(place)] |= ended
        if event.call.engine is not Engine.dma:
            self._engines[event.call.engine] |= ended


def _storage(place: Touched) -> Storage:
    assert isinstance(place.where, Storage)
    return place.where


CHECK = Check("race", "no two accesses to the same HBM bytes conflict without an order", Race)
