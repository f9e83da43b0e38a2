"""Decoded bytecode as the planner sees it, its own tokens as orders, and new tokens in it.

Accesses by views of one tensor are compared by element, so that sizes and strides may be unknown;
that different elements of a tensor are different bytes is an assumption where strides are. An
access by pointers, or through an index that is not affine in loop variables, is taken to touch all
of its parameter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from neuroncore.layout import Layout
from neuroncore.program import Affine
from tokenplan.kernel.model import Access, Buffer, Kernel, Loop, Mode, Node, Op
from tokenplan.tile_ir.bytecode import Block, BytecodeError, Function, Operation, Value
from tokenplan.tile_ir.bytecode.building import BodyBuilder
from tokenplan.tile_ir.bytecode.types import TOKEN, Type, is_view
from tokenplan.tile_ir.emission import Tokens, token_plan
from tokenplan.tile_ir.model import TARGET, Order

MOST_TRIPS = 2**20
"""Iterations of a loop, and instances of a grid dimension, whose number is not in the bytecode."""
ACCESSES = {"load_view_tko": "view", "store_view_tko": "view", "load_ptr_tko": "source",
            "store_ptr_tko": "pointers", "atomic_rmw_tko": "pointers",
            "atomic_cas_tko": "pointers"}  # fmt: skip
_GRID = ("block_x", "block_y", "block_z")


@dataclass(frozen=True, slots=True)
class Imported:
    """A function's kernel; `names` are the ids of operations and loops, by their first result."""

    function: Function
    kernel: Kernel
    names: Mapping[Value, str]
    tokens: tuple[Order, ...]
    """The orders of the tokens that the bytecode has."""
    assumptions: tuple[str, ...]
    grid: int = len(_GRID)


def imported(function: Function) -> Imported:
    """The kernel of a function; BytecodeError names what is not supported in it."""
    reader = _Reader()
    for n, parameter in enumerate(function.body.arguments):
        if parameter.type["element"].kind == "ptr":
            reader.owners[parameter] = f"p{n}"
    body = reader.nodes(function.body, _GRID)
    for name in reversed(_GRID):
        body = (Loop(name, name, MOST_TRIPS, 0, 1, body),)
    body = reader.placed(body)
    buffers = {n: Buffer(n, "global", reader.shapes.get(n, (1,)), 1, is_parameter=True)
               for n in reader.owners.values()}  # fmt: skip
    kernel = Kernel(function.name, TARGET, buffers, body)
    tokens = tuple(dict.fromkeys(_Tracer(reader.names).orders(function.body)))
    return Imported(function, kernel, reader.names, tokens, tuple(sorted(reader.assumptions)))


# -- accesses --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Found:
    """An access by elements: first index and extent per dimension, or None."""

    first: tuple[Affine, ...]
    extents: tuple[int, ...]


