"""NkiScalar: an integer of 32 or 64 bits that the device computes (NKI 0.7), and the functions that
load and store one.

Each operator gives a new scalar. Results keep the width of the operands: int32 wraps around.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import add, and_, floordiv, lshift, mod, mul, or_, rshift, sub, xor
from typing import Any, NoReturn

import numpy as np

from neuroncore.errors import (
    AttributeValueError,
    DeviceValueError,
    DTypeError,
    SignatureError,
    UndefinedError,
    UnsupportedError,
)
from neuroncore.instructions.scalars import SCALARS
from neuroncore.machine.core import NeuronCore
from neuroncore.machine.loop_trace import act
from neuroncore.machine.registers import DeviceNumber, VirtualRegister, without_value
from neuroncore.memory import View
from neuroncore.source_location import find_place
from neuroncore.surface import Param, Signature
from nki_dtypes import DType, int32

RULE = "NKI 0.7: NkiScalar"


class NkiScalar(DeviceNumber):
    """An integer on the device; kernels get one from nisa.scalar_load, or as variable of
    nl.fori_loop, and use it as `scalar_offset`, as bound of a loop or in nisa.scalar_store.

    +, - and * take another scalar of its dtype, or an int; - also stands before it.
    """

    __array_ufunc__ = None  # NumPy's integers leave their operators to this class
    __slots__ = ("is_comparison",)

    def __init__(
        self, state: Any = None, dtype: DType | None = None, is_comparison: bool = False
    ) -> None:
        if not isinstance(state, NeuronCore):
            raise UnsupportedError(
                "a scalar is made by nisa.scalar_load", got=f"NkiScalar({state!r})"[:80],
                hint="scalar = nisa.scalar_load(t), of a (1, 1) tensor", rule=RULE,
            )  # fmt: skip
        super().__init__(state, dtype or int32)
        self._loop = state.tracing
        self.is_comparison = is_comparison

    @property
    def cell(self) -> View:
        """It as a (1, 1) tensor. Raises DeviceValueError for the result of a comparison."""
        self._reject_comparison()
        return super().cell

    def value_as(self, dtype: DType) -> int | float:
        """The number that it holds now."""
        self._reject_comparison()
        return super().value_as(dtype)

    def _reject_comparison(self) -> None:
        if self.is_comparison:
            raise DeviceValueError(
                "the result of a comparison of scalars is used", expected="a number",
                got=repr(self), hint="compare tensors: nisa.tensor_tensor(…, op=nl.less)",
                rule=f"{RULE}, comparisons",
            )  # fmt: skip

    def copy(self) -> NkiScalar:
        """Another scalar that holds the same."""
        other = NkiScalar(self._core, self._dtype)
        other.copy_from(self)
        return other

    def copy_from(self, other: DeviceNumber) -> None:
        """Let it hold what another one holds."""
        read = self._reading(other)
        act(self._core, lambda: self.become(read()))

    # -- arithmetic -------------------------------------------------------------------------------

    def _combined(self, left: Any, right: Any, combine: Callable[[int, int], int]) -> NkiScalar:
        result = NkiScalar(self._core, self._dtype)
        first, second = (self._reading(operand) for operand in (left, right))
        place = find_place()

        def compute() -> None:
            try:
                exact = combine(first(), second())
            except (ZeroDivisionError, ValueError) as wrong:
                raise UndefinedError(str(wrong), got=repr(self), rule=RULE) from None
            number = wrapped(exact, self._dtype)
            for watcher in self._core.watchers if number != exact else ():
                watcher.wrapped(self._dtype, place)
            result.become(number)

        act(self._core, compute)
        return result

    def _reading(self, operand: Any) -> Callable[[], int]:
        """The function that reads an operand on the device. Raises for other types and widths."""
        wraps = self.options.scalar_operands == "wrap"
        if isinstance(operand, NkiScalar):
            operand._reject_comparison()
            operand.reject_after_loop()
            if operand.dtype is not self.dtype and not wraps:
                raise DTypeError(
                    f"a scalar of {self.dtype} with one of {operand.dtype}",
                    expected="two scalars of one dtype", got=repr(operand), rule=RULE,
                    hint="load both from tensors of the wider dtype",
                )  # fmt: skip
            return lambda: wrapped(int(operand.value), self.dtype)
        if not _is_integer(operand, takes_bool=wraps):
            raise AttributeValueError(
                f"a scalar with a {type(operand).__name__}",
                expected=f"an int, or a scalar of {self.dtype}", got=repr(operand)[:80],
                hint="nisa.register_store and nisa.scalar_load bring the number of a register"
                if isinstance(operand, VirtualRegister) else None, rule=RULE,
            )  # fmt: skip
        number = wrapped(int(operand), self.dtype)
        if operand != number and not wraps:
            raise AttributeValueError(
                f"{operand} is not a number of {self.dtype}",
                expected=f"{int(self.dtype.min)} to {int(self.dtype.max)}", got=str(operand),
                rule=RULE,
            )  # fmt: skip
        return lambda: number

    def __add__(self, other: Any) -> NkiScalar:
        return self._combined(self, other, add)

    def __radd__(self, other: Any) -> NkiScalar:
        return self._combined(other, self, add)

    def __sub__(self, other: Any) -> NkiScalar:
        return self._combined(self, other, sub)

    def __rsub__(self, other: Any) -> NkiScalar:
        return self._combined(other, self, sub)

    def __mul__(self, other: Any) -> NkiScalar:
        return self._combined(self, other, mul)

    def __rmul__(self, other: Any) -> NkiScalar:
        return self._combined(other, self, mul)

    def __neg__(self) -> NkiScalar:
        return self._combined(0, self, sub)

    # -- what only the device has -----------------------------------------------------------------

    def __bool__(self) -> NoReturn:
        self._reject_comparison()
        raise without_value("the truth value", self)

    def __index__(self) -> NoReturn:
        self._reject_comparison()
        raise without_value("the number", self)

    __int__ = __float__ = __index__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<{'comparison of scalars' if self.is_comparison else 'scalar'}, {self._dtype}>"


def _is_integer(operand: Any, takes_bool: bool) -> bool:
    if isinstance(operand, (bool, np.bool_)):
        return takes_bool
    return isinstance(operand, (int, np.integer))


def wrapped(number: int, dtype: DType) -> int:
    """A number in the bits of a signed integer dtype."""
    half = 1 << dtype.bits - 1
    return (number + half) % (2 * half) - half


def _comparison(symbol: str) -> Callable[[NkiScalar, Any], NkiScalar]:
    def compare(self: NkiScalar, other: Any) -> NkiScalar:
        self._reject_comparison()
        self._reading(other)
        if self.dtype is not int32:
            raise DTypeError(
                f"{symbol} of scalars of {self.dtype}", expected="int32, whose result can't be "
                "used either", got=repr(self), rule=f"{RULE}, comparisons",
            )  # fmt: skip
        return NkiScalar(self.core, int32, is_comparison=True)

    return compare


def _undocumented(
    symbol: str, combine: Callable[[int, int], int] | None = None, reflected: bool = False
) -> Callable[..., NkiScalar]:
    """An operator that no page names; `combine`: what Options.scalar_operators="integer" gives."""

    def operate(self: NkiScalar, *others: Any) -> NkiScalar:
        if combine is not None and self.options.scalar_operators == "integer":
            left, right = (*others, self) if reflected else (self, *others)
            return self._combined(left, right, combine)
        raise UnsupportedError(
            f"{symbol} of a scalar", expected="+, - or *", got=repr(self),
            hint="compute it in a (1, 1) tensor with nisa.tensor_scalar and load that",
            rule=f"{RULE}, operators",
        )  # fmt: skip

    return operate


_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_UNDOCUMENTED: dict[str, tuple[str, Callable[[int, int], int] | None]] = {
    "floordiv": ("//", floordiv), "truediv": ("/", None), "mod": ("%", mod),
    "divmod": ("divmod()", None), "pow": ("**", None), "lshift": ("<<", lshift),
    "rshift": (">>", rshift), "and": ("&", and_), "or": ("|", or_), "xor": ("^", xor),
}  # fmt: skip
_UNARY = {"__invert__": "~", "__abs__": "abs()", "__round__": "round()", "__pos__": "unary +"}

for _name, _symbol in _COMPARISONS.items():
    setattr(NkiScalar, f"__{_name}__", _comparison(_symbol))
for _name, _operator in _UNDOCUMENTED.items():
    setattr(NkiScalar, f"__{_name}__", _undocumented(*_operator))
    setattr(NkiScalar, f"__r{_name}__", _undocumented(*_operator, reflected=True))
for _name, _symbol in _UNARY.items():
    setattr(NkiScalar, _name, _undocumented(_symbol))


# -- the instructions on scalars as kernels call them ----------------------------------------------

_LOAD = "scalar_load"
_STORE = "scalar_store"


def with_destination(found: Signature) -> Signature:
    """The signature with the scalar that scalar_load returns as its destination."""
    if found.name != _LOAD:
        return found
    return replace(found, params=(Param("dst", "dst"), *found.params))


def scalar_load_of(load: Callable[..., Any]) -> Callable[[View], NkiScalar]:
    """nisa.scalar_load; `load` is the instruction, on the cell of a scalar."""

    def scalar_load(src: View) -> NkiScalar:
        """The one element of `src`, a (1, 1) tensor of int32 or int64 in SBUF or HBM."""
        if not isinstance(src, View):
            raise _mistaken(_LOAD, "src", 0, src, "a tensor of shape (1, 1)", None)
        if src.dtype not in SCALARS:
            raise DTypeError(
                f"src is {src.dtype}", expected="int32 or int64", got=repr(src), operand="src",
                position=0, instruction=_LOAD, rule="NKI 0.7: scalar_load, data types",
            )  # fmt: skip
        scalar = NkiScalar(src.core, src.dtype)
        load(scalar.cell, src)
        return scalar

    return scalar_load


def scalar_store_of(store: Callable[..., Any]) -> Callable[[View, NkiScalar], None]:
    """nisa.scalar_store; `store` is the instruction, on the cell of a scalar."""

    def scalar_store(dst: View, value: NkiScalar) -> None:
        """Write a scalar into `dst`, a (1, 1) tensor of its dtype in SBUF or HBM."""
        if not isinstance(value, NkiScalar):
            hint = "nisa.memset writes a compile-time number, nisa.register_store a register"
            raise _mistaken(_STORE, "value", 1, value, "an NkiScalar", hint)
        store(dst, value.cell)

    return scalar_store


SCALAR_FUNCTIONS = {_LOAD: scalar_load_of, _STORE: scalar_store_of}
"""Instructions on scalars: the function that a kernel calls, of the one on their cells."""


def _mistaken(
    function: str, operand: str, position: int, value: Any, expected: str, hint: str | None
) -> SignatureError:
    return SignatureError(
        f"{operand} cannot be a {type(value).__name__}", expected=expected, got=repr(value)[:80],
        hint=hint, operand=operand, position=position, instruction=function,
        rule=f"NKI 0.7: {function}",
    )  # fmt: skip
