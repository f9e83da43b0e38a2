"""Fusion groups: operations whose tiles stay on chip together, and why others do not join them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from neuroncore.targets import Target
from nki_dtypes import bfloat16, float16, float32
from nkigen_lite.fusion.array_view import ArrayView, apply_view, array_view_of, view_of
from nkigen_lite.fusion.budget import Context, Fit, fit, has_reduction, is_line, surely_fits
from nkigen_lite.fusion.constant_tables import Table, reads_in_hbm, row_of, table_of
from nkigen_lite.fusion.iteration_domain import (
    Axes,
    IterationDomain,
    Role,
    clash,
    is_across,
    lay_node,
    solve,
)
from nkigen_lite.fusion.node_order import products_first
from nkigen_lite.ir import Graph, Node, users
from nkigen_lite.ops import Kind
from nkigen_lite.selection.engine_operations import REDUCTIONS, unsupported_dtype
from nkigen_lite.selection.rules import RULES
from nkigen_lite.selection.unsupported import unsupported
from nkigen_lite.tensors.spec import Spec

_FLOATS = (float32, bfloat16, float16)
_NARROW = (bfloat16, float16)
_IN_HBM = (Kind.layout, Kind.indirect, Kind.loop)
MORE_ROWS = 16
"""Times that an array is repeated beyond which what converts it costs next to nothing."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why an operation did not join a group."""

    node: Node
    group: int
    why: str

    def __str__(self) -> str:
        return f"{self.node.name} = {self.node.op}: not in group {self.group}: {self.why}"


@dataclass(frozen=True, slots=True)
class End:
    """A reduction that is complete after the last tile only, and what is done to its result then: a
    multiplication by a number, a rounding. See `codegen.loop_nests.outer_reductions`."""

    node: Node
    after: tuple[Node, ...] = ()

    @property
    def value(self) -> Node:
        """The value that leaves the group."""
        return (self.node, *self.after)[-1]

    @property
    def names(self) -> set[str]:
        return {n.name for n in (self.node, *self.after)}


@dataclass(slots=True)
class Group:
    """Operations that become one kernel part, in order; a product of matrices stands alone, and so
    does what only puts arrays together in HBM (`is_layout`)."""

    nodes: list[Node] = field(default_factory=list)
    axes: Axes = field(default_factory=Axes)
    anchor: str = ""
    domain: IterationDomain | None = None
    fit: Fit | None = None
    is_layout: bool = False
    ends: list[End] = field(default_factory=list)

    @property
    def late(self) -> set[str]:
        """Values that are not known before the last tile."""
        return {name for end in self.ends for name in end.names}

    @property
    def steps(self) -> list[Node]:
        """Operations on every tile."""
        return [n for n in self.nodes if n.name not in self.late]

    @property
    def is_matmul(self) -> bool:
        return self.nodes[0].op == "matmul"

    @property
    def names(self) -> set[str]:
        """The values that it makes."""
        return {n.name for n in self.nodes}

    def __str__(self) -> str:
        made = ", ".join(f"{n.name} = {n.op}" for n in self.nodes)
        what = self.domain or ("in HBM" if self.is_layout else "matmul")
        return f"{what}: {made}" + (f"; {self.fit}" if self.fit else "")


@dataclass(slots=True)
class Plan:
    """A graph as groups in the order in which they run.

    `views` are values that are only views of arrays in HBM: value → node. `numbers` are constants
    with one element everywhere, `tables` all others. `strips` say which groups became one,
    `rejections` why there is more than one, `notes` which way elements are moved.
    """

    graph: Graph
    context: Context
    groups: list[Group] = field(default_factory=list)
    views: dict[str, Node] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
    rejections: list[Rejection] = field(default_factory=list)
    strips: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def numbers(self) -> dict[str, float]:
        return self.context.numbers

    def made_by(self) -> dict[str, int]:
        """Value → the number of the group that makes it."""
        return {name: number for number, g in enumerate(self.groups) for name in g.names}

    def base_of(self, value: str) -> str:
        """The array that a view is of."""
        while value in self.views:
            value = self.views[value].operands[0]
        return value

    def stored(self) -> set[str]:
        """The values that groups leave in HBM."""
        needed = {self.base_of(r) for r in self.graph.results}
        for group in self.groups:
            mine = group.names
            for node in group.nodes:
                needed |= {b for o in node.operands if (b := self.base_of(o)) not in mine}
        return needed & {n for g in self.groups for n in g.names}

    def source(self, value: str, buffers: dict[str, ArrayView]) -> ArrayView:
        """The value in HBM, `buffers` being where arrays lie."""
        if value in buffers:
            return buffers[value]
        node = self.views[value]
        return apply_view(node, self.source(node.operands[0], buffers))

    def planned_view(self, value: str) -> ArrayView:
        """The same before there are buffers: what groups write is in C order."""
        base = self.base_of(value)
        spec = self.context.specs[base]
        table = self.tables.get(base)
        known = {base: table.source(base) if table else array_view_of(base, spec.shape, spec.dtype)}
        return self.source(value, known)


