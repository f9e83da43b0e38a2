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
    EndlessLoopError,
    FrozenRegisterError,
    UnsupportedError,
)
from neuroncore.instructions.registers import register_dtype
from neuroncore.machine.core import NeuronCore
from neuroncore.memory import View
from neuroncore.options import Options
from neuroncore.source_location import Place, find_place
from nki_dtypes import DType, int32, uint32

RULE = "NKI: registers"


def endless(turns: int, expected: str, place: Place | None) -> EndlessLoopError:
    """What is raised for the loop at `place` once it has taken as many turns as it may."""
    return EndlessLoopError(
        f"the loop has not ended after {turns} turns", expected=expected, place=place,
        hint="let the body change what the loop waits for, or raise Options.dynamic_turns",
        rule=f"{RULE}, loops",
    )  # fmt: skip


class VirtualRegister:
    """A register; kernels get one from nisa.register_alloc and use it as `scalar_offset`, as bound
    of a dynamic loop, or in `while register:`.

    A `frozen` one, the variable of a dynamic loop, cannot be written.
    """

    __slots__ = ("_bits", "_core", "_dtype", "_known", "_start", "_turns", "frozen")

    def __init__(self, state: Any = None, frozen: bool = False) -> None:
        if not isinstance(state, NeuronCore):
            raise UnsupportedError(
                "a register is made by nisa.register_alloc", got=f"VirtualRegister({state!r})",
                hint="register = nisa.register_alloc(0)", rule=f"{RULE}, VirtualRegister",
            )  # fmt: skip
        self._core = state
        self._bits: View | None = None
        self._start: int | None = None
        self._known: int | None = None
        """What it holds, where that is a compile-time number."""
        self._dtype = int32
        self._turns: dict[Any, int] = {}
        self.frozen = frozen

    @classmethod
    def counting(cls, core: NeuronCore, number: int, frozen: bool) -> VirtualRegister:
        """The variable of a loop that has come to `number`; a tensor once it is used as one."""
        register = cls(core, frozen)
        register._start = register._known = number
        return register

    @property
    def cell(self) -> View:
        """The register as a (1, 1) tensor of what it holds; a constant where nothing changes it."""
        if self._bits is None and self.frozen and self._start is not None:
            self._bits = self._core.constant(np.array([[self._start]], np.int32), int32, "turn")
        if self._bits is None:
            self._bits = self._core.allocate((1, 1), int32, MemorySpace.private_hbm, "register")
            for watcher in self._core.watchers:
                watcher.register(self._bits)
            self._bits.initialize()
            if self._start is not None:
                self._bits.array[...] = self._start
                self._core.moved(self._bits)
        return self._bits.view(self._dtype)

    @property
    def value(self) -> int | float:
        """The number that it holds now."""
        if self._known is not None:
            return self._known
        self._core.need_values()
        return self.cell.array[0, 0].item()

    @property
    def options(self) -> Options:
        """The options of its core."""
        return self._core.options

    def copy(self) -> VirtualRegister:
        """Another register that holds the same."""
        other = VirtualRegister(self._core)
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
        self._dtype, self._known = cell.dtype, None
        return cell

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
        cell.array[...] = value
        self._known = int(value)
        cell.core.moved(cell)

    def copy_from(self, other: VirtualRegister) -> None:
        """Let it hold what another one holds."""
        source = other.cell
        cell = self.to_write(source.dtype)
        cell.array[...] = source.array
        self._known = other._known
        cell.core.moved(cell, source)

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
