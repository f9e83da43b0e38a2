"""Programs and loops: unrolled ones, and dynamic_range, fori_loop and while_loop on the device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

from neuroncore.errors import (
    AttributeValueError,
    KernelError,
    LaunchError,
    Place,
    SignatureError,
    UnsupportedError,
    find_place,
)
from neuroncore.machine.launch import Launch, running
from neuroncore.machine.registers import VirtualRegister, endless
from nki_beta2.kernel.jit import Language

_REGISTER_SINCE = (0, 4)  # before, the variable of dynamic_range is not a register
_NESTED_SINCE = (0, 6)  # before, a dynamic loop in another one failed
_SCOPED_SINCE = (0, 6)  # the documents that say what becomes of a tensor that a body makes


in_order: ContextVar[bool] = ContextVar("nki_beta2.in_order", default=False)
"""Whether the kernel is inside `with nl.no_reorder()`."""


class LoopNumber:
    """The variable of dynamic_range up to 0.3: a number of the device that nothing can use."""

    def __int__(self) -> int:
        raise UnsupportedError(
            "the variable of nl.dynamic_range is used", expected="a tensor that counts the turns",
            hint="memset a (1, 1) tensor before the loop and add 1 in it; from 0.4 on the variable "
            "is a register", rule="NKI 0.3: nl.dynamic_range",
        )  # fmt: skip

    __index__ = __float__ = __bool__ = __int__


def loops(language: Language) -> dict[str, Callable[..., Any]]:
    """The names that this version has."""

    def dynamic_range(start: Any, stop: Any = None, step: int = 1) -> Iterator[Any]:
        """For i in nl.dynamic_range(start, stop, step): bounds may be registers.

        From 0.4 on i is a register that cannot be written. The bounds are checked before every
        iteration; a body that changes one is an error, because no document defines it.
        """
        launch, place = running("nl.dynamic_range"), find_place()
        if language.version < _NESTED_SINCE:
            _check_not_nested(launch, place)
        low, high = (0, start) if stop is None else (start, stop)
        is_documented = language.version >= _SCOPED_SINCE
        for number in _numbers("nl.dynamic_range", low, high, step, place):
            with launch.turn("nl.dynamic_range", place, is_documented):
                if language.version < _REGISTER_SINCE:
                    yield LoopNumber()
                else:
                    yield VirtualRegister.counting(launch.core, number, frozen=True)

    def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any], None], step: int = 1) -> None:
        """body_fun(i) for i from lower to upper in steps; i is a register of its own each time."""
        launch, place = running("nl.fori_loop"), find_place()
        for number in _numbers("nl.fori_loop", lower, upper, step, place):
            with launch.turn("nl.fori_loop", place):
                register = VirtualRegister.counting(launch.core, number, frozen=False)
                _check_result(body_fun(register))

    def while_loop(init: VirtualRegister, body_fun: Callable[[Any], VirtualRegister]) -> None:
        """r = init; while r is not 0: r = body_fun(a copy of r)."""
        launch, place = running("nl.while_loop"), find_place()
        options = launch.core.options
        _check_order("nl.while_loop", place)
        register, turns = _condition(init, "init"), 0
        while register.value != 0:
            turns += 1
            if turns > options.dynamic_turns:
                raise endless(options.dynamic_turns, "a body that returns 0", place)
            with launch.turn("nl.while_loop", place):
                register = _condition(body_fun(register.copy()), "body_fun")

    made: dict[str, Callable[..., Any]] = {"dynamic_range": dynamic_range}
    if language.version >= (0, 6):
        made |= {"fori_loop": fori_loop, "while_loop": while_loop}
    return made


def _numbers(what: str, low: Any, high: Any, step: Any, place: Place | None) -> Iterator[int]:
    _check_order(what, place)
    whole = isinstance(step, (int, np.integer)) and not isinstance(step, bool)
    if not whole or step < 1:
        raise AttributeValueError(
            f"{what}: step is {step!r}"[:80], expected="a positive compile-time int",
            operand="step", place=place, rule=f"NKI: {what}",
        )  # fmt: skip
    most = running(what).core.options.dynamic_turns
    number, end, turns = _bound(what, low, "start"), _bound(what, high, "stop"), 0
    while number < end:
        turns += 1
        if turns > most:
            raise endless(most, f"at most {most} turns; it is at {number} of {end}", place)
        yield number
        number += int(step)
        if _bound(what, high, "stop") != end:
            raise UnsupportedError(
                f"{what}: the body changes the bound of its loop", expected=f"{end}",
                got=f"{_bound(what, high, 'stop')}", place=place,
                hint="no document says whether the loop sees it: copy the bound with register_move",
                rule=f"NKI: {what}",
            )  # fmt: skip


def _check_order(what: str, place: Place | None) -> None:
    if in_order.get():
        raise UnsupportedError(
            f"{what} inside nl.no_reorder", expected="loops that unroll", place=place,
            hint="put no_reorder into the body of the loop, or use range",
            rule="NKI: nl.no_reorder",
        )  # fmt: skip


def _check_not_nested(launch: Launch, place: Place | None) -> None:
    if launch.bodies:
        raise UnsupportedError(
            "nl.dynamic_range in the body of another one", expected="one loop on the device",
            got=f"the body of {launch.bodies[-1].loop} at {launch.bodies[-1].place}", place=place,
            hint="make the inner loop a range that unrolls; from 0.6 on they nest",
            rule="NKI up to 0.5: nl.dynamic_range, nested dynamic loops fail",
        )  # fmt: skip


def _bound(what: str, given: Any, operand: str) -> int:
    value = given.value if isinstance(given, VirtualRegister) else given
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    raise AttributeValueError(
        f"{what}: {operand} is a {type(value).__name__}", expected="an int, or a register that "
        "holds one", got=repr(given)[:80], operand=operand, rule=f"NKI: {what}",
    )  # fmt: skip


def _check_result(value: Any) -> None:
    if value is not None:
        raise SignatureError(
            "the body of nl.fori_loop returns something", expected="None", got=repr(value)[:80],
            hint="carry state through tensors", rule="NKI: nl.fori_loop",
        )  # fmt: skip


def _condition(value: Any, source: str) -> VirtualRegister:
    if isinstance(value, VirtualRegister):
        return value
    raise SignatureError(
        f"{source} gives nl.while_loop a {type(value).__name__}", expected="a register",
        got=repr(value)[:80], hint="nisa.register_alloc makes one", rule="NKI: nl.while_loop",
    )  # fmt: skip


def program_functions() -> dict[str, Callable[..., int]]:
    """`nl.program_id`, `nl.num_programs` and `nl.program_ndim`."""

    def program_id(axis: int = 0) -> int:
        """Which of the launched cores runs this program."""
        return _on_axis(axis, running("nl.program_id").program)

    def num_programs(axes: int | None = 0) -> int:
        """How many cores the kernel was launched on."""
        return _on_axis(axes or 0, running("nl.num_programs").grid or (1,))

    def program_ndim() -> int:
        """Dimensions of the launch grid: 1 for kernel[lnc](…), 0 without one."""
        return len(running("nl.program_ndim").grid)

    return {"program_id": program_id, "num_programs": num_programs, "program_ndim": program_ndim}


def _on_axis(axis: int, values: tuple[int, ...]) -> int:
    if axis not in range(len(values)):
        raise LaunchError(
            f"program axis {axis}",
            expected="0: a launch has one axis, the LNC degree",
            got=str(axis),
            hint="SPMD grids ended with 0.1: make the other axes loops",
            rule="NKI: kernel[lnc]",
        )
    return values[axis]


def python_loop(name: str) -> Callable[..., range]:
    """A loop of `nl` that unrolls."""

    def loop(start: int, stop: int | None = None, step: int = 1) -> range:
        try:
            return range(start) if stop is None else range(start, stop, step)
        except (TypeError, ValueError) as wrong:
            raise KernelError(
                f"nl.{name}: {wrong}",
                expected="compile-time ints",
                got=f"({start!r}, {stop!r}, {step!r})",
                rule=f"NKI: nl.{name}",
            ) from None

    loop.__name__ = name
    loop.__doc__ = f"Python's range; {name} differs only in name from 0.2 on."
    return loop
