"""Orders of the tokens that a decoded function has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tokenplan.tile_ir.bytecode import Block, Operation, Value
from tokenplan.tile_ir.bytecode.types import TOKEN
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
