"""Sources of the tokens and the addresses of a decoded function.

Loops and branches pass both on: Triton's kernels carry pointers that each iteration advances,
others exchange two arrays in each. What a loop carries may point into all that any iteration does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tokenplan.tile_ir.bytecode import Block, Function, Operation, Value
from tokenplan.tile_ir.bytecode.control_flow import LOOPS, is_left, leaving
from tokenplan.tile_ir.bytecode.types import TOKEN, is_view
from tokenplan.tile_ir.bytecode.verification import is_pointer
from tokenplan.tile_ir.model import Order

ACCESSES = {"load_view_tko": "view", "store_view_tko": "view", "load_ptr_tko": "source",
            "store_ptr_tko": "pointers", "atomic_rmw_tko": "pointers",
            "atomic_cas_tko": "pointers"}  # fmt: skip
"""Operations that access memory, and the operand that is a view or pointers."""


def traced(body: Block, names: Mapping[Value | int, str]) -> tuple[Order, ...]:
    """The order of each token that an access takes; `names` as in `FunctionModel`."""
    tracer = _Tracer(names)
    tracer.block(body)
    return tuple(dict.fromkeys(tracer.found))


_Sources = frozenset[tuple[str, str | None]]
"""Accesses that a token waits for directly, and the loop that carried it since."""


@dataclass
class _Tracer:
    names: Mapping[Value | int, str]
    sources: dict[Value, _Sources] = field(default_factory=dict)
    found: list[Order] = field(default_factory=list)

    def block(self, block: Block) -> None:
        for op in block.operations:
            if op.name in LOOPS:
                self.loop(op)
            elif op.name in ACCESSES:
                name = self.names[op.results[-1]]
                for source, loop in sorted(self.of(op.operands.get("token", ())), key=str):
                    self.found.append(Order(source, name, loop, int(loop is not None)))
                self.sources[op.results[-1]] = frozenset({(name, None)})
            elif op.name == "if":
                self.branches(op)
            elif any(value.type == TOKEN for value in op.results):
                self.sources.update(dict.fromkeys(op.results, self.of([*op.inputs])))

    def branches(self, op: Operation) -> None:
        """A result waits for what either branch yields."""
        for region in op.regions:
            self.block(region)
        ends = [region.operations[-1] for region in op.regions if not is_left(region)]
        self.sources.update(zip(op.results, self.passed(ends, len(op.results)), strict=True))

    def passed(self, ends: Sequence[Operation], number: int) -> list[_Sources]:
        """By place, what any of these operations passes on."""
        return [self.of([end.operands["values"][at] for end in ends]) for at in range(number)]

    def of(self, values: Sequence[Value]) -> _Sources:
        return frozenset().union(*(self.sources.get(value, frozenset()) for value in values))

    def loop(self, op: Operation) -> None:
        """Arguments wait for what the iteration before passes on: repeated until nothing is new."""
        (body,), inits = op.regions, op.operands["inits"]
        name, arguments = self.names[id(body)], body.arguments[op.name == "for" :]
        ends = _ends(op, "continue")
        carried = [self.of([init]) for init in inits]
        known, changed, last = len(self.found), True, carried
        while changed:
            del self.found[known:]
            self.sources.update(zip(arguments, carried, strict=True))
            self.block(body)
            last = self.passed(ends, len(inits))
            after = [old | {(source, at or name) for source, at in new}
                     for old, new in zip(carried, last, strict=True)]  # fmt: skip
            changed, carried = after != carried, after
        self.sources |= {
            result: frozenset((source, None if at == name else at) for source, at in sources)
            for result, sources in zip(op.results, self.results(op, last), strict=True)
        }

    def results(self, op: Operation, last: Sequence[_Sources]) -> list[_Sources]:
        """A result of `for` also waits for the initial value, which may be passed on."""
        if op.name == "loop":
            return self.passed(_ends(op, "break"), len(op.results))
        return [new | self.of([init])
                for new, init in zip(last, op.operands["inits"], strict=True)]  # fmt: skip


def _ends(loop: Operation, name: str) -> list[Operation]:
    (body,) = loop.regions
    return [end for end in leaving(body) if end.name == name]


# -- addresses -------------------------------------------------------------------------------------

_UNKNOWN = frozenset({""})


def is_address(value: Value) -> bool:
    """Whether it is pointers or a view."""
    kind = value.type
    return is_pointer(kind) or is_view(kind) or kind.kind == "tensor_view"


def address_owners(function: Function) -> dict[Value, frozenset[str]]:
    """By pointer or view, the parameters; absent: not known."""
    found = {value: frozenset({f"p{n}"}) for n, value in enumerate(function.body.arguments)
             if is_pointer(value.type)}  # fmt: skip
    sources = [
        (value, given)
        for op in function.body.walk()
        for value, given in _origins(op)
        if is_address(value)
    ]
    while any(_grows(found, value, given) for value, given in sources):
        pass  # a loop passes to its next iteration what this one found
    return {value: owners for value, owners in found.items() if owners and not owners & _UNKNOWN}


def _grows(found: dict[Value, frozenset[str]], value: Value, given: Sequence[Value]) -> bool:
    """Whether the value may point into more than was found before, which is added."""
    before = found.get(value, frozenset())
    new = frozenset().union(*(found.get(v, frozenset()) for v in given)) if given else _UNKNOWN
    found[value] = before | new
    return not new <= before


def _origins(op: Operation) -> Iterator[tuple[Value, Sequence[Value]]]:
    """Each value that the operation defines, and the addresses that it may be; none: not known."""
    if op.name in LOOPS:
        yield from _of_loop(op)
    elif op.name == "if":
        ends = [region.operations[-1] for region in op.regions]
        yield from _passed(op.results, [end for end in ends if end.name == "yield"])
    else:
        is_one = len(op.results) == 1 and not op.regions
        given = [value for value in op.inputs if is_address(value)] if is_one else []
        yield from ((value, given) for value in op.results)


def _of_loop(op: Operation) -> Iterator[tuple[Value, Sequence[Value]]]:
    """Arguments and results; a `for` without iterations passes its initial values on."""
    (body,), inits = op.regions, op.operands["inits"]
    ends = [*leaving(body)]
    again = [end for end in ends if end.name == "continue"]
    last = again if op.name == "for" else [end for end in ends if end.name == "break"]
    arguments = body.arguments[op.name == "for" :]
    yield from ((value, [init]) for value, init in zip(arguments, inits, strict=True))
    yield from _passed(arguments, again)
    yield from _passed(op.results, last)
    if op.name == "for":
        yield from ((value, [init]) for value, init in zip(op.results, inits, strict=True))


def _passed(
    values: Sequence[Value], ends: Sequence[Operation]
) -> Iterator[tuple[Value, Sequence[Value]]]:
    for end in ends:
        given = end.operands["values"]
        yield from ((value, [one]) for value, one in zip(values, given, strict=True))
