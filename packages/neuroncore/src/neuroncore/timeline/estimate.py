"""Estimates: a program is verified, compiled and played."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from numbers import Integral
from typing import Any, NamedTuple

from neuroncore.errors import AttributeValueError, CapacityError, ProgramError
from neuroncore.machine.core import NeuronCore
from neuroncore.machine.garbage_collection import no_collection
from neuroncore.options import Options
from neuroncore.program import Program, check
from neuroncore.program.verification.findings import need_program, raise_findings
from neuroncore.targets import resolve_target
from neuroncore.timeline.compilation.call_demands import Described
from neuroncore.timeline.compilation.compiler import Compiler
from neuroncore.timeline.compilation.toolchain import (
    Transformation,
    in_force,
    rewriting,
)
from neuroncore.timeline.dependences.order import Order
from neuroncore.timeline.model.clock import Clock
from neuroncore.timeline.model.constants import Constants, machine
from neuroncore.timeline.model.constants import constants as published
from neuroncore.timeline.periodicity.steady_state import loop_player
from neuroncore.timeline.playing.state import State, TooLateError
from neuroncore.timeline.results.timeline import Timeline
from neuroncore.work import charging

DEVICE = "device"
MODES = ("as_written", DEVICE)


def estimate(
    program: Program,
    target: str | None = None,
    mode: str = DEVICE,
    *,
    constants: Constants | None = None,
    skip_periods: bool = True,
    verified: bool = False,
    order: Order | None = None,
    without: Collection[str] = (),
    cores: int = 1,
) -> Timeline:
    """Play `program` on one core of `target` (None: the program's own) without executing it.

    `device` is the program as the toolchain of its NKI version makes it (`compilation.toolchain`),
    less the transformations named by `without`; `as_written` keeps program order on every engine
    and the buffers as they are allocated. `skip_periods` False plays every iteration; the result is
    the same, later. `constants` None are the constants of costs.json. `verified`: `check` has
    passed already. With an `order` (as_written only), instructions wait for what it says and for
    nothing else, DMAs go to the queues that it says, and every iteration is played. Of several
    `cores` that run at once, it is one: they share HBM.

    Raises ProgramError with everything that is wrong with the program (one that does not fit has a
    time, see `reject_illegal`) and every instruction whose cost is unknown, LaunchError for an
    unknown target and for anything but a program, AttributeValueError for an unknown mode and a
    number of cores that no launch has.
    """
    need_program(program)
    _reject_options(mode, order, cores)
    if target is not None:
        places = {what: p for what, p in program.places.items() if what != "target"}
        program = replace(program, target=target, places=places)
    if not verified:
        reject_illegal(program)
    generation = resolve_target(program.target).name
    if program.target != generation:  # "inf2", "gen2"
        program = replace(program, target=generation)
    values = (constants or published()).shared_by(cores, program.target).at(program.target)
    applied = in_force(program, without) if mode == DEVICE else ()
    return _played(program, mode, values, skip_periods, order, applied, cores)


def _reject_options(mode: str, order: Order | None, cores: int) -> None:
    """Raises AttributeValueError for a value that none can have."""
    if mode not in MODES:
        raise AttributeValueError(
            f"{mode!r} is not a mode of the timeline", expected=" or ".join(MODES), operand="mode"
        )
    if order is not None and mode != MODES[0]:
        raise AttributeValueError(
            "an order is given and the mode makes another", expected=MODES[0], operand="mode"
        )
    if isinstance(cores, bool) or not isinstance(cores, Integral) or cores < 1:
        raise AttributeValueError(
            f"a kernel cannot run on {cores!r} cores",
            expected="an integer from 1 on: how many run at once", operand="cores",
        )  # fmt: skip


def reject_illegal(program: Program, options: Options | None = None) -> None:
    """Raises ProgramError with what is wrong with the program; one that does not fit has a time.

    Its time does not depend on the values of tensors: they may be undefined.
    """
    try:
        check(program, options, content=False)
    except ProgramError as wrong:
        others = [e for e in wrong.errors if not isinstance(e, CapacityError)]
        if others:
            raise


def latency_ns(program: Program, *, verified: bool = False) -> float:
    """The total (ns) of `estimate` on the program's own target, as_written, and nothing else of it.

    For searches over thousands of programs: only the number is kept. Raises as `estimate` does, and
    ProgramError for a program that does not fit or reads undefined values: neither is a candidate.
    """
    need_program(program)
    if not verified:
        check(program)
    model = _published(program.target)
    with no_collection(), charging(model.values):  # all of it is freed at once
        state = State(model.clock, model.queues, reorders=False, records=False)
        _play(program, Described(program, model.core, model.values), state)
        return model.clock.ns(state.end)


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
    applied: tuple[Transformation, ...],
    cores: int,
) -> Timeline:
    """The timeline of a program that is in order, played now."""
    model = _Model.of(program.target, values)
    plays: list[tuple[State, Compiler, Candidate]] = []
    skips = skip_periods and order is None
    with charging(values), no_collection():
        known: dict[int, Described] = {}
        same: set[tuple[int, Freedoms]] = set()
        """What would be played once more where no call was given to another engine."""
        for each in candidates(program, model.core, applied):
            made, how = each.program, each.how
            if (id(made), how) in same:
                continue
            if id(made) not in known:
                known[id(made)] = Described(made, model.core, values)
            state = State(model.clock, model.queues, how.reorders)
            state.limit = min([best.end for best, _, _ in plays], default=None)
            with suppress(TooLateError):
                compiler = _play(made, known[id(made)], state, how, skips, order)
                plays.append((state, compiler, each))
                if not compiler.is_balanced:
                    same.add((id(made), replace(how, balances=False)))
    state, compiler, best = min(plays, key=lambda play: play[0].end)
    peaks = {
        "tflops": model.facts["peak_tflops"],
        "hbm": model.facts["hbm_gbps"],
        "dma": model.facts["dma_engines"] * values["DMA_BANDWIDTH"],
    }
    changes = {each.name for each in best.changes} | compiler.changes
    return Timeline(
        compiler.program, mode, state, compiler.sites, values, peaks, applied, program, changes,
        cores,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Freedoms:
    """Freedoms of a compiler: put instructions into gaps, distribute open calls over engines,
    give buffers of loops several places.
    """

    reorders: bool = False
    balances: bool = False
    rotates: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """A program that a toolchain may make, and how it is played."""

    program: Program
    how: Freedoms = Freedoms()
    changes: tuple[Transformation, ...] = ()
    """The transformations that rewrote it."""


def candidates(
    program: Program, core: NeuronCore, applied: tuple[Transformation, ...]
) -> list[Candidate]:
    """What is played of a program with these transformations; the fastest, the first of several,
    is its timeline. The last one is the program as written.
    """
    if not applied:
        return [Candidate(program)]
    names = {each.name for each in applied}
    how = Freedoms("scheduling" in names, "engine_shares" in names, "slot_rotation" in names)
    made, changes = rewriting(program, core, applied)
    found = [Candidate(made, how, changes)]
    if any(each.if_faster for each in changes):
        always = [each for each in applied if not each.if_faster]
        other, fewer = rewriting(program, core, always)
        found.append(Candidate(other, how, fewer))
    unbalanced = [replace(each, how=replace(how, balances=False)) for each in found if how.balances]
    return [*found, *unbalanced, Candidate(program)]


def _play(
    program: Program,
    described: Described,
    state: State,
    how: Freedoms = Freedoms(),
    skip_periods: bool = True,
    order: Order | None = None,
) -> Compiler:
    """Play `program` on `state`."""
    compiler = Compiler(program, described, state, how.balances, order, how.rotates)
    steps = compiler.body(program.body)
    raise_findings(program, compiler.without_cost)
    try:
        for step in steps:
            if state.is_too_late:
                raise TooLateError
            if callable(step):
                step()
                continue
            loop_player(compiler, step, skip_periods)()
            state.used = compiler.lanes_behind(step)
    finally:
        compiler.close()
    return compiler
