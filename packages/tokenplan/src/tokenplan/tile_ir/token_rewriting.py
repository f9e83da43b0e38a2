"""A decoded function with other tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from tokenplan.tile_ir.bytecode import Block, Function, Operation, Value
from tokenplan.tile_ir.bytecode.building import BodyBuilder
from tokenplan.tile_ir.bytecode.types import TOKEN
from tokenplan.tile_ir.emission import Tokens, token_plan
from tokenplan.tile_ir.function_model import FunctionModel
from tokenplan.tile_ir.model import Order
from tokenplan.tile_ir.token_tracing import ACCESSES


def rewritten(found: FunctionModel, orders: Sequence[Order]) -> Function:
    """The function with these orders as its only tokens."""
    body = BodyBuilder()
    writer = _Rewriter(found, body, Tokens(token_plan(found.kernel, orders), body))
    parameters = body.values([value.type for value in found.function.body.arguments])
    writer.values.update(zip(found.function.body.arguments, parameters, strict=True))
    if any(writer.tokens.plan.carried.values()) or writer.tokens.plan.sums:
        writer.tokens.start()
    writer.block(found.function.body)
    return replace(found.function, body=Block(parameters, tuple(body.operations)))


@dataclass
class _Rewriter:
    found: FunctionModel
    body: BodyBuilder
    tokens: Tokens
    values: dict[Value, Value] = field(default_factory=dict)

    def block(self, block: Block, loop: str | None = None) -> None:
        for op in block.operations:
            self.body.place = op.place
            if op.name == "for":
                self.loop(op)
            elif op.name in ACCESSES:
                self.access(op)
            elif op.name not in ("make_token", "join_tokens"):
                self.operation(op, loop)

    def access(self, op: Operation) -> None:
        name = self.found.names[op.results[-1]]
        operands = self.operands(op)
        token = self.tokens.input(name)
        if token is not None:
            operands["token"] = [token]
        self.tokens.current[name] = self.add(op, op.results, operands)[-1]

    def operation(self, op: Operation, loop: str | None) -> None:
        operands = self.operands(op)
        if op.name == "continue" and loop is not None:
            operands["values"] += self.tokens.leave(loop)
        self.add(op, _kept(op.results), operands)

    def add(
        self, op: Operation, results: Sequence[Value], operands: dict[str, list[Value]]
    ) -> tuple[Value, ...]:
        regions = tuple(self.region(region) for region in op.regions)
        types = [value.type for value in results]
        made = self.body.add(op.name, types, dict(op.attributes), regions, **operands)
        self.values.update(zip(results, made, strict=True))
        return made

    def operands(self, op: Operation) -> dict[str, list[Value]]:
        return {name: self.mapped(values) for name, values in op.operands.items()}

    def mapped(self, values: Iterable[Value]) -> list[Value]:
        """The new values, without tokens."""
        return [self.values[value] for value in _kept(values)]

    def region(self, region: Block) -> Block:
        kept = _kept(region.arguments)
        with self.body.block([value.type for value in kept]) as made:
            self.values.update(zip(kept, made.arguments, strict=True))
            self.block(region)
        assert made.block is not None
        return made.block

    def loop(self, op: Operation) -> None:
        (body,) = op.regions
        name = self.found.names.get(body.arguments[0], "")
        keys, kept = self.tokens.keys(name), _kept(body.arguments)
        inits = self.mapped(op.operands["inits"]) + [self.tokens.start()] * len(keys)
        kinds = [*(value.type for value in kept[1:]), *[TOKEN] * len(keys)]
        bounds = {n: self.values[op.operand(n)] for n in ("lower", "upper", "step")}
        with self.body.block([kept[0].type, *kinds]) as made:
            self.values.update(zip(kept, made.arguments, strict=False))
            self.tokens.enter(name, made.arguments[len(kept) :])
            self.block(body, name)
        assert made.block is not None
        results = self.body.add(
            "for", kinds, dict(op.attributes), (made.block,), inits=inits, **bounds
        )
        old = _kept(op.results)
        self.values.update(zip(old, results, strict=False))
        self.tokens.after(name, results[len(old) :])


def _kept(values: Iterable[Value]) -> list[Value]:
    return [value for value in values if value.type != TOKEN]
