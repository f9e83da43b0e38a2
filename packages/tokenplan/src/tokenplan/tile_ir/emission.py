"""A kernel as Tile IR, described or decoded, with the tokens of its orders."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from neuroncore.notes import note_without_effect
from tokenplan.kernel.model import Kernel, Op, shared_loops
from tokenplan.tile_ir.bytecode import Block, Function, Module, Operation, Value
from tokenplan.tile_ir.bytecode.building import I32, BodyBuilder
from tokenplan.tile_ir.bytecode.control_flow import LOOPS
from tokenplan.tile_ir.bytecode.types import TOKEN, Type, pointer, tile
from tokenplan.tile_ir.computations import COMPUTATIONS
from tokenplan.tile_ir.description import (
    Compute,
    Described,
    DescriptionError,
    Repeat,
    Statement,
    Transfer,
)
from tokenplan.tile_ir.function_model import FunctionModel
from tokenplan.tile_ir.model import Order
from tokenplan.tile_ir.token_tracing import ACCESSES
from tokenplan.tile_ir.verdicts import CLUSTERS, check_target, ignored_hints
from tokenplan.tile_ir.views import Views

FURTHEST = 8
"""Iterations that a token is carried, at most: an order that reaches further waits for this one,
which comes later."""


@dataclass(frozen=True, slots=True)
class Plan:
    """By sink, what it waits for; by loop, how many iterations of which source it carries."""

    waits: dict[str, list[Order]]
    carried: dict[str, dict[str, int]]
    sums: dict[str, dict[str, None]]
    """By loop, sources whose every instance is awaited behind the loop."""


def token_plan(kernel: Kernel, orders: Sequence[Order]) -> Plan:
    """The tokens of these orders."""
    plan = Plan(defaultdict(list), defaultdict(dict), defaultdict(dict))
    ops = {op.id: op for op in kernel.ops()}
    for order in orders:
        source, sink = ops[order.source].loops, ops[order.sink].loops
        plan.waits[order.sink].append(order)
        shared = sum(a == b for a, b in zip(source, sink, strict=False))
        if order.loop is not None:
            shared = source.index(order.loop) + 1
            entry = plan.carried[order.loop]
            depth = min(order.distance, FURTHEST)
            entry[order.source] = max(entry.get(order.source, 0), depth)
        for loop in source[shared:]:
            plan.sums[loop][order.source] = None
    return plan


@dataclass
class _Loop:
    """Values of a loop without its tokens."""

    arguments: Sequence[Value]
    results: Sequence[Value] = ()


@dataclass
class Tokens:
    """Tokens while the body of a kernel is emitted."""

    plan: Plan
    body: BodyBuilder
    current: dict[str, Value] = field(default_factory=dict)
    """By source, the token of its instances in this iteration."""
    before: dict[tuple[str, str, int], Value] = field(default_factory=dict)
    """By loop, source and distance, the token of its instances up to that iteration."""
    fresh: Value | None = None

    def start(self) -> Value:
        """A token that waits for nothing."""
        if self.fresh is None:
            self.fresh = self.body.one("make_token", TOKEN)
        return self.fresh

    def input(self, sink: str) -> Value | None:
        """The token that the access waits for."""
        found = []
        for order in self.plan.waits.get(sink, ()):
            if order.loop is None:
                found.append(self.current[order.source])
            else:
                depth = min(order.distance, FURTHEST)
                found.append(self.before[order.loop, order.source, depth])
        return self.body.join(found) if found else None

    def keys(self, loop: str) -> list[tuple[str, int]]:
        """The tokens that a loop carries: source and distance."""
        carried = self.plan.carried.get(loop, {})
        names = dict.fromkeys((*carried, *self.plan.sums.get(loop, {})))
        return [(name, d) for name in names for d in range(1, carried.get(name, 1) + 1)]

    def leave(self, loop: str) -> list[Value]:
        """The values of the next iteration, or of the results, from where this one is left."""
        found = []
        for name, distance in self.keys(loop):
            if distance > 1:
                found.append(self.before[loop, name, distance - 1])
                continue
            now = [self.current[name]] if name in self.current else []
            found.append(self.body.join([self.before[loop, name, 1], *now]))
        return found

    @contextmanager
    def loop(
        self, name: str, variable: Sequence[Type], inits: Sequence[Value], results: Sequence[Type],
        attributes: Mapping[str, Any], **bounds: Value,
    ) -> Iterator[_Loop]:  # fmt: skip
        """A loop that carries the tokens of `keys` behind `inits`; its body is added inside."""
        keys = self.keys(name)
        carried = [value.type for value in inits]
        tokens, starts = [TOKEN] * len(keys), [self.start()] * len(keys)
        with self.body.block((*variable, *carried, *tokens)) as region:
            split = len(region.arguments) - len(keys)
            made = _Loop(region.arguments[:split])
            for (source, distance), value in zip(keys, region.arguments[split:], strict=True):
                self.before[name, source, distance] = value
            yield made
        assert region.block is not None
        found = self.body.add(
            "for" if variable else "loop", (*results, *tokens), dict(attributes), (region.block,),
            inits=[*inits, *starts], **bounds,
        )  # fmt: skip
        made.results = found[: len(results)]
        for (source, distance), value in zip(keys, found[len(results) :], strict=True):
            if distance == 1:
                self.current[source] = value

    def of(self, sources: Iterable[str]) -> list[Value]:
        """The token of each; one that waits for nothing where it has no instance."""
        return [self.current.get(source) or self.start() for source in sources]


# -- the body --------------------------------------------------------------------------------------


def emit(
    described: Described,
    kernel: Kernel,
    orders: Sequence[Order],
    version: tuple[int, int] = (13, 3),
    target: str = "sm_90",
) -> Module:
    """The module of one kernel; `target` is the architecture that its hints are for.

    Raises DescriptionError for an order that no token of the kernel expresses.
    """
    check_target(described, target)
    _check_orders(described, kernel, orders)
    ignored = ignored_hints(described, target)
    for name in ignored:
        note_without_effect(f"the hint {name}", f"{target} does not have it", CLUSTERS)
    body = BodyBuilder(is_numbered=True)
    emitter = _Emitter(described, target, Views(body, described.ranges()))
    parameters = body.values([tile(pointer(array.dtype)) for array in described.arrays])
    emitter.tokens = Tokens(token_plan(kernel, orders), body)
    if any(order.loop is not None for order in orders) or emitter.tokens.plan.sums:
        emitter.tokens.start()
    emitter.start(parameters)
    emitter.statements(described.body)
    body.add("return", ())
    kept = {name: value for name, value in described.hints.items() if name not in ignored}
    hints = {target: kept} if kept else {}
    block = Block(parameters, tuple(body.operations))
    place = next((s.place for s in described.body if s.place), None)
    return Module((Function(described.name, block, hints, True, place),), version)


def _check_orders(described: Described, kernel: Kernel, orders: Sequence[Order]) -> None:
    ops = {op.id: op for op in kernel.ops()}
    at = {made.id: n for n, made in enumerate(described.transfers())}
    if at.keys() != ops.keys():
        raise DescriptionError(f"{kernel.name} is not the kernel of this description")
    for order in orders:
        if wrong := _mistake(order, ops, at, len(described.grid)):
            raise DescriptionError(f"{order}: {wrong}", expected="orders as of `orders_of`")


def _mistake(order: Order, ops: Mapping[str, Op], at: Mapping[str, int], grid: int) -> str | None:
    """The reason why a token cannot express the order."""
    for name in (order.source, order.sink):
        if name not in ops:
            return f"{name} is not an access of the kernel"
    if order.loop is None:
        return None if at[order.source] < at[order.sink] else "the sink is not after the source"
    if order.loop not in shared_loops(ops[order.source], ops[order.sink])[grid:]:
        return f"{order.loop} is not a loop around both accesses"
    return None if order.distance >= 1 else "the distance is not 1 or more"


@dataclass
class _Emitter:
    described: Described
    target: str
    views: Views
    tiles: dict[str, Value] = field(default_factory=dict)
    tokens: Tokens = field(init=False)

    @property
    def body(self) -> BodyBuilder:
        return self.views.body

    def start(self, parameters: Sequence[Value]) -> None:
        """Grid indices, arrays and views, which all of the body uses."""
        if self.described.grid:
            found = self.body.add("get_tile_block_id", (I32, I32, I32))
            names = (name for name, _ in self.described.grid)
            self.views.variables |= dict(zip(names, found, strict=False))
        for array, value in zip(self.described.arrays, parameters, strict=True):
            self.views.bases[array.name] = self.body.multiple(value, array.alignment)
        for made in self.described.transfers():
            self.body.place = made.place
            self.views.view(made)

    def statements(self, body: Sequence[Statement]) -> None:
        for statement in body:
            self.body.place = statement.place
            match statement:
                case Transfer():
                    self.transfer(statement)
                case Compute():
                    inputs = [self.tiles[t.id] for t in statement.inputs]
                    found = COMPUTATIONS[statement.operation].emit(self.body, statement, inputs)
                    self.tiles[statement.result.id] = found
                case Repeat():
                    self.repeat(statement)

    def transfer(self, made: Transfer) -> None:
        attributes: dict[str, object] = {"order": made.order}
        if made.scope is not None:
            attributes["scope"] = made.scope
        if made.hints:
            attributes["hints"] = {self.target: dict(made.hints)}
        token = self.tokens.input(made.id)
        if made.kind == "store":
            value = self.tiles[made.tile.id]
            done = self.views.store(made, value, attributes, token)
        elif made.operand is not None:
            value = self.tiles[made.operand.id]
            self.tiles[made.tile.id], done = self.views.atomic(made, value, attributes, token)
        else:
            self.tiles[made.tile.id], done = self.views.load(made, attributes, token)
        self.tokens.current[made.id] = done

    def repeat(self, loop: Repeat) -> None:
        initials, insides, updates, results = [*zip(*loop.carried, strict=True)] or [()] * 4
        lower, upper, step = (self.body.integer(n) for n in (0, loop.trips, 1))
        inits = [self.tiles[initial.id] for initial in initials]
        bounds = {"lower": lower, "upper": upper, "step": step}
        kinds = [value.type for value in inits]
        with self.tokens.loop(loop.name, [I32], inits, kinds, {}, **bounds) as made:
            self.views.variables[loop.name], *arguments = made.arguments
            self.tiles.update(zip((tile.id for tile in insides), arguments, strict=True))
            self.statements(loop.body)
            values = [self.tiles[update.id] for update in updates]
            self.body.add("continue", (), values=[*values, *self.tokens.leave(loop.name)])
        self.tiles.update(zip((tile.id for tile in results), made.results, strict=True))


# -- a decoded function with other tokens ----------------------------------------------------------


def rewritten(found: FunctionModel, orders: Sequence[Order]) -> Function:
    """The function with these orders as its only tokens."""
    body = BodyBuilder()
    writer = _Rewriter(found, body, Tokens(token_plan(found.kernel, orders), body))
    parameters = body.values([value.type for value in found.function.body.arguments])
    writer.values.update(zip(found.function.body.arguments, parameters, strict=True))
    if any(writer.tokens.plan.carried.values()) or writer.tokens.plan.sums:
        writer.tokens.start()
    writer.block(found.function.body, {})
    return replace(found.function, body=Block(parameters, tuple(body.operations)))


_Ends = Mapping[str, Callable[[], list[Value]]]
"""By the operation that ends a block, the tokens that it passes on."""


@dataclass
class _Rewriter:
    found: FunctionModel
    body: BodyBuilder
    tokens: Tokens
    values: dict[Value, Value] = field(default_factory=dict)

    def block(self, block: Block, ends: _Ends) -> None:
        for op in block.operations:
            self.body.place = op.place
            if op.name in LOOPS:
                self.loop(op)
            elif op.name == "if":
                self.branches(op, ends)
            elif op.name in ACCESSES:
                self.access(op)
            elif op.name not in ("make_token", "join_tokens"):
                self.operation(op, ends)

    def access(self, op: Operation) -> None:
        name = self.found.names[op.results[-1]]
        operands = self.operands(op)
        token = self.tokens.input(name)
        if token is not None:
            operands["token"] = [token]
        self.tokens.current[name] = self.add(op, op.results, operands)[-1]

    def operation(self, op: Operation, ends: _Ends) -> None:
        operands = self.operands(op)
        if op.name in ends:
            operands["values"] += ends[op.name]()
        self.add(op, _kept(op.results), operands)

    def add(
        self, op: Operation, results: Sequence[Value], operands: dict[str, list[Value]]
    ) -> tuple[Value, ...]:
        regions = tuple(self.region(region, {}) for region in op.regions)
        types = [value.type for value in results]
        made = self.body.add(op.name, types, dict(op.attributes), regions, **operands)
        self.values.update(zip(results, made, strict=True))
        return made

    def operands(self, op: Operation) -> dict[str, list[Value]]:
        return {name: self.mapped(values) for name, values in op.operands.items()}

    def mapped(self, values: Iterable[Value]) -> list[Value]:
        """The new values, without tokens."""
        return [self.values[value] for value in _kept(values)]

    def region(self, region: Block, ends: _Ends) -> Block:
        kept = _kept(region.arguments)
        with self.body.block([value.type for value in kept]) as made:
            self.values.update(zip(kept, made.arguments, strict=True))
            self.block(region, ends)
        assert made.block is not None
        return made.block

    def branches(self, op: Operation, ends: _Ends) -> None:
        """An `if` whose results are also the tokens of accesses that others behind it wait for."""
        sums = self.tokens.plan.sums
        sources = [s for region in op.regions for s in sums.get(self.found.names[id(region)], ())]
        ends, outer, regions = (
            {**ends, "yield": partial(self.tokens.of, sources)},
            self.tokens.current,
            [],
        )
        for region in op.regions:
            self.tokens.current = dict(outer)
            regions.append(self.region(region, ends))
        self.tokens.current, kept = outer, _kept(op.results)
        kinds = [*(value.type for value in kept), *[TOKEN] * len(sources)]
        made = self.body.add("if", kinds, dict(op.attributes), tuple(regions), **self.operands(op))
        self.values.update(zip(kept, made, strict=False))
        outer.update(zip(sources, made[len(kept) :], strict=True))

    def loop(self, op: Operation) -> None:
        (body,), is_counted = op.regions, op.name == "for"
        name, kept, results = self.found.names[id(body)], _kept(body.arguments), _kept(op.results)
        operands = self.operands(op)
        inits = operands.pop("inits")
        bounds = {bound: value for bound, (value,) in operands.items()}
        variable = [value.type for value in kept[:is_counted]]
        kinds = [value.type for value in results]
        ends = dict.fromkeys(("continue", "break"), partial(self.tokens.leave, name))
        with self.tokens.loop(name, variable, inits, kinds, op.attributes, **bounds) as made:
            self.values.update(zip(kept, made.arguments, strict=True))
            self.block(body, ends)
        self.values.update(zip(results, made.results, strict=True))


def _kept(values: Iterable[Value]) -> list[Value]:
    return [value for value in values if value.type != TOKEN]
