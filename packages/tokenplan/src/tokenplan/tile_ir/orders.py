"""The orders that become tokens: conflicts that the analysis finds, each with its loop.

An edge of a token graph orders all iterations from its least distance on. A token of one iteration
orders less: so each conflict is looked at once in the same iteration and once per loop that could
carry it, and only what conflicts there is ordered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product

from tokenplan.analysis import analyse
from tokenplan.graph.token_graph import ALIAS, JOIN, Claim, TokenGraph
from tokenplan.kernel.model import Kernel, Op, commute, shared_loops
from tokenplan.rules import BUDGET, Conflict, Pair, carried_by, decide
from tokenplan.rules.candidate_orders import Place, places
from tokenplan.tile_ir.description import Described
from tokenplan.tile_ir.model import DescribedOrders, Order, Orders, claims_of, kernel_of
from tokenplan.tile_ir.verdicts import diagnostics, verdicts


def orders_of(described: Described, budget: int = BUDGET, target: str = "sm_90") -> DescribedOrders:
    """The orders of a described kernel; see `tokenplan.analyse` for what they rest on.

    The details of each access are its view and whether the target's TMA can make it; diagnostics W4
    name the accesses that it cannot make.
    """
    judged = list(verdicts(described, target))
    kernel = kernel_of(described, {verdict.access.id: verdict.details for verdict in judged})
    found = orders_of_kernel(kernel, claims_of(described, kernel), len(described.grid), budget)
    remarks = (*found.graph.diagnostics, *diagnostics(judged))
    graph = replace(found.graph, diagnostics=remarks)
    return DescribedOrders(kernel, graph, found.needed, found.kept, described)


def orders_of_kernel(
    kernel: Kernel, claims: Sequence[Claim], grid: int, budget: int = BUDGET
) -> Orders:
    """The orders of a kernel whose outermost `grid` loops count its instances."""
    graph = analyse(kernel, claims, budget)
    needed = tuple(dict.fromkeys(_needed(kernel, graph, grid, budget)))
    return Orders(kernel, graph, needed, reduced(kernel, needed))


def total_orders(kernel: Kernel, grid: int = 0) -> tuple[Order, ...]:
    """The order that is always right: every operation after the one before, every loop closed."""
    ops = list(kernel.ops())
    found = [Order(a.id, b.id) for a, b in pairwise(ops)]
    inside = defaultdict(list)
    for op in ops:
        for loop in op.loops[grid:]:
            inside[loop].append(op.id)
    return (*found, *(Order(ids[-1], ids[0], loop, 1) for loop, ids in inside.items()))


def _needed(kernel: Kernel, graph: TokenGraph, grid: int, budget: int) -> Iterator[Order]:
    touched: dict[str, list[Place]] = defaultdict(list)
    for place in places(kernel):
        touched[place.access.buffer].append(place)
    for group in touched.values():
        for a, b in product(group, repeat=2):
            if not commute(a.access.mode, b.access.mode):
                yield from _of_pair(a, b, grid, budget)
    yield from _requested(kernel, graph, grid)


def _requested(kernel: Kernel, graph: TokenGraph, grid: int) -> Iterator[Order]:
    """Orders for other reasons than bytes: memory orders and arrays that may share bytes."""
    ops = {op.id: op for op in kernel.ops()}
    at = {name: n for n, name in enumerate(ops)}
    for edge in graph.edges:
        if edge.rule in (JOIN, ALIAS):
            if at[edge.source] < at[edge.sink]:
                yield Order(edge.source, edge.sink)
            for loop in shared_loops(ops[edge.source], ops[edge.sink])[grid:]:
                yield Order(edge.source, edge.sink, loop, 1)


def _of_pair(a: Place, b: Place, grid: int, budget: int) -> Iterator[Order]:
    """The orders of two accesses to one buffer: in one iteration, and by each loop."""
    if a.at < b.at:
        answer = decide(Pair(a, b, later=False), budget).answer
        if isinstance(answer, Conflict) and not any(answer.distance):
            yield Order(a.op.id, b.op.id)
    pair = Pair(a, b, later=True)
    for at, loop in enumerate(pair.shared):
        if at >= grid and (found := carried_by(pair, loop, budget)):
            yield Order(a.op.id, b.op.id, loop, found.distance[at])


# -- what follows from others ----------------------------------------------------------------------


def reduced(kernel: Kernel, needed: tuple[Order, ...]) -> tuple[Order, ...]:
    """The orders that no path of others implies; the furthest is tried first."""
    implication = _Implication(kernel, set(needed))
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
    kept: set[Order]
    ops: Mapping[str, Op] = field(init=False)
    trips: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.ops = {op.id: op for op in self.kernel.ops()}
        self.trips = {name: loop.trips for name, loop in self.kernel.loops().items()}

    def follows(self, order: Order) -> bool:
        """Whether a path of kept orders through other operations implies it.

        Depth-first over operations with the iterations that remain. A path to the sink of a
        carried order contains a carried step: others order one iteration alone.
        """
        seen: set[tuple[str, int]] = set()
        stack = [(order.source, order.distance)]
        while stack:
            for name, left in self._steps(order, *stack.pop()):
                if name == order.sink and (order.loop is None or left < order.distance):
                    return True
                if (name, left) not in seen:
                    seen.add((name, left))
                    stack.append((name, left))
        return False

    def _steps(self, order: Order, name: str, left: int) -> Iterator[tuple[str, int]]:
        for step in self.kept:
            if step.source != name or step.loop not in (None, order.loop):
                continue
            if step.distance <= left and self._passes(order, step):
                yield step.sink, left - step.distance

    def _passes(self, order: Order, step: Order) -> bool:
        """Whether the step's ends run in each iteration in which the order counts."""
        a, c = self.ops[order.source], self.ops[order.sink]
        needed = shared_loops(a, c)
        if order.loop is not None:
            needed = needed[: needed.index(order.loop) + 1]
        for op in (self.ops[step.source], self.ops[step.sink]):
            if op.loops[: len(needed)] != needed:
                return False
            if op not in (a, c) and not all(self.trips[loop] for loop in op.loops[len(needed) :]):
                return False
        return True