@dataclass
class _Reader:
    owners: dict[Value, str] = field(default_factory=dict)
    """By pointer or view, the parameter that it points into."""
    bases: dict[Value, tuple[object, ...]] = field(default_factory=dict)
    """By view, what decides where its elements are."""
    integers: dict[Value, Affine] = field(default_factory=dict)
    names: dict[Value, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    found: dict[str, _Found | None] = field(default_factory=dict)
    tensors: dict[str, set[tuple[object, ...]]] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    trips: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_GRID, MOST_TRIPS))
    assumptions: set[str] = field(default_factory=set)

    def nodes(self, block: Block, loops: tuple[str, ...]) -> tuple[Node, ...]:
        """Loops and accesses, whose bytes `placed` adds."""
        found: list[Node] = []
        for op in block.operations:
            if op.name == "for":
                found.append(self.loop(op, loops))
            elif op.name in ACCESSES:
                found.append(self.access(op, loops))
            elif op.regions and any(inner.name in ACCESSES for inner in _inside(op)):
                raise BytecodeError(f"an access inside {op.name} is not supported", got=_at(op))
            else:
                self.calculate(op)
        return tuple(found)

    def loop(self, op: Operation, loops: tuple[str, ...]) -> Loop:
        name = self.name(op, "loop")
        variable, *_ = op.regions[0].arguments
        low, high, step = (self.integers.get(op.operand(n)) for n in ("lower", "upper", "step"))
        trips, first, by = MOST_TRIPS, 0, 1
        if low and low.is_constant and step and step.is_constant and step.constant > 0:
            first, by = low.constant, step.constant
            self.integers[variable] = Affine.variable(name, by) + first
            if high and high.is_constant:
                trips = max(0, -(-(high.constant - first) // by))
            else:
                self.assumptions.add(f"loop {name} has at most 2^20 iterations")
        self.trips[name] = trips
        return Loop(name, name, trips, 0, 1, self.nodes(op.regions[0], (*loops, name)), op.place)

    def name(self, op: Operation, kind: str) -> str:
        self.counts[kind] += 1
        name = kind if self.counts[kind] == 1 else f"{kind}.{self.counts[kind]}"
        if op.results:
            self.names[op.results[-1]] = name
        return name

    def access(self, op: Operation, loops: tuple[str, ...]) -> Op:
        kind = op.name.partition("_")[0]
        name, target = self.name(op, kind), op.operand(ACCESSES[op.name])
        owner = self.owners.get(target)
        if owner is None:
            raise BytecodeError(f"{name} is not an access to one parameter", got=_at(op))
        self.found[name] = self.elements(op, target)
        self.tensors.setdefault(owner, set()).add(self.bases.get(target, ("pointers", target)))
        mode = Mode.read if kind == "load" else Mode.write
        order = op.attributes["order"]
        details = (("order", order),) if order != "weak" else ()
        access = Access(owner, mode, Affine(), (), (), 1)
        return Op(name, kind, "memory", loops, (access,), details, op.place)

    def elements(self, op: Operation, view: Value) -> _Found | None:
        """Where the tile starts, if its index is affine."""
        if not is_view(view.type) or view.type.kind == "gather_scatter_view":
            return None
        kind, tile = view.type, view.type["tile"]
        steps = kind["traversal"] if kind.kind == "strided_view" else tile
        order = sorted(range(len(tile)), key=lambda at: kind["dim_map"][at])
        starts = [self.integers.get(op.operands["index"][at]) for at in order]
        known = [start for start in starts if start is not None]
        if len(known) < len(starts):
            return None
        firsts = tuple(start * steps[at] for start, at in zip(known, order, strict=True))
        return _Found(firsts, tuple(tile[at] for at in order))

    def calculate(self, op: Operation) -> None:
        """What the planner must know of other operations: integers, pointers and views."""
        match op.name:
            case "constant" if str(op.results[0].type) in ("tile<i32>", "tile<i64>"):
                value = int.from_bytes(op.attributes["value"], "little", signed=True)
                self.integers[op.results[0]] = Affine(value)
            case "get_tile_block_id":
                found = zip(op.results, map(Affine.variable, _GRID), strict=True)
                self.integers.update(found)
            case "addi" | "subi" | "muli":
                self.arithmetic(op)
            case _:
                self.forward(op)

    def arithmetic(self, op: Operation) -> None:
        a, b = (self.integers.get(op.operand(n)) for n in ("lhs", "rhs"))
        if a is None or b is None:
            return
        if op.name != "muli":
            self.integers[op.results[0]] = a + b if op.name == "addi" else a - b
        elif a.is_constant or b.is_constant:
            factor, other = (a, b) if a.is_constant else (b, a)
            self.integers[op.results[0]] = other * factor.constant

    def forward(self, op: Operation) -> None:
        """A value or view of an operand that is known."""
        inputs = list(op.inputs)
        if len(op.results) != 1 or not inputs:
            return
        (result,), source = op.results, inputs[0]
        if op.name in ("assume", "exti", "trunci") and source in self.integers:
            self.integers[result] = self.integers[source]
        if source in self.owners:
            self.owners[result] = self.owners[source]
            self.bases[result] = self.base(op, source)

    def base(self, op: Operation, source: Value) -> tuple[object, ...]:
        if op.name == "make_tensor_view":
            kind, numbers = op.results[0].type, (*op.operands["shape"], *op.operands["strides"])
            if kind["shape"] and op.operands["strides"]:
                owner = self.owners[source]
                self.assumptions.add(f"different elements of {owner} are different bytes")
            elif _overlaps(kind):
                return ("overlapping strides", op.results[0])
            return (self.bases.get(source), kind, numbers)
        return self.bases.get(source, ()) if op.name != "offset" else ("offset", op.results[0])

    # -- bytes ------------------------------------------------------------------------------------

    def placed(self, body: tuple[Node, ...]) -> tuple[Node, ...]:
        """The nodes, their accesses in elements of buffers that contain every tile."""
        ranges = {name: (0, max(1, n) - 1) for name, n in self.trips.items()}
        owners: dict[str, list[_Found]] = {}
        for op in _ops(body):
            found = self.found[op.id]
            if found is not None:
                owners.setdefault(op.accesses[0].buffer, []).append(found)
        for owner, accesses in owners.items():
            ends = [[f.bounds(ranges)[1] + n for f, n in zip(a.first, a.extents, strict=True)]
                    for a in accesses]  # fmt: skip
            if len({len(end) for end in ends}) == 1:
                self.shapes[owner] = tuple(map(max, zip(*ends, strict=True)))
        return tuple(map(self.place, body))

    def place(self, node: Node) -> Node:
        if isinstance(node, Loop):
            return replace(node, body=tuple(map(self.place, node.body)))
        (access,), found = node.accesses, self.found[node.id]
        shape = self.shapes.get(access.buffer)
        if found is None or shape is None or len(self.tensors[access.buffer]) > 1:
            why = "its addresses are known on the device alone"
            size = 1 if shape is None else Layout.of(shape).size
            return replace(node, accesses=(replace(access, width=size, opaque=why),))
        strides = [f[0][1] if f else 1 for f in Layout.of(shape).dims]
        offset = Affine()
        for first, stride in zip(found.first, strides, strict=True):
            offset += first * stride
        exact = replace(access, offset=offset, shape=found.extents, strides=tuple(strides))
        return replace(node, accesses=(exact,))


def _overlaps(kind: Type) -> bool:
    """Whether static strides give two elements one address."""
    reach = 0
    for stride, size in sorted(zip(kind["strides"], kind["shape"], strict=True)):
        if size != 1 and stride <= reach:
            return True
        reach += (size - 1) * stride if size > 0 else 0
    return False


def _ops(body: Sequence[Node]) -> Iterator[Op]:
    for node in body:
        if isinstance(node, Loop):
            yield from _ops(node.body)
        else:
            yield node


def _inside(op: Operation) -> Iterator[Operation]:
    for region in op.regions:
        yield from region.walk()


def _at(op: Operation) -> str | None:
    return f"{op.place.file}:{op.place.line}" if op.place else None


# -- the tokens that there are ---------------------------------------------------------------------

_Sources = frozenset[tuple[str, str | None]]
"""Accesses that a token waits for directly, and the loop that carried it since."""


@dataclass
class _Tracer:
    names: Mapping[Value, str]
    sources: dict[Value, _Sources] = field(default_factory=dict)
    found: list[Order] = field(default_factory=list)

    def orders(self, block: Block) -> list[Order]:
        """The order of each token that an access takes."""
        self.block(block)
        return self.found

    def block(self, block: Block) -> None:
        for op in block.operations:
            if op.name == "for":
                self.loop(op)
            elif op.name in ACCESSES:
                name = self.names[op.results[-1]]
                for source, loop in sorted(self.of(op.operands.get("token", ())), key=str):
                    self.found.append(Order(source, name, loop, int(loop is not None)))
                self.sources[op.results[-1]] = frozenset({(name, None)})
            elif op.name == "join_tokens":
                self.sources[op.results[0]] = self.of(op.operands["tokens"])

    def of(self, values: Sequence[Value]) -> _Sources:
        return frozenset().union(*(self.sources.get(value, frozenset()) for value in values))

    def loop(self, op: Operation) -> None:
        """Arguments wait for what the iteration before yields: repeated until nothing is new."""
        (body,), inits = op.regions, op.operands["inits"]
        name = self.names.get(op.results[-1], "loop") if op.results else "loop"
        arguments = body.arguments[1:]
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


# -- the same function with other tokens -----------------------------------------------------------


def rewritten(found: Imported, orders: Sequence[Order]) -> Function:
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
    found: Imported
    body: BodyBuilder
    tokens: Tokens
    values: dict[Value, Value] = field(default_factory=dict)

    def block(self, block: Block, loop: str | None = None) -> None:
        for op in block.operations:
            self.body.place = op.place
            if op.name == "for":
                self.loop(op)
            elif op.name not in ("make_token", "join_tokens"):
                self.operation(op, loop)

    def operation(self, op: Operation, loop: str | None) -> None:
        operands = {name: self.mapped(values) for name, values in op.operands.items()}
        if op.name == "continue" and loop is not None:
            operands["values"] += self.tokens.leave(loop)
        regions = tuple(self.region(region) for region in op.regions)
        name = self.found.names[op.results[-1]] if op.name in ACCESSES else None
        token = self.tokens.input(name) if name else None
        if token is not None:
            operands["token"] = [token]
        types = [value.type for value in op.results]
        results = self.body.add(op.name, types, dict(op.attributes), regions, **operands)
        self.values.update(zip(op.results, results, strict=True))
        if name:
            self.tokens.current[name] = results[-1]

    def mapped(self, values: Sequence[Value]) -> list[Value]:
        """The new values, without tokens."""
        return [self.values[value] for value in values if value.type != TOKEN]

    def region(self, region: Block) -> Block:
        with self.body.block([value.type for value in region.arguments]) as made:
            self.values.update(zip(region.arguments, made.arguments, strict=True))
            self.block(region)
        assert made.block is not None
        return made.block

    def loop(self, op: Operation) -> None:
        name = self.found.names.get(op.results[-1], "loop") if op.results else "loop"
        keys = self.tokens.keys(name)
        (body,) = op.regions
        kept = [value for value in body.arguments if value.type != TOKEN]
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
        old = [value for value in op.results if value.type != TOKEN]
        self.values.update(zip(old, results, strict=False))
        self.tokens.after(name, results[len(old) :])
