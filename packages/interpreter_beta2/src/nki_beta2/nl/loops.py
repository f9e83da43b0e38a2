"""Programs and loops: unrolled ones, and dynamic_range, fori_loop and while_loop on the device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from neuroncore.errors import (
    KernelError,
    LaunchError,
    Place,
    UnsupportedError,
    find_place,
)
from neuroncore.machine.launch import Launch, running
from neuroncore.machine.registers import VirtualRegister, endless
from neuroncore.notes import note_without_effect
from nki_beta2.kernel.jit import TRACED_SINCE, Language
from nki_beta2.nl.device_loops import (
    bound_of,
    check_loop,
    check_order,
    check_result,
    condition_of,
    numbers,
)
from nki_beta2.nl.device_loops import fori_loop as traced_fori_loop
from nki_beta2.nl.device_loops import while_loop as traced_while_loop

_REGISTER_SINCE = (0, 4)  # before, the variable of dynamic_range is not a register
_NESTED_SINCE = (0, 6)  # before, a dynamic loop in another one failed
_SCOPED_SINCE = (0, 6)  # the documents that say what becomes of a tensor that a body makes


_LOOPS = "NKI 0.7: loops"


REPLACED = {
    "nki.language.dynamic_range": (
        "0.6", "nl.fori_loop(start, stop, body) replaces it"
    ),
}  # fmt: skip
"""Loops that ended: the last version that has each, and what replaces it."""


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
        for number in _checked("nl.dynamic_range", ("start", low), ("stop", high), step, place):
            with launch.turn("nl.dynamic_range", place, is_documented):
                if language.version < _REGISTER_SINCE:
                    yield LoopNumber()
                else:
                    yield VirtualRegister.counting(launch.core, number, frozen=True)

    def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any], None], step: int = 1) -> None:
        """body_fun(i) for i from lower to upper in steps; i is a register of its own each time."""
        launch, place = running("nl.fori_loop"), find_place()
        bounds = ("start", lower), ("stop", upper)
        for number in _checked("nl.fori_loop", *bounds, step, place):
            with launch.turn("nl.fori_loop", place):
                register = VirtualRegister.counting(launch.core, number, frozen=False)
                check_result(body_fun(register))

    def while_loop(init: VirtualRegister, body_fun: Callable[[Any], VirtualRegister]) -> None:
        """r = init; while r is not 0: r = body_fun(a copy of r)."""
        launch, place = running("nl.while_loop"), find_place()
        options = launch.core.options
        check_order("nl.while_loop", place)
        register, turns = condition_of(init, "init"), 0
        while register.value != 0:
            turns += 1
            if turns > options.dynamic_turns:
                raise endless(options.dynamic_turns, "a body that returns 0", place)
            with launch.turn("nl.while_loop", place):
                register = condition_of(body_fun(register.copy()), "body_fun")

    if language.version >= TRACED_SINCE:
        return {"fori_loop": traced_fori_loop, "while_loop": traced_while_loop}
    made: dict[str, Callable[..., Any]] = {"dynamic_range": dynamic_range}
    if language.version >= (0, 6):
        made |= {"fori_loop": fori_loop, "while_loop": while_loop}
    return made


def _checked(
    what: str, start: tuple[str, Any], stop: tuple[str, Any], step: Any, place: Place | None
) -> Iterator[int]:
    check_loop(what, step, place)
    low, high = (bound_of(what, given, operand) for operand, given in (start, stop))
    return numbers(what, low, high, step, running(what).core.options.dynamic_turns, place)


def _check_not_nested(launch: Launch, place: Place | None) -> None:
    if launch.bodies:
        raise UnsupportedError(
            "nl.dynamic_range in the body of another one", expected="one loop on the device",
            got=f"the body of {launch.bodies[-1].loop} at {launch.bodies[-1].place}", place=place,
            hint="make the inner loop a range that unrolls; from 0.6 on they nest",
            rule="NKI up to 0.5: nl.dynamic_range, nested dynamic loops fail",
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


def python_loop(name: str, language: Language) -> Callable[..., range]:
    """A loop of `nl` that unrolls."""

    def loop(start: int, stop: int | None = None, step: int = 1) -> range:
        if language.version >= TRACED_SINCE:
            note_without_effect(f"nl.{name}", "it is deprecated, and Python's range", _LOOPS)
        try:
            return range(start) if stop is None else range(start, stop, step)
        except KernelError:  # of a number of the device
            raise
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
