"""nisa.core_barrier: both cores of a launch reach a point before either goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from neuroncore.enums import Engine, MemorySpace
from neuroncore.errors import (
    AttributeValueError,
    KernelError,
    SignatureError,
    UnsupportedError,
)
from neuroncore.isa.functions import Handle, handle_of
from neuroncore.machine.launch import Launch, running
from neuroncore.machine.loop_trace import act
from neuroncore.memory import View
from neuroncore.notes import note_without_effect
from nki_beta2.kernel.jit import Language

NAME = "core_barrier"
RULE = "NKI: nisa.core_barrier"
BOTH = (0, 1)
_SHARED = (MemorySpace.shared_hbm, MemorySpace.hbm)
"""Where both cores find `data`: shared HBM, and the arguments of the kernel."""


@dataclass(slots=True, eq=False)
class _Arrival:
    """One core at a barrier; `is_reported` once the watchers have been told of both."""

    data: View
    is_reported: bool = False


def core_barrier(language: Language) -> Callable[..., Handle | None]:
    """The function as this version has it: the default engine changed with 0.3."""
    default = Engine.gpsimd if language.version >= (0, 3) else Engine.unknown

    def function(
        data: View, cores: Any, engine: Engine = default, name: str | None = None
    ) -> Handle | None:
        """Order what both cores do with `data` around this point.

        cores: (0, 1) on a launch on two; naming the own core alone waits for nothing. data: in
        shared HBM or an argument; of another memory each core has its own. Both cores must call it,
        in the same order.
        """
        launch = running(f"nisa.{NAME}")
        found = _numbers(cores)
        for wrong in _violations(launch, data, found, cores, engine):
            wrong.instruction = NAME
            raise wrong
        if found == BOTH:
            act(launch.core, lambda: _wait(launch, data))
        else:
            note_without_effect(f"nisa.{NAME} of core {found[0]}", "it waits for no other", RULE)
        return handle_of(language.version)

    function.__name__, function.__qualname__ = NAME, f"nisa.{NAME}"
    function.__module__ = "nki.isa"
    return function


def _wait(launch: Launch, data: View) -> None:
    mine = _Arrival(data)
    other: _Arrival = launch.meet(NAME, mine, f"nisa.{NAME}")
    if {data.spec.space, other.data.spec.space}.isdisjoint(_SHARED):
        what = f"the tensor of nisa.{NAME}, in {data.spec.space.name.upper()}"
        note_without_effect(what, "each core has its own; the cores wait for each other", RULE)
    elif other.data.storage is not data.storage:
        raise AttributeValueError(
            "the cores wait at barriers of two tensors", expected=f"{other.data!r} on both cores",
            got=repr(data), operand="data", instruction=NAME, rule=RULE,
        )  # fmt: skip
    if not mine.is_reported:
        other.is_reported = True
        for watcher in launch.core.watchers:
            watcher.arrived(data)


def _numbers(cores: Any) -> tuple[int, ...]:
    listed = cores if isinstance(cores, (tuple, list)) else (cores,)
    return tuple(listed)


def _violations(
    launch: Launch, data: Any, cores: tuple[int, ...], given: Any, engine: Any
) -> Iterator[KernelError]:
    own = launch.program[0] if launch.program else 0
    if launch.core.target.nc_version == "gen2":
        yield UnsupportedError(
            f"{launch.core.target.name} has no nisa.{NAME}", expected="gen3 or later", rule=RULE
        )
    if not isinstance(data, View):
        yield SignatureError(
            f"data cannot be a {type(data).__name__}", expected="a tensor in shared HBM",
            got=repr(data)[:80], operand="data", rule=RULE,
        )  # fmt: skip
    if cores not in (BOTH, (own,)):
        yield AttributeValueError(
            f"cores={given!r} on core {own}", expected=f"(0, 1), or ({own},) alone",
            got=repr(given), operand="cores", rule=RULE,
        )  # fmt: skip
    if not isinstance(engine, Engine):
        yield AttributeValueError(
            f"engine={engine!r} is not one of its values", expected="nisa.engine.…",
            got=repr(engine), operand="engine", rule=RULE,
        )  # fmt: skip
