"""One number for all kernels that ask the same orders: names and places do not matter.

Statements that need no order among each other are put into a canonical one, names are replaced in
the order in which they then appear, and what is left is hashed. Where two independent statements
look alike in every respect that is compared, they stay as they stand: then equal kernels may have
two keys, unequal ones never share one.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Any

from tokenplan.graph.token_graph import (
    REMOVED,
    Claim,
    Join,
    MayAlias,
    Parallel,
    Pipeline,
    TokenGraph,
)
from tokenplan.kernel.model import Access, Buffer, Kernel, Loop, Node, Op, shared_loops

ROUNDS = 3
"""How many steps from statement to tensor to statement may distinguish two statements."""
ALIKE = 64
"""So many statements that look alike are compared by the names of their tensors."""


def key_of(graph: TokenGraph) -> str:
    """`sha256:` and the digest of the canonical form of the kernel and what is claimed of it."""
    form = _Form(graph.kernel, _dependences(graph))
    body = form.body(graph.kernel.body)
    claims = sorted(json.dumps(form.claim(claim)) for claim in graph.claims)
    results = [form.number(name) for name in graph.kernel.results]
    machine = [graph.kernel.target, graph.kernel.nki]
    whole = ["tokenplan/1", *machine, form.buffers, body, results, claims]
    text = json.dumps(whole, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _dependences(graph: TokenGraph) -> dict[str, set[str]]:
    """Nodes of one body that must stay behind others of it, by id: operations, and loops."""
    ops = {op.id: op for op in graph.kernel.ops()}
    behind: dict[str, set[str]] = defaultdict(set)
    for edge in graph.edges:
        if edge.status == REMOVED or any(edge.distance) or edge.source == edge.sink:
            continue
        source, sink = ops[edge.source], ops[edge.sink]
        depth = len(shared_loops(source, sink))
        behind[_inside(sink, depth)].add(_inside(source, depth))
    return behind


def _inside(op: Op, depth: int) -> str:
    """The node with this op in the body that is `depth` loops deep."""
    return f"loop {op.loops[depth]}" if depth < len(op.loops) else f"op {op.id}"


def _node_id(node: Node) -> str:
    return f"loop {node.id}" if isinstance(node, Loop) else f"op {node.id}"


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@dataclass(slots=True)
class _Form:
    """Names as they are given out: a number per buffer, loop and op."""

    kernel: Kernel
    behind: dict[str, set[str]]
    buffers: list[Any] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    """Of buffers."""
    ops: dict[str, int] = field(default_factory=dict)
    loops: dict[str, int] = field(default_factory=dict)
    colours: dict[str, str] = field(init=False)
    """What is alike has one colour: of nodes."""
    parameters: dict[str, int] = field(init=False)
    results: dict[str, list[int]] = field(init=False)
    """Where in what the kernel returns a buffer stands."""

    def __post_init__(self) -> None:
        named = [b.id for b in self.kernel.buffers.values() if b.is_parameter]
        self.parameters = {name: n for n, name in enumerate(named)}
        self.results = defaultdict(list)
        for n, name in enumerate(self.kernel.results):
            self.results[name].append(n)
        self.colours = self._colours()

    # -- what statements look like, without names -------------------------------------------------

    def _colours(self) -> dict[str, str]:
        trips = {name: loop.trips for name, loop in self.kernel.loops().items()}
        ops = list(self.kernel.ops())
        colours = {
            op.id: _digest(
                [trips[name] for name in op.loops],
                self._bare(op),
                [_access(access, op) for access in op.accesses],
                [self._describe(self.kernel.buffers[a.buffer]) for a in op.accesses],
            )
            for op in ops
        }
        for _ in range(ROUNDS):
            colours = _refined(ops, colours)
        found = {f"op {name}": colour for name, colour in colours.items()}
        for node in self.kernel.body:
            self._colour_loops(node, found)
        return found

    def _colour_loops(self, node: Node, found: dict[str, str]) -> str:
        if isinstance(node, Loop):
            inside = sorted(self._colour_loops(inner, found) for inner in node.body)
            found[_node_id(node)] = _digest(node.trips, inside)
        return found[_node_id(node)]

    def _describe(self, buffer: Buffer) -> list[Any]:
        parameter = self.parameters.get(buffer.id, -1)
        memory = [buffer.space, buffer.shape, buffer.itemsize, buffer.dtype, len(buffer.scope)]
        return [*memory, parameter, buffer.content, self.results.get(buffer.id, [])]

    @staticmethod
    def _bare(op: Op) -> list[Any]:
        return [op.instruction, op.engine, op.details]

    # -- in canonical order, with numbers for names -----------------------------------------------

    def body(self, nodes: tuple[Node, ...]) -> list[Any]:
        """The statements of one body; names are given out on the way."""
        left = {_node_id(node): node for node in nodes}
        position = {name: n for n, name in enumerate(left)}
        waits = {name: self.behind.get(name, set()) & left.keys() for name in left}
        after: dict[str, list[str]] = defaultdict(list)
        for name, others in waits.items():
            for other in others:
                after[other].append(name)
        heap = [(self.colours[name], position[name]) for name in left if not waits[name]]
        heapify(heap)
        names, found = list(left), []
        while heap:
            name = names[self._next(heap, nodes)]
            found.append(self._node(left[name]))
            for other in after[name]:
                waits[other] = waits[other] - {name}
                if not waits[other]:
                    heappush(heap, (self.colours[other], position[other]))
        return found

    def _next(self, heap: list[tuple[str, int]], nodes: tuple[Node, ...]) -> int:
        """Takes the position of the next statement: among statements that look alike, the one whose
        tensors were named first."""
        alike = [heappop(heap)]
        while heap and heap[0][0] == alike[0][0] and len(alike) < ALIKE:
            alike.append(heappop(heap))
        chosen = min(alike, key=lambda entry: (self._known(nodes[entry[1]]), entry[1]))
        for entry in alike:
            if entry is not chosen:
                heappush(heap, entry)
        return chosen[1]

    def _known(self, node: Node) -> list[int]:
        """Numbers of the buffers that have one, to distinguish what is otherwise identical."""
        if isinstance(node, Loop):
            return [number for inner in node.body for number in self._known(inner)]
        return [self.numbers.get(access.buffer, len(self.numbers)) for access in node.accesses]

    def _node(self, node: Node) -> list[Any]:
        if isinstance(node, Loop):
            self.loops[node.id] = len(self.loops)
            return [node.trips, self.body(node.body)]
        self.ops[node.id] = len(self.ops)
        accesses = [(self.number(access.buffer), _access(access, node)) for access in node.accesses]
        return [*self._bare(node), accesses]

    def number(self, buffer: str) -> int:
        """The buffer's number; a new one for a buffer that has none."""
        if buffer not in self.numbers:
            self.numbers[buffer] = len(self.buffers)
            self.buffers.append(self._describe(self.kernel.buffers[buffer]))
        return self.numbers[buffer]

    def claim(self, claim: Claim) -> list[Any]:
        """The claim, of numbers."""
        match claim:
            case Parallel(loop):
                return ["parallel", self.loops[loop]]
            case Pipeline(loop, depth):
                return ["pipeline", self.loops[loop], depth]
            case Join(source, sink):
                return ["join", self.ops[source], self.ops[sink]]
            case MayAlias(tensors):
                return ["may_alias", *sorted(map(self.number, tensors))]


def _refined(ops: list[Op], colours: dict[str, str]) -> dict[str, str]:
    """Colours that also distinguish operations whose tensors are used in different ways."""
    users: dict[str, list[Any]] = defaultdict(list)
    for op in ops:
        for n, access in enumerate(op.accesses):
            users[access.buffer].append((colours[op.id], n))
    tensors = {name: _digest(sorted(found)) for name, found in users.items()}
    return {op.id: _digest(colours[op.id], [tensors[a.buffer] for a in op.accesses]) for op in ops}


def _access(access: Access, op: Op) -> list[Any]:
    """Everything of an access but its buffer; loops go by their depth."""
    terms = sorted((op.loops.index(name), c) for name, c in access.offset.terms)
    swizzle = [access.swizzle.columns, access.swizzle.constant]
    place = [access.offset.constant, terms, access.shape, access.strides, access.width]
    return [access.mode, access.operand, place, access.opaque, swizzle]
