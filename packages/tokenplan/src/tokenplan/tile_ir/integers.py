"""Integers of a decoded function: affine in loop variables, modulo 2^bits of their type.

The one place that decides about widths and signs. Loops take numbers with a sign, unless they say
otherwise; indices, extents and strides are numbers without one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from neuroncore.program import Affine
from tokenplan.tile_ir.bytecode import Operation, Value
from tokenplan.tile_ir.bytecode.types import Type
from tokenplan.tile_ir.sizes import Parameter, Size, bits_of, greatest, of_type

INDEX_END = 2**31
"""Indices that are written are less: they have 32 bits, and are the same with a sign."""
MOST_TRIPS = 2**20
"""Iterations of a loop, and blocks of a grid dimension, whose number is not in the bytecode."""


@dataclass
class Integers:
    """Scalars, modulo 2^bits; `ranges`: the first and last number of each variable."""

    parameters: Mapping[Value, Parameter]
    ranges: dict[str, tuple[int, int]]
    known: dict[Value, Affine] = field(default_factory=dict)
    unbounded: dict[Value, Affine] = field(default_factory=dict)
    """Also affine in parameters, whose numbers are not known."""

    def calculate(self, op: Operation) -> bool:
        """Whether the operation may result in an integer, which is known if its operands are."""
        if len(op.results) != 1 or not _is_integer(op.results[0].type):
            return False
        if op.name == "constant":
            number = int.from_bytes(op.attributes["value"], "little", signed=True)
            self.known[op.results[0]] = Affine(number)
        elif op.name in ("addi", "subi", "muli"):
            self.arithmetic(op)
        elif op.name in ("assume", "exti", "trunci"):
            self.converted(op)
        return True

    def bounds(self, op: Operation) -> tuple[Affine | None, Affine | None, int]:
        """Lower and upper, if they are known; the step, or 0."""
        low, high, step = (self.exact(op.operand(n)) for n in ("lower", "upper", "step"))
        if op.attributes.get("unsigned") and not (self.is_natural(low) and self.is_natural(high)):
            low = None
        return low, high, max(0, step.constant) if step and step.is_constant else 0

    def limit(self, value: Value) -> Affine | None:
        """The greatest number of a parameter that the function limits, or that is too great."""
        known = self.parameters.get(value)
        if known is None or (
            known.sure.high == of_type(value).high and known.sure.low <= MOST_TRIPS
        ):
            return None
        return Affine(known.sure.high)

    def most(self, value: Value, end: int) -> Iterator[tuple[Value, int]]:
        """Greatest numbers of parameters with which the value is at most `end`."""
        found = self.in_parameters(value)
        if found is not None:
            names = {_name_of(known.value): known.value for known in self.parameters.values()}
            raising = [
                (name, factor) for name, factor in found.terms if name in names and factor > 0
            ]
            others = tuple(term for term in found.terms if term[0] not in names)
            rest = end - Affine(found.constant, others).bounds(self.ranges)[1]
            for name, factor in raising:
                yield names[name], max(0, rest) // (len(raising) * factor)

    def in_parameters(self, value: Value) -> Affine | None:
        if value in self.parameters:
            return Affine.variable(_name_of(self.parameters[value].value))
        return self.known.get(value, self.unbounded.get(value))

    def is_natural(self, number: Affine | None) -> bool:
        return number is not None and number.bounds(self.ranges)[0] >= 0

    def exact(self, value: Value) -> Affine | None:
        """The signed number, if no iteration leaves its type."""
        found = self.known.get(value)
        if found is None:
            return None
        low, high = found.bounds(self.ranges)
        limits = of_type(value)
        return found if limits.low <= low and high <= limits.high else None

    def natural(self, value: Value) -> Affine | None:
        """The number without a sign, if none of its iterations or all of them wrap."""
        found = self.exact(value)
        if found is None or found.bounds(self.ranges)[0] >= 0:
            return found
        return found + (1 << bits_of(value)) if found.bounds(self.ranges)[1] < 0 else None

    def arithmetic(self, op: Operation) -> None:
        for known, of in ((self.known, self.known.get), (self.unbounded, self.in_parameters)):
            found = _calculated(op.name, of(op.operand("lhs")), of(op.operand("rhs")))
            if found is not None:
                known[op.results[0]] = found
                return

    def converted(self, op: Operation) -> None:
        """Fewer bits are the same number modulo less; more bits require a known number."""
        (source,) = op.inputs
        is_unsigned = op.attributes.get("signedness") == "unsigned"
        known = self.natural if is_unsigned else self.exact
        number = known(source) if op.name == "exti" else self.known.get(source)
        if number is not None:
            self.known[op.results[0]] = number
        elif source in self.unbounded and not is_unsigned and op.name != "trunci":
            self.unbounded[op.results[0]] = self.unbounded[source]

    def start(self, index: Value, step: int, extent: Size) -> Affine | None:
        """The first element; negative where it is outside of the extent."""
        found = self.natural(index) or self.exact(index)
        if found is None:
            return None
        wrapped = (found.bounds(self.ranges)[0] + (1 << bits_of(index))) * step
        is_known = self.is_natural(found) or wrapped >= greatest(extent)
        return found * step if is_known else None

    def size(self, value: Value) -> Size:
        number = self.natural(value)
        if number is not None and number.is_constant:
            return number.constant
        return self.parameters.get(value, value)


def _name_of(parameter: Value) -> str:
    return f"%{parameter.number}"


def _calculated(name: str, a: Affine | None, b: Affine | None) -> Affine | None:
    if a is None or b is None:
        return None
    if name != "muli":
        return a + b if name == "addi" else a - b
    if not (a.is_constant or b.is_constant):
        return None
    factor, other = (a, b) if a.is_constant else (b, a)
    return other * factor.constant


def _is_integer(kind: Type) -> bool:
    """Whether it is a scalar of 8 bits or more."""
    return kind.kind == "tile" and not kind["shape"] and (
        kind["element"].kind in ("i8", "i16", "i32", "i64")
    )  # fmt: skip
