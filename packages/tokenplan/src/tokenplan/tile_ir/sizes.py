"""Extents and strides of the views of a decoded function, and whether elements share bytes.

Both are numbers without a sign. A parameter of the function is unknown: that a stride which is one
keeps elements disjoint is an assumption, if sizes exist that keep all assumptions of the function
together. Of an extent, or of a number that is calculated in another way, nothing is assumed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from math import inf, lcm

from tokenplan.tile_ir.bytecode import Bounded, DivBy, Function, Operation, Value
from tokenplan.tile_ir.bytecode.control_flow import may_leave
from tokenplan.tile_ir.bytecode.types import ITEM_BITS
from tokenplan.tile_ir.bytecode.verification import is_pointer

MOST_DIMENSIONS = 6
"""Of views whose strides are compared: the orders of more are too many."""
ADDRESSES = 8 * 2**63
"""Bits of memory that a view may reach: address arithmetic of 64 bits wraps beyond."""
_TRIES, _ROUNDS = 1_000, 64
"""Of the search for sizes, beyond which none are found."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of a number with a sign."""

    low: int
    high: int
    divisor: int = 1

    def with_assumed(self, predicate: object) -> Limits:
        """These and the ones of an `assume`."""
        if isinstance(predicate, Bounded):
            low = self.low if predicate.low is None else max(self.low, predicate.low)
            high = self.high if predicate.high is None else min(self.high, predicate.high)
            return replace(self, low=low, high=high)
        if isinstance(predicate, DivBy) and predicate.every is None and predicate.divisor:
            return replace(self, divisor=lcm(self.divisor, predicate.divisor))
        return self

    def at_least(self, low: int) -> int | None:
        """The least number from `low` on."""
        found = -(-max(low, self.low) // self.divisor) * self.divisor
        return found if found <= self.high else None


@dataclass(frozen=True, slots=True)
class Parameter:
    """An integer parameter of the function."""

    value: Value
    sure: Limits
    """Of its type, and of each `assume` that is sure to be executed."""
    every: Limits
    """Also of the others."""
    bits: int
    """Of the value that is read, which decides what a negative number is without a sign; of the
    parameter where there are none."""

    @property
    def greatest(self) -> int:
        """Without a sign, a negative number is greater than all that are not."""
        return self.sure.high if self.sure.low >= 0 else (1 << self.bits) - 1

    def read_as(self, value: Value) -> Parameter:
        """The parameter, with the bits of this value."""
        return self if self.sure.low >= 0 else replace(self, bits=bits_of(value))


Size = int | Parameter | Value
"""An extent or a stride: a constant, a parameter, or calculated in another way."""


def parameters(function: Function) -> Mapping[Value, Parameter]:
    """The parameter that each value of the function is, where it is one.

    Only an `assume` outside of loops and branches, and before an end, is sure to be executed.
    """
    sources = {value: value for value in function.body.arguments if not is_pointer(value.type)}
    found = {value: Parameter(value, limits, limits, bits_of(value))
             for value in sources for limits in [of_type(value)]}  # fmt: skip
    always = {id(op) for op in takewhile(lambda op: not may_leave(op), function.body.operations)}
    for op in function.body.walk():
        source = sources.get(next(op.inputs)) if _is_same_number(op) else None
        if source is not None:
            sources[op.results[0]] = source
            known, predicate = found[source], op.attributes.get("predicate")
            sure = known.sure.with_assumed(predicate) if id(op) in always else known.sure
            every = known.every.with_assumed(predicate)
            found[source] = replace(known, sure=sure, every=every)
    return {value: found[source].read_as(value) for value, source in sources.items()}


def _is_same_number(op: Operation) -> bool:
    is_extended = op.name == "exti" and op.attributes["signedness"] == "signed"
    return op.name == "assume" or is_extended


def of_type(value: Value) -> Limits:
    """The limits of its type."""
    limit = 1 << bits_of(value) - 1
    return Limits(-limit, limit - 1)


def bits_of(value: Value) -> int:
    """Of an element of its type."""
    return ITEM_BITS[value.type["element"].kind]


# -- elements and bytes ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Dimension:
    """Of a view, as an access uses it."""

    extent: Size
    stride: Size
    first: int
    """The end of its first tile, which an extent that is a parameter contains."""
    last: int
    """The end of its last tile."""


@dataclass(frozen=True, slots=True)
class Elements:
    """What an access relies on: each element of its view has bytes of its own."""

    dims: tuple[Dimension, ...]
    item_bits: int

    def are_different(self) -> bool | None:
        """None where strides that are parameters can be chosen so."""
        strides = [dim.stride for dim in self.varied]
        if self.item_bits < 8:
            return False
        if not all(isinstance(stride, int) for stride in strides):
            return None if len(strides) <= MOST_DIMENSIONS and are_possible([self], {}) else False
        inner_first = sorted(self.varied, key=lambda dim: _constant(dim.stride))
        return _exceeds(inner_first) and not self.wraps

    @property
    def varied(self) -> list[Dimension]:
        """The dimensions of several elements."""
        return [dim for dim in self.dims if dim.extent != 1]

    @property
    def wraps(self) -> bool:
        """Whether elements that are accessed may be 2^63 bytes from each other."""
        reach = 0
        for dim in self.varied:
            last = min(greatest(dim.extent), dim.last) - 1
            reach += max(0, int(last)) * _constant(dim.stride)
        return (reach + 1) * self.item_bits > ADDRESSES


def greatest(size: Size) -> float:
    """Without a sign; infinite where nothing is known."""
    if isinstance(size, int):
        return size
    return size.greatest if isinstance(size, Parameter) else inf


def _constant(size: Size) -> int:
    assert isinstance(size, int)
    return size


def _exceeds(order: Sequence[Dimension]) -> bool:
    """Whether each constant stride exceeds what constant ones inside of it reach."""
    reach: float = 0
    for dim in order:
        if not isinstance(dim.stride, int):
            reach = 0
            continue
        if dim.stride <= reach:
            return False
        reach += (greatest(dim.extent) - 1) * dim.stride
    return True


def are_possible(assumed: Sequence[Elements], most: Mapping[Value, int]) -> bool:
    """Whether sizes exist with which all of these keep their elements disjoint.

    Sufficient: each stride exceeds what all smaller ones reach. most: further limits of parameters.
    """
    return _Choice(tuple(found for found in assumed if found.varied), most).exists(())


@dataclass
class _Choice:
    assumed: tuple[Elements, ...]
    most: Mapping[Value, int]
    tries: int = 0
    least: dict[Value, int] = field(init=False)

    def __post_init__(self) -> None:
        self.least = {}
        for dim in (dim for found in self.assumed for dim in found.dims):
            if isinstance(dim.extent, Parameter):
                value = dim.extent.value
                self.least[value] = max(self.least.get(value, 2), dim.first)

    def exists(
        self, chosen: tuple[tuple[Dimension, ...], ...], order: tuple[Dimension, ...] = (),
        left: Sequence[Dimension] = (),
    ) -> bool:  # fmt: skip
        """Whether these orders of the first views' dimensions allow some of the other ones': of the
        next view, `order` from the innermost outwards, then what is left."""
        if not left:
            chosen, order = ((*chosen, order) if order else chosen), ()
            if len(chosen) == len(self.assumed):
                return True
            left = self.assumed[len(chosen)].varied[::-1]
        for at, dim in enumerate(left):
            self.tries += 1
            if self.tries > _TRIES:
                return False
            more, rest = (*order, dim), [*left[:at], *left[at + 1 :]]
            if (
                _exceeds(more)
                and self.has_numbers((*chosen, more))
                and self.exists(chosen, more, rest)
            ):
                return True
        return False

    def has_numbers(self, orders: tuple[tuple[Dimension, ...], ...]) -> bool:
        """Whether parameters have numbers for these orders: the least ones, raised until all
        strides are great enough."""
        numbers: dict[Value, int] = {}
        for _ in range(_ROUNDS):
            before = dict(numbers)
            for found, order in zip(self.assumed, orders, strict=False):
                reach = self.reach(order, numbers)
                if reach is None or (reach + 1) * found.item_bits > ADDRESSES:
                    return False
            if numbers == before:
                return True
        return False

    def reach(self, order: Sequence[Dimension], numbers: dict[Value, int]) -> int | None:
        """The last element, None where a stride cannot exceed what the inner ones reach."""
        reach = 0
        for n, dim in enumerate(order):
            stride = self.number(dim.stride, reach + 1, numbers)
            if stride is None or stride <= reach:
                return None
            extent = self.number(dim.extent, 0, numbers)
            if extent is None and n + 1 < len(order):
                return None
            reach += ((extent or 1) - 1) * stride
        return reach

    def number(self, size: Size, low: int, numbers: dict[Value, int]) -> int | None:
        """The constant, or the least number of a parameter from `low` on."""
        if not isinstance(size, Parameter):
            return size if isinstance(size, int) else None
        value = size.value
        low = max(low, numbers.get(value, self.least.get(value, 0)))
        found = size.every.at_least(low)
        if found is None or found > self.most.get(value, found):
            return None
        numbers[value] = found
        return found
