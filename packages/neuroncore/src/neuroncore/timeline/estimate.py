"""How long a program takes: verified, compiled, played."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from neuroncore.collection import no_collection
from neuroncore.core import NeuronCore
from neuroncore.errors import AttributeValueError
from neuroncore.program import Program, check
from neuroncore.program.findings import need_program, raise_findings
from neuroncore.timeline.bodies import Body
from neuroncore.timeline.clock import Clock
from neuroncore.timeline.compile import Compiler
from neuroncore.timeline.constants import Constants, machine
from neuroncore.timeline.constants import constants as published
from neuroncore.timeline.described import Described
from neuroncore.timeline.hoist import hoisted
from neuroncore.timeline.lanes import FIRST_QUEUE
from neuroncore.timeline.least import slack
from neuroncore.timeline.order import Order
from neuroncore.timeline.periodic import TooSlowError, loop_player
from neuroncore.timeline.remembered import (
    key_of,
    known_price,
    remember,
    remember_price,
    remembered,
)
from neuroncore.timeline.result import Timeline
from neuroncore.timeline.sites import Step
from neuroncore.timeline.state import State
from neuroncore.work import charging

MODES = ("as_written", "compiled")


def estimate(
    program: Program,
    target: str | None = None,
    mode: str = "as_written",
    *,
    constants: Constants | None = None,
    skip_periods: bool = True,
    verified: bool = False,
    order: Order | None = None,
) -> Timeline:
    """Play `program` on one core of `target` (None: the program's own) without executing it.

    `as_written` keeps program order on every engine and the buffers as they are allocated;
    `compiled` rotates buffers and lets engines go ahead within dependences, as the closed compiler
    is known to do, where that is faster. `skip_periods` False plays every iteration; the result is
    the same, later. `constants` None are those of costs.json. `verified` says that `check` has
    passed already. With an `order` (as_written only), instructions wait for what it says and for
    nothing else, DMAs go to the queues that it says, and every iteration is played. A program that
    differs from one of the last in names and source lines alone is not played again (as_written,
    without an order).

    Raises ProgramError with everything that is wrong with the program and every instruction whose
    cost is unknown, LaunchError for an unknown target and for what is no program,
    AttributeValueError for an unknown mode.
    """
    need_program(program)
    if mode not in MODES:
        raise AttributeValueError(
            f"{mode!r} is not a mode of the timeline", expected=" or ".join(MODES), operand="mode"
        )
    if order is not None and mode != MODES[0]:
        raise AttributeValueError(
            "an order is given and the mode makes another", expected=MODES[0], operand="mode"
        )
    if target is not None:
        places = {what: p for what, p in program.places.items() if what != "target"}
        program = replace(program, target=target, places=places)
    if not verified:
        check(program)
    values = (constants or published()).at(program.target)
    is_plain = mode == MODES[0] and order is None
    key = key_of(program, values, skip_periods) if is_plain else None
    found = remembered(key, program) if key is not None else None
    if found is None:
        found = _played(program, mode, values, skip_periods, order)
        if key is not None:
            remember(key, found)
    return found


def price_ns(program: Program, *, verified: bool = False) -> float:
    """The total (ns) of `estimate` on the program's own target, as_written, and nothing else of it.

    What a search asks of thousands of programs: of each only the number is kept. Raises as
    `estimate` does.
    """
    need_program(program)
    if not verified:
        check(program)
    model = _published(program.target)
    key = key_of(program, model.values, skip_periods=True)
    found = known_price(key)
    if found is None:
        with no_collection(), charging(model.values):  # all of it is let go at once
            state = State(model.clock, model.queues, reorders=False, records=False)
            _play(program, Described(program, model.core, model.values), state)
            found = model.clock.ns(state.end)
        remember_price(key, found)
    return found


class _Model(NamedTuple):
    """A generation with the constants that its time is made of."""

    core: NeuronCore
    facts: dict[str, Any]
    values: dict[str, float]
    clock: Clock
    queues: int

    @classmethod
    def of(cls, target: str, values: dict[str, float]) -> _Model:
        core = NeuronCore(target, watchers=())
        facts = machine(core.target.name)
        return cls(core, facts, values, Clock(facts, values), int(facts["dma_queues"]))


@cache
def _published(target: str) -> _Model:
    """As costs.json has it."""
    return _Model.of(target, published().at(target))


def _played(
    program: Program,
    mode: str,
    values: dict[str, float],
    skip_periods: bool,
    order: Order | None,
) -> Timeline:
    """The timeline of a program that is in order, played now."""
    model, plays = _Model.of(program.target, values), []
    with charging(values), no_collection():
        described = Described(program, model.core, values)
        for each, how in _ways(program, mode):
            if how == _Way(reorders=True) and not plays[0][1].dealt:
                continue  # it would be the same once more
            state = State(model.clock, model.queues, how.reorders)
            state.limit = min([state.end for state, _ in plays], default=None)
            skips = skip_periods and order is None
            with suppress(TooSlowError):
                compiler = _play(each, described, state, how.balances, skips, order)
                plays.append((state, compiler))
    state, compiler = min(plays, key=lambda pair: pair[0].end)
    peaks = {
        "tflops": model.facts["peak_tflops"],
        "hbm": model.facts["hbm_gbps"],
        "dma": model.facts["dma_engines"] * values["DMA_BANDWIDTH"],
    }
    return Timeline(compiler.program, mode, state, compiler.sites, values, peaks)


@dataclass(frozen=True, slots=True)
class _Way:
    """What a compiler may do: put instructions into gaps, deal out engines that were left open."""

    reorders: bool = False
    balances: bool = False


def _ways(program: Program, mode: str) -> list[tuple[Program, _Way]]:
    """What is played; a compiler takes the fastest that it knows of."""
    if mode == "as_written":
        return [(program, _Way())]
    changed = hoisted(program)
    return [(changed, _Way(True, True)), (changed, _Way(True)), (program, _Way())]


def _play(
    program: Program,
    described: Described,
    state: State,
    balances: bool = False,
    skip_periods: bool = True,
    order: Order | None = None,
) -> Compiler:
    """Raises TooSlowError where it is seen to end behind the limit of the state."""
    compiler = Compiler(program, described, state, balances, order)
    steps = compiler.body(program.body)
    raise_findings(program, compiler.without_cost)
    try:
        slacks = _slacks(state, steps)
        for step in steps:
            if callable(step):
                step()
                continue
            if slacks and state.is_late(slacks.pop()):
                raise TooSlowError
            loop_player(compiler, step, skip_periods)()
            state.used = compiler.lanes_behind(step)
    finally:
        compiler.close()
    return compiler


def _slacks(state: State, steps: list[Step | Body]) -> list[list[int]]:
    """By how much each loop and those behind it take longer than their instructions, last first.

    Only where that is known, and where it matters because there is a limit.
    """
    if state.limit is None or state.reorders:
        return []
    found = [[0] * FIRST_QUEUE]
    for step in reversed(steps):
        if not callable(step):
            found.append([a + b for a, b in zip(found[-1], slack(state.clock, step), strict=True)])
    return found[1:]
