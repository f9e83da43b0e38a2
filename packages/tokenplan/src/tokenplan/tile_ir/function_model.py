"""A decoded function as the planner sees it: loops, and accesses to elements of its parameters.

A branch is a loop of one iteration that may have none; so is the rest of a block behind operations
that may leave it.

Accesses by views of one tensor are compared by element, so that sizes and strides may be unknown.
An access by pointers, through an index that is not affine in loop variables, or by a view whose
elements may share bytes or that differs between iterations is taken to access all of its parameter.
Integers are computed modulo 2^bits: an affine value that its type cannot contain is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from neuroncore.layout import Layout
from neuroncore.program import Affine
from tokenplan.kernel.model import Access, Buffer, Kernel, Loop, Mode, Node, Op, walk
from tokenplan.tile_ir.bytecode import Block, BytecodeError, Function, Operation, Value
from tokenplan.tile_ir.bytecode.control_flow import LEAVES, LOOPS, is_left, may_leave
from tokenplan.tile_ir.bytecode.types import DYNAMIC, ITEM_BITS, Type, is_view
from tokenplan.tile_ir.integers import MOST_TRIPS, Integers
from tokenplan.tile_ir.model import TARGET, Order
from tokenplan.tile_ir.sizes import Dimension, Elements, Size, are_possible, parameters
from tokenplan.tile_ir.token_tracing import ACCESSES, address_owners, is_address, traced

_GRID = ("block_x", "block_y", "block_z")
_OVERLAPPING = "no sizes keep its elements disjoint together with what is assumed already"


@dataclass(frozen=True, slots=True)
class FunctionModel:
    """A function's kernel; `names` has the id of each access by its token, and of each loop and
    branch by the `id` of its block."""

    function: Function
    kernel: Kernel
    names: Mapping[Value | int, str]
    tokens: tuple[Order, ...]
    """The orders of the tokens that the bytecode has."""
    assumptions: tuple[str, ...]
    may_be_empty: frozenset[str]
    """Loops that may have no iteration."""
    exclusive: frozenset[frozenset[str]]
    """Every two branches of which one alone is executed."""
    grid: int = len(_GRID)


def function_model(function: Function) -> FunctionModel:
    """The kernel of a verified function; BytecodeError names what is not supported in it."""
    integers = Integers(parameters(function), dict.fromkeys(_GRID, (0, MOST_TRIPS - 1)))
    pointers = [value for value in function.body.arguments if is_address(value)]
    reader = _Reader(integers, address_owners(function), {value: value for value in pointers})
    reader.constant.update(function.body.arguments)
    body = reader.nodes(function.body, _GRID)
    reader.assume_together()
    for name in reversed(_GRID):
        body = (Loop(name, name, MOST_TRIPS, 0, 1, body),)
    body = reader.placed(body)
    names = sorted({name for found in reader.owners.values() for name in found})
    buffers = {n: Buffer(n, "global", reader.shapes.get(n, (1,)), 1, is_parameter=True)
               for n in names}  # fmt: skip
    return FunctionModel(
        function, Kernel(function.name, TARGET, buffers, body), reader.names,
        traced(function.body, reader.names), tuple(sorted(reader.assumptions)),
        frozenset(reader.may_be_empty), frozenset(reader.exclusive),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Tensor:
    """What decides where the elements of a tensor view are."""

    base: object
    element: Type
    shape: tuple[Size, ...]
    strides: tuple[Size, ...]


@dataclass(frozen=True, slots=True)
class _Box:
    """An access by elements: first index and extent per dimension."""

    first: tuple[Affine, ...]
    extents: tuple[int, ...]


@dataclass
class _Reader:
    integers: Integers
    owners: Mapping[Value, frozenset[str]]
    """By pointer or view, the parameters that it may point into; absent: not known."""
    tensors: dict[Value, object]
    """By pointer or view, what decides where its elements are; absent: not known."""
    constant: set[Value] = field(default_factory=set)
    """Values that are the same in all iterations of the loops around them."""
    names: dict[Value | int, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    elements: dict[str, _Box | None] = field(default_factory=dict)
    accessed: dict[str, set[object]] = field(default_factory=dict)
    """By parameter, the tensors whose elements are accessed."""
    opaque: dict[str, str] = field(default_factory=dict)
    """By parameter, why its elements may share bytes."""
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    may_be_empty: set[str] = field(default_factory=set)
    once: set[str] = field(default_factory=set)
    """Branches, which are loops of one iteration."""
    exclusive: set[frozenset[str]] = field(default_factory=set)
    assumptions: set[str] = field(default_factory=set)
    assumed: list[tuple[str, Elements]] = field(default_factory=list)
    """By parameter, elements that are assumed to be disjoint."""
    most: dict[Value, int] = field(default_factory=dict)
    """By parameter, the greatest number for which a loop has as many iterations as is assumed."""

    def nodes(self, block: Block, loops: tuple[str, ...]) -> tuple[Node, ...]:
        """Loops and accesses, whose bytes `placed` adds."""
        found: list[Node] = []
        for at, op in enumerate(block.operations):
            if op.name in LOOPS:
                found.append(self.loop(op, loops))
            elif op.name == "if":
                found += self.branches(op, loops)
            elif op.name in ACCESSES:
                found.append(self.access(op, loops))
            else:
                self.calculate(op)
            is_once = self.once.issuperset(loops[len(_GRID) :])
            if is_once or (self.is_pure(op) and self.constant.issuperset(op.inputs)):
                self.constant.update(op.results)
            if may_leave(op):
                return (*found, self.rest(op, block.operations[at + 1 :], loops))
        return tuple(found)

    def branches(self, op: Operation, loops: tuple[str, ...]) -> list[Loop]:
        one, other = op.regions
        found = [
            self.branch("if", id(one), one, loops),
            self.branch("else", id(other), other, loops),
        ]
        self.exclusive.add(frozenset(branch.id for branch in found))
        return found

    def rest(self, op: Operation, behind: tuple[Operation, ...], loops: tuple[str, ...]) -> Loop:
        """The operations behind one that may leave the block."""
        found = self.branch("rest", id(op), Block((), behind), loops)
        left = [region for region in op.regions if op.name == "if" and is_left(region)]
        self.exclusive |= {frozenset((self.names[id(region)], found.id)) for region in left}
        return found

    def branch(self, kind: str, key: int, block: Block, loops: tuple[str, ...]) -> Loop:
        """A loop of one iteration or none."""
        name = self.name(kind, key)
        self.once.add(name)
        self.may_be_empty.add(name)
        return Loop(name, name, 1, 0, 1, self.nodes(block, (*loops, name)))

    @staticmethod
    def is_pure(op: Operation) -> bool:
        return not op.regions and op.name not in ACCESSES

    # -- loops and integers -----------------------------------------------------------------------

    def loop(self, op: Operation, loops: tuple[str, ...]) -> Loop:
        (body,) = op.regions
        name = self.name("loop", id(body))
        trips = self.trips(op, name) if op.name == "for" else MOST_TRIPS
        return Loop(name, name, trips, 0, 1, self.nodes(body, (*loops, name)), op.place)

    def trips(self, op: Operation, name: str) -> int:
        """The greatest number of iterations; the variable is known by it."""
        low, high, step = self.integers.bounds(op)
        trips = MOST_TRIPS
        if low and step:
            self.integers.known[op.regions[0].arguments[0]] = Affine.variable(name, step) + low
            if end := high or self.integers.limit(op.operand("upper")):
                trips = max(0, -(-(end - low).bounds(self.integers.ranges)[1] // step))
            else:
                self.assumptions.add(f"loop {name} has at most 2^20 iterations")
                last = low.bounds(self.integers.ranges)[0] + step * MOST_TRIPS
                for parameter, most in self.integers.most(op.operand("upper"), last):
                    self.most[parameter] = min(self.most.get(parameter, most), most)
        if not (low and high and step and (high - low).is_constant):
            self.may_be_empty.add(name)
        self.integers.ranges[name] = (0, max(1, trips) - 1)
        return trips

    def name(self, kind: str, value: Value | int) -> str:
        self.counts[kind] += 1
        name = kind if self.counts[kind] == 1 else f"{kind}.{self.counts[kind]}"
        self.names[value] = name
        return name

    def calculate(self, op: Operation) -> None:
        """Integers, pointers and views that other operations make."""
        if op.regions:
            _check_region(op)
        elif op.name == "get_tile_block_id":
            self.integers.known.update(zip(op.results, map(Affine.variable, _GRID), strict=True))
            self.assumptions.add("a dimension of the grid has at most 2^20 blocks")
        elif not self.integers.calculate(op):
            self.forward(op)

    # -- pointers and views -----------------------------------------------------------------------

    def forward(self, op: Operation) -> None:
        """A pointer or view into parameters that are known."""
        if len(op.results) == 1 and op.results[0] in self.owners:
            tensor = self.tensor(op, op.results[0])
            if tensor is not None:
                self.tensors[op.results[0]] = tensor

    def tensor(self, op: Operation, result: Value) -> object | None:
        """The data that decide where the elements are; None where iterations differ in them."""
        if op.name == "make_tensor_view":
            base, kind = self.tensors.get(op.operand("base")), result.type
            numbers = (*op.operands["shape"], *op.operands["strides"])
            if base is None or not self.constant.issuperset(numbers):
                return None
            shape, strides = (self.sizes(kind[n], op.operands[n]) for n in ("shape", "strides"))
            return _Tensor(base, kind["element"], shape, strides)
        if op.name == "assume" or is_view(result.type):
            return self.tensors.get(next(op.inputs))
        return result if self.constant.issuperset(op.inputs) else None

    def sizes(self, static: Sequence[int], operands: Sequence[Value]) -> tuple[Size, ...]:
        """All extents or strides; operands as constants or parameters, if they are."""
        given = iter(operands)
        return tuple(self.integers.size(next(given)) if n == DYNAMIC else n for n in static)

    def access(self, op: Operation, loops: tuple[str, ...]) -> Op:
        kind = op.name.partition("_")[0]
        name, target = self.name(kind, op.results[-1]), op.operand(ACCESSES[op.name])
        owners = self.owners.get(target)
        if not owners:
            raise BytecodeError(f"{name} is not an access to parameters", got=_at(op))
        tensor = self.tensors.get(target)
        found = self.tile(op, target, tensor) if tensor and len(owners) == 1 else None
        if found and not self.is_injective(tensor, found, *owners):
            tensor = found = None
        self.elements[name] = found
        for owner in owners:
            self.accessed.setdefault(owner, set()).add(tensor)
        mode, order = Mode.read if kind == "load" else Mode.write, op.attributes["order"]
        details = (("order", order),) if order != "weak" else ()
        accesses = tuple(Access(n, mode, Affine(), (), (), 1) for n in sorted(owners))
        return Op(name, kind, "memory", loops, accesses, details, op.place)

    def tile(self, op: Operation, view: Value, tensor: object) -> _Box | None:
        """Where the tile starts, if its index is affine."""
        if not is_view(view.type) or view.type.kind == "gather_scatter_view":
            return None
        assert isinstance(tensor, _Tensor)  # of a view
        kind, tile = view.type, view.type["tile"]
        steps = kind["traversal"] if kind.kind == "strided_view" else tile
        order = sorted(range(len(tile)), key=lambda at: kind["dim_map"][at])
        starts = [self.integers.start(op.operands["index"][at], steps[at], extent)
                  for at, extent in zip(order, tensor.shape, strict=True)]  # fmt: skip
        firsts = tuple(start for start in starts if start is not None)
        return _Box(firsts, tuple(tile[at] for at in order)) if len(firsts) == len(tile) else None

    def is_injective(self, tensor: object, found: _Box, owner: str) -> bool:
        """Whether elements are different bytes, as far as the bytecode can say."""
        assert isinstance(tensor, _Tensor)  # of a view
        dims = []
        for extent, stride, first, tile in zip(
            tensor.shape, tensor.strides, found.first, found.extents, strict=True
        ):
            low, high = first.bounds(self.integers.ranges)
            dims.append(Dimension(extent, stride, low + tile, high + tile))
        elements = Elements(tuple(dims), ITEM_BITS[tensor.element.kind])
        is_known = elements.are_different()
        if is_known is None:
            self.assumed.append((owner, elements))
        return is_known is not False

    def assume_together(self) -> None:
        """Lists the parameters whose elements are disjoint, as many as can be together; an access
        to another is to all of its bytes."""
        kept: dict[Elements, None] = {}
        for owner in dict.fromkeys(owner for owner, _ in self.assumed):
            more = kept | dict.fromkeys(found for name, found in self.assumed if name == owner)
            if are_possible([*more], self.most):
                kept = more
                self.assumptions.add(f"different elements of {owner} are different bytes")
            else:
                self.accessed[owner].add(None)
                self.opaque[owner] = _OVERLAPPING

    # -- bytes ------------------------------------------------------------------------------------

    def placed(self, body: tuple[Node, ...]) -> tuple[Node, ...]:
        """The nodes, their accesses in elements of buffers that contain every tile."""
        ends: dict[str, list[list[int]]] = {}
        for op in walk(body):
            if isinstance(op, Op) and (found := self.elements[op.id]) is not None:
                last = [f.bounds(self.integers.ranges)[1] for f in found.first]
                end = [max(0, at) + n for at, n in zip(last, found.extents, strict=True)]
                ends.setdefault(op.accesses[0].buffer, []).append(end)
        for owner, all_ends in ends.items():
            if len({len(end) for end in all_ends}) == 1:
                self.shapes[owner] = tuple(map(max, zip(*all_ends, strict=True)))
        return tuple(map(self.place, body))

    def place(self, node: Node) -> Node:
        if isinstance(node, Loop):
            return replace(node, body=tuple(map(self.place, node.body)))
        exact = self.elements[node.id]
        accesses = tuple(self.bytes_of(access, exact) for access in node.accesses)
        return replace(node, accesses=accesses)

    def bytes_of(self, access: Access, found: _Box | None) -> Access:
        shape = self.shapes.get(access.buffer)
        if found is None or shape is None or len(self.accessed[access.buffer]) > 1:
            why = self.opaque.get(access.buffer, "its addresses are known on the device alone")
            size = 1 if shape is None else Layout.of(shape).size
            return replace(access, width=size, opaque=why)
        strides = tuple(f[0][1] if f else 1 for f in Layout.of(shape).dims)
        offset = sum((a * s for a, s in zip(found.first, strides, strict=True)), Affine())
        return replace(access, offset=offset, shape=found.extents, strides=strides)


def _check_region(op: Operation) -> None:
    """Operations inside of others than loops and `if` have no orders, and leave nothing."""
    inside = (inner for region in op.regions for inner in region.walk())
    if found := next((inner for inner in inside if inner.name in (*ACCESSES, *LEAVES)), None):
        kind = "an access" if found.name in ACCESSES else found.name
        raise BytecodeError(f"{kind} inside {op.name} is not supported", got=_at(op))


def _at(op: Operation) -> str | None:
    return f"{op.place.file}:{op.place.line}" if op.place else None
