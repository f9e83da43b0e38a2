"""Orders of the tokens that a decoded function has, and its sizes that are parameters.

A parameter of the function is unknown: that a stride which is one keeps elements disjoint is an
assumption, if sizes exist with which it does. Of an extent, or of a number that is calculated in
another way, nothing is assumed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, lcm

from tokenplan.tile_ir.bytecode import Block, Bounded, DivBy, Function, Operation, Value
from tokenplan.tile_ir.bytecode.types import ITEM_BITS, TOKEN
from tokenplan.tile_ir.bytecode.verification import is_pointer
from tokenplan.tile_ir.model import Order

ACCESSES = {"load_view_tko": "view", "store_view_tko": "view", "load_ptr_tko": "source",
            "store_ptr_tko": "pointers", "atomic_rmw_tko": "pointers",
            "atomic_cas_tko": "pointers"}  # fmt: skip
"""Operations that access memory, and the operand that is a view or pointers."""


def traced(body: Block, names: Mapping[Value, str]) -> tuple[Order, ...]:
    """The order of each token that an access takes; `names` as in `FunctionModel`."""
    tracer = _Tracer(names)
    tracer.block(body)
    return tuple(dict.fromkeys(tracer.found))


_Sources = frozenset[tuple[str, str | None]]
"""Accesses that a token waits for directly, and the loop that carried it since."""


@dataclass
class _Tracer:
    names: Mapping[Value, str]
    sources: dict[Value, _Sources] = field(default_factory=dict)
    found: list[Order] = field(default_factory=list)

    def block(self, block: Block) -> None:
        for op in block.operations:
            if op.name == "for":
                self.loop(op)
            elif op.name in ACCESSES:
                name = self.names[op.results[-1]]
                for source, loop in sorted(self.of(op.operands.get("token", ())), key=str):
                    self.found.append(Order(source, name, loop, int(loop is not None)))
                self.sources[op.results[-1]] = frozenset({(name, None)})
            elif any(value.type == TOKEN for value in op.results):
                self.sources.update(dict.fromkeys(op.results, self.of(_used(op))))

    def of(self, values: Sequence[Value]) -> _Sources:
        return frozenset().union(*(self.sources.get(value, frozenset()) for value in values))

    def loop(self, op: Operation) -> None:
        """Arguments wait for what the iteration before yields: repeated until nothing is new."""
        (body,), inits = op.regions, op.operands["inits"]
        variable, *arguments = body.arguments
        name = self.names.get(variable, "")
        carried = [self.of([init]) for init in inits]
        last = body.operations[-1].operands["values"]
        known, changed = len(self.found), True
        while changed:
            del self.found[known:]
            self.sources.update(zip(arguments, carried, strict=True))
            self.block(body)
            after = [old | self.later([value], name)
                     for old, value in zip(carried, last, strict=True)]  # fmt: skip
            changed, carried = after != carried, after
        for result, value, init in zip(op.results, last, inits, strict=True):
            sources = self.of([value, init])
            self.sources[result] = frozenset((s, None if at == name else at) for s, at in sources)

    def later(self, values: Sequence[Value], loop: str) -> _Sources:
        """The sources one iteration of the loop later."""
        return frozenset((source, at or loop) for source, at in self.of(values))


def _used(op: Operation) -> list[Value]:
    """All values that an operation and what is inside of it take: a token of `if` waits for what
    either branch yields."""
    return [*op.inputs, *_inside(op)]


def _inside(op: Operation) -> Iterator[Value]:
    for region in op.regions:
        for inner in region.walk():
            yield from inner.inputs


# -- sizes ---------------------------------------------------------------------------------------

CONVERSIONS = ("assume", "exti", "trunci")
"""Operations that result in their operand, if its type can contain it."""
MOST_DIMENSIONS = 6
"""Of views whose strides are compared: the orders of more are too many."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """An integer parameter, with the limits of its type and of `assume`."""

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
    """The parameter that each value of the function is, where it is one.

    Only an `assume` outside of loops and branches, which is sure to be executed, limits it.
    """
    sources = {value: value for value in function.body.arguments if not is_pointer(value.type)}
    found = {value: of_type(value) for value in sources}
    always = {id(op) for op in function.body.operations}
    for op in function.body.walk():
        source = sources.get(next(op.inputs)) if _is_same_number(op) else None
        if source is not None:
            sources[op.results[0]] = source
            if id(op) in always:
                found[source] = _limited(found[source], op.attributes.get("predicate"))
    return {value: found[source] for value, source in sources.items()}


def _is_same_number(op: Operation) -> bool:
    is_extended = op.name == "exti" and op.attributes["signedness"] == "signed"
    return op.name == "assume" or is_extended


def of_type(value: Value) -> Parameter:
    """A parameter of which its type alone is known."""
    limit = 1 << ITEM_BITS[value.type["element"].kind] - 1
    return Parameter(value, -limit, limit - 1)


def _limited(known: Parameter, predicate: object) -> Parameter:
    low, high, divisor = known.low, known.high, known.divisor
    if isinstance(predicate, Bounded):
        low = low if predicate.low is None else max(low, predicate.low)
        high = high if predicate.high is None else min(high, predicate.high)
    elif isinstance(predicate, DivBy) and predicate.every is None and predicate.divisor:
        divisor = lcm(divisor, predicate.divisor)
    return Parameter(known.value, low, high, divisor)


def are_different(
    shape: Sequence[Size], strides: Sequence[Size], ends: Sequence[int]
) -> bool | None:
    """Whether each element has bytes of its own; None where strides that are parameters can be
    chosen so.

    Sufficient: each stride exceeds what all smaller ones reach. An extent that is not constant is 2
    or more, and contains the tile that ends at `ends`.
    """
    least = {}
    for size, end in zip(shape, ends, strict=True):
        if isinstance(size, Parameter):
            least[size.value] = max(least.get(size.value, 2), end)
    dims = [dim for dim in zip(shape, strides, strict=True) if dim[0] != 1]
    if len(dims) > MOST_DIMENSIONS:
        return False
    verdicts = {_exceeds(order) for order in _Choice(least).orders(dims)}
    return True if True in verdicts else None if None in verdicts else False


_Dim = tuple[Size, Size]


def _exceeds(order: Sequence[_Dim]) -> bool | None:
    """Whether each stride, from the innermost outwards, exceeds what the inner ones reach; None
    where it may be a parameter's choice. An extent that is a parameter may be its greatest.
    """
    reach, is_known = 0.0, True
    for size, stride in order:
        if not isinstance(stride, int):
            reach, is_known = 0.0, False
            continue
        if stride <= reach:
            return False
        greatest = size.high if isinstance(size, Parameter) else size
        reach += (greatest - 1) * stride if isinstance(greatest, int) else inf
    return True if is_known else None


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
