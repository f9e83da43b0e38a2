"""Whether elements of a tensor view are different bytes, as far as its bytecode can say.

A parameter of the function is unknown: that its strides give each element bytes of its own is an
assumption, if sizes exist with which they do. A number that is calculated in another way is not
unknown, and nothing is assumed of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import lcm

from tokenplan.tile_ir.bytecode import Bounded, DivBy, Function, Value
from tokenplan.tile_ir.bytecode.types import ITEM_BITS
from tokenplan.tile_ir.bytecode.verification import is_pointer

CONVERSIONS = ("assume", "exti", "trunci")
"""Operations that result in their operand, if its type can contain it."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """An integer parameter, with the limits that `assume` and types in the function have."""

    value: Value
    low: int
    high: int
    divisor: int = 1

    def at_least(self, low: int) -> int | None:
        """The least number that it can be from `low` on."""
        found = -(-max(low, self.low) // self.divisor) * self.divisor
        return found if found <= self.high else None


Size = int | Parameter | Value
"""An extent or a stride: a constant, a parameter, or calculated in another way."""


def parameters(function: Function) -> Mapping[Value, Parameter]:
    """The parameter that each value of the function is, where it is one."""
    sources = {value: value for value in function.body.arguments if not is_pointer(value.type)}
    found = {value: of_type(value) for value in sources}
    for op in function.body.walk():
        source = sources.get(next(op.inputs)) if op.name in CONVERSIONS else None
        if source is not None:
            (result,) = op.results
            sources[result] = source
            found[source] = _limited(found[source], op.attributes.get("predicate"), result)
    return {value: found[source] for value, source in sources.items()}


def of_type(value: Value) -> Parameter:
    """A parameter of which its type alone is known."""
    limit = 1 << ITEM_BITS[value.type["element"].kind] - 1
    return Parameter(value, -limit, limit - 1)


def _limited(known: Parameter, predicate: object, result: Value) -> Parameter:
    kind = of_type(result)
    low, high, divisor = max(known.low, kind.low), min(known.high, kind.high), known.divisor
    if isinstance(predicate, Bounded):
        low = low if predicate.low is None else max(low, predicate.low)
        high = high if predicate.high is None else min(high, predicate.high)
    elif isinstance(predicate, DivBy) and predicate.every is None and predicate.divisor:
        divisor = lcm(divisor, predicate.divisor)
    return Parameter(known.value, low, high, divisor)


def are_different(
    shape: Sequence[Size], strides: Sequence[Size], ends: Sequence[int]
) -> bool | None:
    """Whether each element has bytes of its own; None where parameters can be chosen so.

    Sufficient: each stride exceeds what all smaller ones reach. An extent that is not constant is 2
    or more, and contains the tile that ends at `ends`.
    """
    least = {}
    for size, end in zip(shape, ends, strict=True):
        if isinstance(size, Parameter):
            least[size.value] = max(least.get(size.value, 2), end)
    dims = [dim for dim in zip(shape, strides, strict=True) if dim[0] != 1]
    chosen = next(_Choice(least).orders(dims), None)
    if chosen is None:
        return False
    is_known = all(isinstance(stride, int) for _, stride in dims)
    return True if is_known and all(isinstance(size, int) for size, _ in chosen[:-1]) else None


_Dim = tuple[Size, Size]


@dataclass(frozen=True, slots=True)
class _Choice:
    """Numbers for parameters, while dimensions are placed from the innermost outwards."""

    least: Mapping[Value, int]
    numbers: Mapping[Value, int] = field(default_factory=dict)
    reach: int = 0

    def orders(self, rest: Sequence[_Dim]) -> Iterator[tuple[_Dim, ...]]:
        """Orders of the dimensions in which each stride exceeds what the inner ones reach."""
        if not rest:
            yield ()
        for at, dim in enumerate(rest):
            outer = [*rest[:at], *rest[at + 1 :]]
            if (after := self.inside(dim, is_last=not outer)) is not None:
                yield from ((dim, *found) for found in after.orders(outer))

    def inside(self, dim: _Dim, is_last: bool) -> _Choice | None:
        """The choice with this dimension around the inner ones; None if it shares their bytes."""
        size, stride = dim
        step = self.number(stride, self.reach + 1)
        if step is None or step <= self.reach:
            return None
        known = self if not isinstance(stride, Parameter) else replace(
            self, numbers={**self.numbers, stride.value: step})  # fmt: skip
        if is_last:
            return known
        extent = known.number(size, 0)
        if extent is None:
            return None
        numbers = known.numbers
        if isinstance(size, Parameter):
            numbers = {**numbers, size.value: extent}
        return _Choice(self.least, numbers, self.reach + max(0, extent - 1) * step)

    def number(self, size: Size, low: int) -> int | None:
        """The constant, the number chosen before, or the least one from `low` on."""
        if isinstance(size, int):
            return size
        if not isinstance(size, Parameter):
            return None
        if size.value in self.numbers:
            return self.numbers[size.value]
        return size.at_least(max(low, self.least.get(size.value, low)))
