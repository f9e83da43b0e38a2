"""Virtual registers: 32-bit numbers that the engines' sequencers keep while a kernel runs.

A register is one element of a memory of its own, so that instructions that read it do so when they
are executed, and watchers see what is read and written. It holds int32, uint32 or float32: what was
loaded into it last.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.errors import (
    AttributeValueError,
    DeviceValueError,
    EndlessLoopError,
    FrozenRegisterError,
    UndefinedError,
    UnsupportedError,
)
from neuroncore.instructions import warn_at_kernel
from neuroncore.instructions.registers import register_dtype
from neuroncore.machine.core import NeuronCore
from neuroncore.machine.loop_trace import act, untraced
from neuroncore.machine.observe import Tracing
from neuroncore.memory import View
from neuroncore.options import Options
from neuroncore.source_location import Place, find_place
from nki_dtypes import DType, int32, uint32

RULE = "NKI: registers"


def endless(turns: int, expected: str, place: Place | None) -> EndlessLoopError:
    """The error for the loop at `place` after the largest number of iterations."""
    return EndlessLoopError(
        f"the loop has not ended after {turns} turns", expected=expected, place=place,
        hint="let the body change what the loop waits for, or raise Options.dynamic_turns",
        rule=f"{RULE}, loops",
    )  # fmt: skip


class DeviceNumber:
    """A number that the device holds: a (1, 1) tensor once an instruction uses it as one."""

    kind = "scalar"
    """What messages call it."""

    __slots__ = ("_bits", "_core", "_dtype", "_known", "_loop")

    def __init__(self, core: NeuronCore, dtype: DType, known: int | None = None) -> None:
        self._core = core
        self._bits: View | None = None
        self._known = known
        """What it holds, where that is a compile-time number."""
        self._dtype = dtype
        self._loop: Tracing | None = None
        """The loop that alone has it: its variable, and the scalars that its body computes."""

    def reject_after_loop(self) -> None:
        """Raise UndefinedError for a number of a body that is used after its loop."""
        if self._loop is not None and not self._loop.is_open:
            raise UndefinedError(
                f"a {self.kind} of a loop's body is used after the loop", got=repr(self),
                expected="a number made before the loop, or after it",
                hint="store it in the body, into a tensor made before the loop, and load that here",
                rule="NKI 0.7: loops on the device, values of the body",
            )  # fmt: skip

    @property
    def cell(self) -> View:
        """It as a (1, 1) tensor of what it holds."""
        self.reject_after_loop()
        if self._bits is None:
            with untraced(self._core):
                self._bits = self._new_cell()
        return self._bits.view(self._dtype)

    def _new_cell(self) -> View:
        core = self._core
        bits = core.allocate((1, 1), self._dtype, MemorySpace.private_hbm, "register")
        for watcher in core.watchers:
            watcher.register(bits)
        bits.initialize()
        if self._known is not None:
            bits.array[...] = self._known
            core.moved(bits)
        return bits

    @property
    def value(self) -> int | float:
        """The number that it holds now."""
        return self.value_as(self._dtype)

    def value_as(self, dtype: DType) -> int | float:
        """The number that it holds now, of the dtype that it has at one line of the kernel."""
        self.reject_after_loop()
        if self._known is not None:
            return self._known
        self._core.need_values()
        for watcher in self._core.watchers:
            watcher.number_read(self.cell)
        return self.cell.view(dtype).array[0, 0].item()

    def become(self, number: int) -> None:
        """Let it hold a number that is known without the device, such as that of a turn."""
        self._known = number
        if self._bits is not None:
            cell = self._bits.view(self._dtype)
            cell.array[...] = number
            self._core.moved(cell)

    @property
    def dtype(self) -> DType:
        """The dtype of its value at this line of the kernel."""
        return self._dtype

    @property
    def core(self) -> NeuronCore:
        """Where it is."""
        return self._core

    @property
    def options(self) -> Options:
        """The options of its core."""
        return self._core.options


class VirtualRegister(DeviceNumber):
    """A register; kernels get one from nisa.register_alloc and use it as `scalar_offset`, as bound
    of a dynamic loop, or in `while register:`.

    A `frozen` one, the variable of a dynamic loop, cannot be written.
    """

    kind = "register"
    __slots__ = ("_turns", "frozen")

    def __init__(self, state: Any = None, frozen: bool = False) -> None:
        if not isinstance(state, NeuronCore):
            raise UnsupportedError(
                "a register is made by nisa.register_alloc", got=f"VirtualRegister({state!r})",
                hint="register = nisa.register_alloc(0)", rule=f"{RULE}, VirtualRegister",
            )  # fmt: skip
        super().__init__(state, int32)
        self._turns: dict[Any, int] = {}
        self.frozen = frozen

    @classmethod
    def counting(cls, core: NeuronCore, number: int, frozen: bool) -> VirtualRegister:
        """The variable of a loop that has come to `number`; a tensor once it is used as one."""
        register = cls(core, frozen)
        register._known = number
        return register

    def _new_cell(self) -> View:
        """A constant where nothing changes it."""
        if self.frozen and self._known is not None:
            return self._core.constant(np.array([[self._known]], np.int32), int32, "turn")
        return super()._new_cell()

    def copy(self) -> VirtualRegister:
        """Another register that holds the same."""
        other = type(self)(self._core)
        other.copy_from(self)
        return other

    def to_write(self, dtype: DType) -> View:
        """The cell for a number of `dtype`; raises FrozenRegisterError for a loop's variable."""
        if self.frozen:
            raise FrozenRegisterError(
                "the variable of a dynamic loop is written", expected="another register",
                hint="nothing that is written to it changes the loop",
                rule="NKI: nl.dynamic_range, loop variable",
            )  # fmt: skip
        cell = self.cell.view(register_dtype(dtype))
        self._dtype = cell.dtype
        act(self._core, self._forget)
        return cell

    def _forget(self) -> None:
        self._known = None

    def set(self, value: int | np.integer) -> None:
        """Let it hold a compile-time int of 32 bits."""
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise AttributeValueError(
                f"a register is set to a {type(value).__name__}", expected="an int",
                got=repr(value)[:80], rule=f"{RULE}, immediate values",
            )  # fmt: skip
        if not -(2**31) <= value < 2**32:
            raise AttributeValueError(
                f"{value} does not fit a register", expected="32 bits", got=str(value),
                rule=f"{RULE}, 32 bits",
            )  # fmt: skip
        cell = self.to_write(uint32 if value >= 2**31 else int32)

        def store() -> None:
            cell.array[...] = value
            self._known = int(value)
            self._core.moved(cell)

        act(self._core, store)

    def copy_from(self, other: DeviceNumber) -> None:
        """Let it hold what another one holds."""
        source = other.cell
        cell = self.to_write(source.dtype)

        def move() -> None:
            cell.array[...] = source.array
            self._known = other._known
            self._core.moved(cell, source)

        act(self._core, move)

    def __bool__(self) -> bool:
        """For `while register:`; Options.dynamic_turns bounds how often one line may ask."""
        options, place = self.options, find_place()
        if options.register_control == "tracer":
            raise self._unknown("the truth value")
        line = (place.file, place.line) if place else None
        turns = self._turns[line] = self._turns.get(line, 0) + 1
        held = self.value != 0
        if not held:
            self._turns.pop(line)
        elif turns > options.dynamic_turns:
            raise endless(options.dynamic_turns, "a register that becomes 0", place)
        return held

    def __index__(self) -> NoReturn:
        raise self._unknown("the number")

    __int__ = __float__ = __index__

    def _unknown(self, what: str) -> UnsupportedError:
        return UnsupportedError(
            f"{what} of a register", expected="a compile-time value",
            got=repr(self), hint="its value is known on the device only: use it as scalar_offset "
            "or as the bound of a dynamic loop", rule=f"{RULE}, control flow",
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"<register, {self._dtype}{', frozen' if self.frozen else ''}>"


class TracedRegister(VirtualRegister):
    """A register from 0.7 on: while Python runs, a kernel is traced and no register has a value."""

    __slots__ = ()

    def __bool__(self) -> NoReturn:
        raise without_value("the truth value", self)

    def __index__(self) -> NoReturn:
        raise without_value("the number", self)

    __int__ = __float__ = __index__


class LoopRegister(TracedRegister):
    """The variable of nl.fori_loop, by value: each turn sets it anew."""

    __slots__ = ()

    def __init__(self, state: Any = None) -> None:
        super().__init__(state)
        self._loop = state.tracing

    def to_write(self, dtype: DType) -> View:
        """The cell for a number of `dtype`; what is written holds until the turn ends."""
        warn_at_kernel(
            "the variable of nl.fori_loop is written, which does not change the loop: the next "
            "turn sets it again [NKI 0.7: nl.fori_loop, by value]"
        )
        return super().to_write(dtype)


def without_value(what: str, number: DeviceNumber) -> DeviceValueError:
    """The error where Python needs a number that only the device has."""
    hint = "use it as bound of nl.fori_loop or as scalar_offset"
    if isinstance(number, VirtualRegister):
        hint = "nl.while_loop replaces `while register:` of NKI up to 0.6"
    return DeviceValueError(
        f"{what} of a {number.kind}", expected="a compile-time value", got=repr(number),
        hint=f"the device alone has it: {hint}",
        rule="NKI 0.7: values of the device in Python's control flow",
    )  # fmt: skip
