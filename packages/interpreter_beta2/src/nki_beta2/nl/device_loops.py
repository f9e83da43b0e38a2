"""nl.fori_loop and nl.while_loop from 0.7 on: Python runs the body once, the device every turn.

`neuroncore.machine.loop_trace` notes what the body does and does it again in each turn; a body is
traced also where the loop takes no turn, as the device compiles it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

from neuroncore.errors import (
    AttributeValueError,
    DTypeError,
    Place,
    SignatureError,
    UnsupportedError,
    find_place,
)
from neuroncore.machine.captured_state import CapturedState
from neuroncore.machine.launch import running
from neuroncore.machine.loop_trace import act, loop_ended, report_changes, traced
from neuroncore.machine.registers import DeviceNumber, LoopRegister, VirtualRegister, endless
from neuroncore.machine.scalars import NkiScalar
from nki_beta2.kernel.configuration import is_parsed

in_order: ContextVar[bool] = ContextVar("nki_beta2.in_order", default=False)
"""Whether the kernel is inside `with nl.no_reorder()`."""

Bound = Callable[[], int]
"""Gives a bound when the device reads it."""


def check_loop(what: str, step: Any, place: Place | None) -> None:
    """Raises UnsupportedError inside no_reorder, AttributeValueError for a step that is not a
    positive compile-time int."""
    check_order(what, place)
    whole = isinstance(step, (int, np.integer)) and not isinstance(step, bool)
    if not whole or step < 1:
        raise AttributeValueError(
            f"{what}: step is {step!r}"[:80], expected="a positive compile-time int",
            operand="step", place=place, rule=f"NKI: {what}",
        )  # fmt: skip


def check_order(what: str, place: Place | None) -> None:
    """Raises UnsupportedError inside no_reorder."""
    if in_order.get():
        raise UnsupportedError(
            f"{what} inside nl.no_reorder", expected="loops that unroll", place=place,
            hint="put no_reorder into the body of the loop, or use range",
            rule="NKI: nl.no_reorder",
        )  # fmt: skip


def numbers(
    what: str, low: Bound, high: Bound, step: int, turns_allowed: int, place: Place | None
) -> Iterator[int]:
    """The numbers of a loop; the bounds are checked before every turn."""
    number, end, turns = low(), high(), 0
    while number < end:
        turns += 1
        if turns > turns_allowed:
            expected = f"at most {turns_allowed} turns; it is at {number} of {end}"
            raise endless(turns_allowed, expected, place)
        yield number
        number += int(step)
        if (now := high()) != end:
            raise UnsupportedError(
                f"{what}: the body changes the bound of its loop", expected=f"{end}",
                got=f"{now}", place=place,
                hint="no document says whether the loop sees it: copy the bound with register_move",
                rule=f"NKI: {what}",
            )  # fmt: skip


def bound_of(what: str, given: Any, operand: str, position: int | None = None) -> Bound:
    """A compile-time int, a register, or a scalar of 32 bits. Raises AttributeValueError or
    DTypeError for what is not a bound."""
    if isinstance(given, DeviceNumber):
        return _number_of(what, given, operand, position)
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        return lambda: int(given)
    raise _unfit(what, given, operand, position, type(given).__name__)


def _number_of(what: str, given: DeviceNumber, operand: str, position: int | None) -> Bound:
    if given.dtype.bits == 64:
        raise DTypeError(
            f"{what}: {operand} is a scalar of {given.dtype}", expected="int32", got=repr(given),
            hint="the compare-and-branch of a loop has 32 bits: load the bound from a tensor of "
            "int32", operand=operand, position=position, rule=f"NKI 0.7: {what}",
        )  # fmt: skip
    if given.dtype.is_float:
        raise _unfit(what, given, operand, position, f"{given.dtype}")
    dtype = given.dtype
    return lambda: int(given.value_as(dtype))


def _unfit(
    what: str, given: Any, operand: str, position: int | None, kind: str
) -> AttributeValueError:
    return AttributeValueError(
        f"{what}: {operand} is a {kind}", expected="an int, or a register that holds one",
        got=repr(given)[:80], operand=operand, position=position, rule=f"NKI: {what}",
    )  # fmt: skip


def check_body(what: str, body: Any, position: int, place: Place | None) -> None:
    """Raises SignatureError for anything but a function of one argument."""
    try:
        inspect.signature(body).bind(None)
        return
    except (TypeError, ValueError) as wrong:
        got = str(wrong) if callable(body) else repr(body)[:80]
    raise SignatureError(
        f"{what}: body_fun is not a function of one argument", got=got, place=place,
        expected="body(i), called with the variable" if position == 2
        else "body(register), which returns the next condition",
        operand="body_fun", position=position, rule=f"NKI 0.7: {what}",
    )  # fmt: skip


def check_result(value: Any, place: Place | None = None) -> None:
    """Raises SignatureError for a body of nl.fori_loop that returns something."""
    if value is not None:
        raise SignatureError(
            "the body of nl.fori_loop returns something", expected="None", got=repr(value)[:80],
            hint="write a def without return; tensors carry state", rule="NKI: nl.fori_loop",
            place=place,
        )  # fmt: skip


def condition_of(value: Any, source: str) -> VirtualRegister | NkiScalar:
    """The number that nl.while_loop tests: a register, or a scalar where an option takes it.
    Raises SignatureError for anything else."""
    if isinstance(value, VirtualRegister):
        return value
    hint = "nisa.register_alloc makes one"
    if isinstance(value, NkiScalar):
        if value.options.while_scalar == "allow":
            return value
        hint = "no document shows a scalar as condition: load the tensor with nisa.register_load"
    raise SignatureError(
        f"{source} gives nl.while_loop a {type(value).__name__}", expected="a register",
        got=repr(value)[:80], hint=hint, rule="NKI: nl.while_loop",
    )  # fmt: skip


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any], None], step: int = 1) -> None:
    """body_fun(i) for i from lower to upper in steps, on the device.

    i is a scalar, or a register where a bound is one; writing to it does not change the loop.
    """
    what = "nl.fori_loop"
    launch, place = running(what), find_place()
    core = launch.core
    check_loop(what, step, place)
    low, high = bound_of(what, lower, "lower", 0), bound_of(what, upper, "upper", 1)
    by_register = any(isinstance(bound, VirtualRegister) for bound in (lower, upper)) or is_parsed(
        core.options
    )
    check_body(what, body_fun, 2, place)
    state = CapturedState(body_fun)
    with traced(core) as trace, launch.turn(what, place):
        variable = LoopRegister(core) if by_register else NkiScalar(core)
        check_result(body_fun(variable), place)
    report_changes(core, state, what, place)

    def run() -> None:
        turns = 0
        for number in numbers(what, low, high, step, core.options.dynamic_turns, place):
            with launch.turn(what, place):
                variable.become(number)
                trace.run()
            turns += 1
        with launch.in_body(what, place):
            trace.end()
        loop_ended(launch, what, place, turns)

    act(core, run, is_placed=True)


def while_loop(init: VirtualRegister, body_fun: Callable[[Any], VirtualRegister]) -> None:
    """r = init; while r is not 0: r = body_fun(a copy of r), on the device."""
    what = "nl.while_loop"
    launch, place = running(what), find_place()
    core = launch.core
    check_order(what, place)
    condition = condition_of(init, "init").copy()
    check_body(what, body_fun, 1, place)
    state = CapturedState(body_fun)
    with traced(core) as trace, launch.turn(what, place):
        following = condition_of(body_fun(condition), "body_fun")
        condition.copy_from(following)
    report_changes(core, state, what, place)

    def run() -> None:
        turns = 0
        while condition.value != 0:
            turns += 1
            if turns > core.options.dynamic_turns:
                raise endless(core.options.dynamic_turns, "a body that returns 0", place)
            with launch.turn(what, place):
                trace.run()
        with launch.in_body(what, place):
            trace.end()
        loop_ended(launch, what, place, turns)

    act(core, run, is_placed=True)