class Planner:
    """Walks the graph once; every operation joins the last group that it needs, or starts one."""

    def __init__(self, graph: Graph, target: Target, across: bool, careful: bool) -> None:
        self.careful = careful
        self.specs: dict[str, Spec] = graph.specs
        self.plan, self.across = Plan(graph, Context(self.specs, {}, target)), across
        self.used = users(graph)
        self.home: dict[str, int] = {}
        self.ready: dict[str, int] = {v.name: -1 for v in graph.inputs}

    def run(self) -> Plan:
        for node in products_first(self.plan.graph):
            self.place(node)
        return self.plan

    def place(self, node: Node) -> None:
        """Put the node where the first rule that applies puts it."""
        for is_such, put in _WAYS:
            if is_such(self, node):
                put(self, node)
                return
        raise unsupported(node, "no instruction is chosen for this operation yet")

    def is_seen(self, node: Node) -> bool:
        """Whether the node is a view of an array, outside of every group."""
        if self.is_converted_by_dma(node):
            return True
        return node.record.kind is Kind.view and not self.may_join(node)

    def view(self, node: Node) -> None:
        """Another look at an array; a reshape that no strides say is an array of its own."""
        if node.op == "reshape" and view_of(node, self.plan.planned_view(node.operands[0])) is None:
            self.start(node, None, is_layout=True)
            return
        self.plan.views[node.name] = node
        self.ready[node.name] = self.ready_of(node)

    def is_converted_by_dma(self, node: Node) -> bool:
        """Whether DMAs convert as they read: narrow floats of an array to float32, for products,
        or for more rows than the array has. Elsewhere engines do it, on half the bytes."""
        if node.op != "convert" or node.spec.dtype is not float32:
            return False
        (x,), uses = node.operands, self.used[node.name]
        narrow, outside = self.specs[x].dtype in _NARROW, self.plan.base_of(x) not in self.home
        return narrow and outside and node.name not in self.plan.graph.results and all(
            n.op == "matmul"
            or (n.record.kind is Kind.elementwise and n.spec.size > MORE_ROWS * node.spec.size)
            for n in uses
        )  # fmt: skip

    def constant(self, node: Node) -> None:
        self.ready[node.name] = -1
        uniform = node.attrs["value"].uniform if node.op == "constant" else None
        if not node.spec.size:
            return  # nothing reads it
        if uniform is None:
            self.plan.tables[node.name] = table_of(node)
            return
        self.plan.numbers[node.name] = float(uniform)
        if any(reads_in_hbm(user, node.name) for user in self.used[node.name]):
            self.plan.tables[node.name] = row_of(node)

    def ready_of(self, node: Node) -> int:
        return max((self.ready[o] for o in node.operands), default=-1)

    def may_join(self, node: Node) -> bool:
        """Whether a view is of a value on chip, and moves nothing there."""
        if node.op not in RULES or node.operands[0] not in self.home:
            return False
        return self.tried(node, self.home[node.operands[0]]) is None

    def join(self, node: Node) -> None:
        why = unsupported_dtype(node, tuple(self.specs[o].dtype for o in node.operands))
        if why is not None:
            raise unsupported(node, why)
        number = self.ready_of(node)
        if number < 0:
            number = len(self.plan.groups) - 1
        why = self.tried(node, number) if number >= 0 else None
        if number >= 0 and why is None:
            return
        for later in range(number + 1, len(self.plan.groups)):
            if self.is_near(node, later) and self.mismatch(node, later) is None:
                self.home[node.name] = self.ready[node.name] = later
                return
        self.start(node, why)

    def is_near(self, node: Node, number: int) -> bool:
        """Whether the group reads what the node reads, or its results meet the node's."""
        group = self.plan.groups[number]
        meets = (o for n in self.used[node.name] for o in n.operands)
        loaded = group.axes.shapes.keys() & set(node.operands)
        return bool(loaded) or any(o in group.names for o in meets)

    def tried(self, node: Node, number: int) -> str | None:
        """The node put into the group; or why it does not fit there. Nothing if it is there."""
        group = self.plan.groups[number]
        if node in group.nodes:
            return None
        why = self.mismatch(node, number)
        if why is not None:
            self.plan.rejections.append(Rejection(node, number, why))
            return why
        self.home[node.name] = self.ready[node.name] = number
        return None

    def mismatch(self, node: Node, number: int) -> str | None:
        group = self.plan.groups[number]
        if group.is_matmul:
            return "products of matrices stand alone"
        if group.is_layout:
            return "it puts arrays together in HBM"
        outside = [o for o in node.operands if o not in group.names and o not in self.plan.numbers]
        late = next((o for o in outside if self.ready[o] >= number), None)
        if late is not None:
            return f"{late} views elements of the group in another order"
        trial = Group(
            [*group.nodes, node], group.axes.copy(), group.anchor, ends=list(group.ends)
        )  # fmt: skip
        why = self.placed(trial, node)
        if why is None:
            self.plan.groups[number] = trial
        return why

    def start(self, node: Node, why: str | None, is_layout: bool = False) -> None:
        group = Group([node], is_layout=is_layout)
        if node.op != "matmul" and not is_layout:
            wrong = self.placed(group, node)
            if wrong is not None:
                raise unsupported(node, wrong)
        self.home[node.name] = self.ready[node.name] = len(self.plan.groups)
        self.plan.groups.append(group)

    def placed(self, group: Group, node: Node) -> str | None:
        """The group with its axes, domain and fit after `node`; or why there is none."""
        axes = group.axes
        why = self.ended(group, node)
        if why is not None:
            return why
        for operand in node.operands:
            if operand not in self.plan.numbers:
                axes.add(operand, self.specs[operand].shape)
        why = lay_node(axes, node, skip=self.plan.numbers.keys())
        if why is not None:
            return why
        if group.anchor and axes.shapes[group.anchor] == node.spec.shape and (
            set(axes.of(group.anchor)).isdisjoint({*axes.of(node.name)} - {None})
        ):  # fmt: skip
            axes.lay(node.name, group.anchor)  # unrelated, but one loop nest makes both
        for value in axes.shapes:
            why = clash(axes, value)
            if why is not None:
                return why
        group.anchor = max(axes.shapes, key=lambda v: len({*axes.of(v)} - {None}))
        every = {p for v in axes.shapes for p in axes.of(v)} - {None}
        if not every <= set(axes.of(group.anchor)):
            return "it has axes that the group has not"
        return self.in_domain(group)

    def ended(self, group: Group, node: Node) -> str | None:
        """The node among the group's ends if it is one; or why it and they are not one group."""
        shape = self.specs[node.operands[0]].shape if node.operands else ()
        known = node.op in REDUCTIONS and node.spec.dtype in _FLOATS
        if self.across and known and is_across(node, shape):
            group.ends.append(End(node))
        for number, end in enumerate(group.ends):
            if self.follows(node, end):
                group.ends[number] = End(end.node, (*end.after, node))
                return None
        late = next((o for o in node.operands if o in group.late), None)
        if late is not None:
            return f"{late} is complete after the last tile only"
        if group.ends and has_reduction(group.steps):
            return "one loop nest does not reduce columns and what lies before them"
        return None

    def follows(self, node: Node, end: End) -> bool:
        """Whether the node is all that is done to a finished reduction: times a number, rounded."""
        value = end.value.name
        alone = len(self.used[value]) == 1 and value not in self.plan.graph.results
        others = [o for o in node.operands if o != value]
        scales = node.op == "multiply" and len(others) == 1 and others[0] in self.plan.numbers
        return alone and value in node.operands and node.spec.dtype in _FLOATS and (
            (scales and not end.after) or node.op == "convert"
        )  # fmt: skip

    def in_domain(self, group: Group) -> str | None:
        role = Role.rows if group.ends else Role.columns
        found = solve(group.axes, group.anchor, self.sources(group), role)
        if isinstance(found, str):
            return found
        group.domain = found
        cut = is_line(found) and not has_reduction(group.nodes)
        every = {a.last for a in found.axes}
        for end in group.ends:
            if not every <= set(found.of[end.node.operands[0]]):
                return f"{end.node.name} reduces fewer axes than the group has"
        spread = {a.last for a in found.axes if cut or a.role is not Role.columns}
        for node in group.steps:
            if not spread <= set(found.of[node.name]):
                return f"{node.name} would be computed again on every partition"
        if not has_reduction(group.steps) or surely_fits(group.steps, found, self.plan.context):
            return None  # without whole rows, tiles are as wide as fits
        needed = frozenset(e.node.operands[0] for e in group.ends)
        if self.careful:
            inside = group.names - set(self.plan.graph.results)
            needed |= {n.name for n in group.steps
                       if not {n.name, *(u.name for u in self.used[n.name])} <= inside}  # fmt: skip
        tiles = found.without(group.late)
        group.fit = fit(group.steps, tiles, self.plan.context, needed)
        return group.fit.problem

    def sources(self, group: Group) -> dict[str, ArrayView]:
        """The views of the arrays that the group reads; results of groups are in C order."""
        outside = group.axes.shapes.keys() - group.names
        return {v: self.plan.planned_view(v) for v in group.axes.shapes if v in outside}


_WAYS: tuple[
    tuple[Callable[[Planner, Node], bool], Callable[[Planner, Node], None]], ...
] = (
    (lambda _, n: n.op in ("constant", "iota"), Planner.constant),
    (lambda _, n: n.op == "matmul", lambda p, n: p.start(n, "a product of matrices")),
    (lambda _, n: n.record.kind in _IN_HBM, lambda p, n: p.start(n, None, is_layout=True)),
    (Planner.is_seen, Planner.view),
    (lambda _, n: n.op in RULES, Planner.join),
)  # fmt: skip
"""What a node may be → what is done with it."""


def plan_groups(graph: Graph, target: Target, across: bool = True, careful: bool = False) -> Plan:
    """The graph as fusion groups. Raises CodegenError for unsupported operations.

    `across`: reductions that keep axes behind the reduced ones end a group; else the reduced axes
    are the columns, read element by element, and what follows may join. `careful`: beside whole
    rows every value fits that another group may need.
    """
    return Planner(graph, target, across, careful).run()
