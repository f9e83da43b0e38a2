"""The orders that become tokens: conflicts that the analysis finds, each with its loop.

An edge of a token graph orders all iterations from its least distance on. A token of one iteration
orders less: so each conflict is looked at once in the same iteration and once per loop that could
carry it, and only what conflicts there is ordered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, pairwise, product

from tokenplan.analysis import analyse, listed
from tokenplan.graph.token_graph import ALIAS, JOIN, Join, TokenGraph
from tokenplan.kernel.model import Kernel, Loop, Mode, Op, commute, shared_loops
from tokenplan.rules import BUDGET, Conflict, Pair, carried_by, decide
from tokenplan.rules.candidate_orders import Place, places
from tokenplan.tile_ir.description import Described
from tokenplan.tile_ir.model import DescribedOrders, Order, Orders, kernel_of
from tokenplan.tile_ir.verdicts import diagnostics, verdicts

ACQUIRES, RELEASES = ("acquire", "acq_rel"), ("release", "acq_rel")


def orders_of(described: Described, budget: int = BUDGET, target: str = "sm_90") -> DescribedOrders:
    """The orders of a described kernel; see `tokenplan.analyse` for what they rest on.

    The details of each access are its view and whether the target's TMA can make it; diagnostics W4
    name the accesses that it cannot make.
    """
    judged = list(verdicts(described, target))
    kernel = kernel_of(described, {verdict.access.id: verdict.details for verdict in judged})
    may_alias = [
        (a.name, b.name)
        for a, b in combinations(described.arrays, 2)
        if a.alias_group is not None and a.alias_group == b.alias_group
    ]
    found = orders_of_kernel(kernel, len(described.grid), may_alias, budget)
    graph = replace(found.graph, diagnostics=(*found.graph.diagnostics, *diagnostics(judged)))
    return DescribedOrders(kernel, graph, found.needed, found.kept, described)


def orders_of_kernel(
    kernel: Kernel, grid: int, may_alias: Iterable[tuple[str, str]] = (), budget: int = BUDGET,
    may_be_empty: Collection[str] = (), exclusive: Collection[frozenset[str]] = (),
    unproved: Collection[tuple[str, ...]] = (),
) -> Orders:  # fmt: skip
    """The orders of a kernel whose outermost `grid` loops count its instances.

    may_alias: pairs of buffers that may share bytes. may_be_empty: loops that may have no iteration
    although their greatest number of iterations is known. exclusive: every two of these of which
    one alone is executed in an iteration of the loops around. unproved: accesses that stay in order
    with all that may access the same parameter, and two accesses that stay in order.
    """
    may_alias = tuple(may_alias)
    joins = fences(kernel, grid, {*map(frozenset, may_alias)}, unproved)
    graph = analyse(kernel, joins, budget, may_alias=may_alias)
    search = _Search(kernel, grid, budget)
    ops = {op.id: op for op in kernel.ops()}
    needed = tuple(
        order
        for order in dict.fromkeys((*search.conflicts(), *_requested(kernel, graph, grid)))
        if order.loop or not _are_exclusive(ops[order.source], ops[order.sink], exclusive)
    )
    new = search.assumes - {*graph.assumptions}
    graph = replace(
        graph,
        assumptions=tuple(sorted((*graph.assumptions, *new))),
        diagnostics=(*graph.diagnostics, *listed(sorted(new))),
    )
    return Orders(kernel, graph, needed, reduced(kernel, needed, may_be_empty))


def _are_exclusive(one: Op, other: Op, exclusive: Collection[frozenset[str]]) -> bool:
    """Whether one iteration of the loops around both executes one of them alone."""
    at = len(shared_loops(one, other))
    return frozenset((*one.loops[at : at + 1], *other.loops[at : at + 1])) in exclusive


def _repeated(loops: Mapping[str, Loop], one: Op, other: Op, grid: int) -> list[str]:
    """The loops around both that may have two iterations or more."""
    return [name for name in shared_loops(one, other)[grid:] if loops[name].trips > 1]


def fences(
    kernel: Kernel, grid: int, may_alias: Collection[frozenset[str]] = (),
    unproved: Collection[tuple[str, ...]] = (),
) -> tuple[Join, ...]:  # fmt: skip
    """The orders of acquire and release, which any bytes have, of two loads that are not both
    weak from buffers that may share bytes, and of what is not proved."""
    assert {*chain(*unproved)} <= {op.id for op in kernel.ops()}
    found, loops = [], kernel.loops()
    for (at, one), (late, other) in product(enumerate(kernel.ops()), repeat=2):
        is_needed = (
            is_fence(one, other)
            or _may_be_one_location(one, other, may_alias)
            or _is_unproved(one, other, may_alias, unproved)
        )
        if is_needed and (at < late or _repeated(loops, one, other, grid)):
            found.append(Join(one.id, other.id))
    return tuple(found)


def _is_unproved(
    one: Op, other: Op, may_alias: Collection[frozenset[str]], unproved: Collection[tuple[str, ...]]
) -> bool:
    """Whether the two are, or one of them is and the other may access the same bytes."""
    if are_weak_loads(one, other):
        return False
    is_either = (one.id,) in unproved or (other.id,) in unproved
    are_both = (one.id, other.id) in unproved or (other.id, one.id) in unproved
    return are_both or (is_either and _may_share_bytes(one, other, may_alias))


def _may_share_bytes(one: Op, other: Op, may_alias: Collection[frozenset[str]]) -> bool:
    """Whether both access one buffer, or two that may share bytes."""
    a, b = ({access.buffer for access in op.accesses} for op in (one, other))
    return bool(a & b) or any(frozenset(pair) in may_alias for pair in product(a, b))


def is_fence(source: Op, sink: Op) -> bool:
    """Whether an acquire or a release orders the two."""
    before, after = (dict(op.details).get("order") for op in (source, sink))
    return before in ACQUIRES or after in RELEASES


def _may_be_one_location(one: Op, other: Op, may_alias: Collection[frozenset[str]]) -> bool:
    """Whether two loads that are not both weak may be of one location of two buffers."""
    if not one.instruction == other.instruction == "load" or are_weak_loads(one, other):
        return False
    a, b = ({access.buffer for access in op.accesses} for op in (one, other))
    return any(frozenset(pair) in may_alias for pair in product(a, b))


def are_weak_loads(one: Op, other: Op) -> bool:
    """Whether both are loads without a memory order: others of one location stay in order."""
    return all(op.instruction == "load" and "order" not in dict(op.details) for op in (one, other))


def _in_order(place: Place) -> Place:
    """The access; that of a load with a memory order as if it wrote, which no order but that of
    bytes removes."""
    if "order" not in dict(place.op.details):
        return place
    return replace(place, access=replace(place.access, mode=Mode.write))


def total_orders(kernel: Kernel, grid: int = 0) -> tuple[Order, ...]:
    """The order that is always right: every operation after the one before, every loop closed."""
    ops = list(kernel.ops())
    found = [Order(a.id, b.id) for a, b in pairwise(ops)]
    inside = defaultdict(list)
    for op in ops:
        for loop in op.loops[grid:]:
            inside[loop].append(op.id)
    return (*found, *(Order(ids[-1], ids[0], loop, 1) for loop, ids in inside.items()))


@dataclass
class _Search:
    """Conflicts, and the assumptions of the pairs without one."""

    kernel: Kernel
    grid: int
    budget: int
    assumes: set[str] = field(default_factory=set)

    def conflicts(self) -> Iterator[Order]:
        by_buffer: dict[str, list[Place]] = defaultdict(list)
        for place in map(_in_order, places(self.kernel)):
            by_buffer[place.access.buffer].append(place)
        for group in by_buffer.values():
            for a, b in product(group, repeat=2):
                if not commute(a.access.mode, b.access.mode):
                    yield from self.of_pair(a, b)

    def of_pair(self, a: Place, b: Place) -> Iterator[Order]:
        """The orders of two accesses to one buffer: in one iteration, and by each loop."""
        if a.at < b.at:
            pair = Pair(a, b, later=False)
            answer = decide(pair, self.budget).answer
            if isinstance(answer, Conflict) and not any(answer.distance):
                yield Order(a.op.id, b.op.id)
            else:
                self.assumes.update(pair.assumes)
        pair = Pair(a, b, later=True)
        for at, loop in enumerate(pair.shared):
            if at >= self.grid and pair.trips[loop][1] > 0:
                if found := carried_by(pair, loop, self.budget):
                    yield Order(a.op.id, b.op.id, loop, found.distance[at])
                else:
                    self.assumes.update(pair.assumes)


def _requested(kernel: Kernel, graph: TokenGraph, grid: int) -> Iterator[Order]:
    """Orders for other reasons than bytes: memory orders and arrays that may share bytes."""
    ops, loops = {op.id: op for op in kernel.ops()}, kernel.loops()
    at = {name: n for n, name in enumerate(ops)}
    for edge in graph.edges:
        if edge.rule in (JOIN, ALIAS):
            if at[edge.source] < at[edge.sink]:
                yield Order(edge.source, edge.sink)
            for loop in _repeated(loops, ops[edge.source], ops[edge.sink], grid):
                yield Order(edge.source, edge.sink, loop, 1)


# -- what follows from others ----------------------------------------------------------------------


def reduced(
    kernel: Kernel, needed: tuple[Order, ...], may_be_empty: Collection[str] = ()
) -> tuple[Order, ...]:
    """The orders that no path of others implies; the furthest is tried first."""
    implication = _Implication(kernel, may_be_empty, set(needed))
    at = {op.id: n for n, op in enumerate(kernel.ops())}
    longest = sorted(needed, key=lambda o: (-o.distance, at[o.source] - at[o.sink], o.loop or ""))
    for order in longest:
        implication.kept.discard(order)
        if not implication.follows(order):
            implication.kept.add(order)
    return tuple(order for order in needed if order in implication.kept)


@dataclass
class _Implication:
    kernel: Kernel
    may_be_empty: Collection[str]
    kept: set[Order]
    ops: Mapping[str, Op] = field(init=False)
    empty: Mapping[str, bool] = field(init=False)

    def __post_init__(self) -> None:
        self.ops = {op.id: op for op in self.kernel.ops()}
        self.empty = {name: not loop.trips or name in self.may_be_empty
                      for name, loop in self.kernel.loops().items()}  # fmt: skip

    def follows(self, order: Order) -> bool:
        """Whether a path of kept orders through other operations implies it.

        Depth-first over operations with the iterations that remain. A path to the sink of a
        carried order contains a carried step: others order one iteration alone.
        """
        start = (order.source, order.distance)
        seen, stack = {start}, [start]
        while stack:
            name, left = stack.pop()
            for step in self._steps(order, name, left):
                rest = left - step.distance
                if step.sink == order.sink and (order.loop is None or rest < order.distance):
                    return True
                new = (step.sink, rest)
                if new not in seen and self._is_sure(order, *new):
                    seen.add(new)
                    stack.append(new)
        return False

    def _steps(self, order: Order, name: str, left: int) -> Iterator[Order]:
        """Orders of the operation within the remaining iterations."""
        for step in self.kept:
            is_near = step.loop in (None, order.loop) and step.distance <= left
            if step.source == name and is_near and self._in_loops(order, step.sink):
                yield step

    def _is_sure(self, order: Order, name: str, left: int) -> bool:
        """Whether the operation runs in that iteration wherever the source and the sink do.

        In a loop that may be empty it runs where the source does, in the source's iteration, or
        where the sink does, in the sink's: where no iterations remain.
        """
        is_first = left == order.distance
        known = self._shared(name, order.source) if is_first else self._depth(order)
        runs_with_sink = not left and self._runs(name, self._shared(name, order.sink))
        return self._runs(name, known) or runs_with_sink

    def _in_loops(self, order: Order, name: str) -> bool:
        return self._shared(name, order.source) >= self._depth(order)

    def _depth(self, order: Order) -> int:
        """The number of loops in whose iterations the order counts."""
        if order.loop is None:
            return self._shared(order.source, order.sink)
        return self.ops[order.source].loops.index(order.loop) + 1

    def _shared(self, one: str, other: str) -> int:
        return len(shared_loops(self.ops[one], self.ops[other]))

    def _runs(self, name: str, depth: int) -> bool:
        """Whether it runs wherever its outermost `depth` loops do."""
        return not any(self.empty[loop] for loop in self.ops[name].loops[depth:])
