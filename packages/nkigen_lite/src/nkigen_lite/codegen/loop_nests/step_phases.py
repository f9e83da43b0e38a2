"""The operations of a step as one group on rows, by when they are executed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from neuroncore.targets import resolve_target
from nki_dtypes import DType
from nkigen_lite.fusion.array_view import ArrayView, apply_view
from nkigen_lite.fusion.budget import Context, has_reduction
from nkigen_lite.fusion.iteration_domain import (
    Axes,
    IterationDomain,
    Role,
    clash,
    lay_node,
    solve,
    spread_out,
)
from nkigen_lite.ir import Graph, Node
from nkigen_lite.ops import Kind
from nkigen_lite.selection.engine_operations import held_as, unsupported_dtype
from nkigen_lite.selection.rules import RULES
from nkigen_lite.selection.unsupported import unsupported


class Phase(Enum):
    """When an operation of a step is executed."""

    once = "before all steps: it is the same in each"
    before = "for all steps of a chunk, before them"
    steps = "step by step"
    after = "for all steps of a chunk, after them"


@dataclass(slots=True)
class StepGroup:
    """`graph` is the body; `inputs` say of which input each value from outside is, or a view of;
    `names` are the inputs. `used` are the outputs that are needed, by number."""

    node: Node
    graph: Graph
    context: Context
    used: Iterable[int]
    views: dict[str, Node] = field(default_factory=dict)
    inputs: dict[str, int] = field(default_factory=dict)
    axes: Axes = field(default_factory=Axes)
    nodes: dict[Phase, list[Node]] = field(default_factory=dict)
    full: dict[str, bool] = field(default_factory=dict)
    domain: IterationDomain = field(init=False)

    @property
    def carries(self) -> int:
        return self.node.attrs["carries"]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(v.name for v in self.graph.inputs)

    @property
    def dtypes(self) -> dict[str, DType]:
        return {v: held_as(s.dtype) for v, s in self.context.specs.items()}

    @property
    def carried_out(self) -> tuple[str, ...]:
        return self.graph.outputs[: self.carries]

    @property
    def left(self) -> tuple[str, ...]:
        """Values that every step leaves."""
        return tuple(self.graph.outputs[n] for n in self.used if n >= self.carries)

    @property
    def outside(self) -> list[str]:
        """Values of stacked and same operands that the operations use."""
        first = self.names[: self.carries]
        return [v for v in self.inputs if v not in first and v in self.axes.shapes]

    def names_of(self, phase: Phase) -> set[str]:
        return {n.name for n in self.nodes[phase]}

    def leaving(self, phase: Phase) -> list[str]:
        """Values of a phase that another needs, in order."""
        later = {o for p in Phase if p is not phase for n in self.nodes[p] for o in n.operands}
        later |= {*self.carried_out, *self.left}
        return [n.name for n in self.nodes[phase] if n.name in later]

    @property
    def scratch(self) -> list[str]:
        """Values of all steps at once, at most."""
        return [n.name for p in (Phase.before, Phase.after) for n in self.nodes[p]]

    def view(self, value: str, source: ArrayView) -> ArrayView:
        """The value in HBM, where its operand is `source` in one step."""
        if value not in self.views:
            return source
        node = self.views[value]
        return apply_view(node, self.view(node.operands[0], source))

    # ------------------------------------------------------------------- making it

    def add(self, node: Node) -> None:
        """An operation of the step, or a view of an operand."""
        base = self.inputs.get(node.operands[0], -1) if node.operands else -1
        if node.record.kind is Kind.view and base >= self.carries:
            self.views[node.name], self.inputs[node.name] = node, base
            return
        operands, specs = node.operands, self.context.specs
        if node.op not in RULES:
            raise unsupported(node, "it is not an operation on rows, in a loop over steps")
        why = unsupported_dtype(node, tuple(specs[o].dtype for o in operands))
        for operand in operands:
            if operand not in self.context.numbers:
                self.axes.add(operand, specs[operand].shape)
        why = why or lay_node(self.axes, node, skip=self.context.numbers.keys())
        if why is not None:
            raise unsupported(node, why)

    def add_value(self, value: str) -> None:
        """A value that leaves a step."""
        if value in self.context.numbers:
            raise unsupported(self.node, "what a step leaves is a number")
        self.axes.add(value, self.context.specs[value].shape)

    def solve(self, views: Mapping[str, ArrayView]) -> None:
        """The domain of all values; rows on as many partitions as possible."""
        axes = self.axes
        domain = self.solved(views)
        if isinstance(domain, str):
            raise unsupported(self.node, domain)
        if not has_reduction(self.every_node()) and domain.size(Role.rows) == 1:
            domain = spread_out(domain) or domain
        self.domain = domain
        wide = domain.size(Role.columns) > 1
        self.full = {v: not wide or domain.has(v, Role.columns) for v in axes.shapes}
        self.check_rows()

    def check_rows(self) -> None:
        """Raises CodegenError where what leaves a step is the same in several rows."""
        domain = self.domain
        kept = {a.last for a in domain.axes if a.role is not Role.columns and a.size > 1}
        for value in (*self.names[: self.carries], *self.left):
            if not kept <= set(domain.of[value]):
                raise unsupported(self.node, f"{value} is the same in several rows")

    def solved(self, views: Mapping[str, ArrayView]) -> IterationDomain | str:
        """The domain; or why there is none."""
        axes = self.axes
        for value in axes.shapes:
            if (why := clash(axes, value)) is not None:
                return why
        every = {value: {*axes.of(value)} - {None} for value in axes.shapes}
        anchor = max(every, key=lambda v: len(every[v]))
        if not set().union(*every.values()) <= every[anchor]:
            return "its steps work on arrays of unrelated axes"
        return solve(axes, anchor, dict(views))

    def every_node(self) -> list[Node]:
        known = {*self.views, *self.context.numbers}
        return [n for n in self.graph.nodes if n.name not in known]

    # ---------------------------------------------------------------------- phases

    def is_uniform(self, node: Node) -> bool:
        """Whether all steps are written at once: no number of a row is repeated over columns."""
        operands = [o for o in node.operands if o not in self.context.numbers]
        if node.record.kind is Kind.reduce:
            return self.full[operands[0]]
        return all(self.full[o] == self.full[node.name] for o in operands)

    def assign(self) -> None:
        """Every operation's phase: as early as possible, else as late as possible."""
        stacked = range(self.carries, self.carries + self.node.attrs["stacked"])
        phases = {
            value: Phase.before if number in stacked else Phase.once
            for value, number in self.inputs.items()
        } | dict.fromkeys(self.names[: self.carries], Phase.steps)
        nodes, needed = self.every_node(), {*self.carried_out}
        for node in nodes:
            phases[node.name] = self.earliest(node, phases)
        for node in reversed(nodes):
            if node.name in needed or not self.is_uniform(node):
                needed |= {node.name, *node.operands}
            elif phases[node.name] is Phase.steps:
                phases[node.name] = Phase.after
        self.nodes = {p: [n for n in nodes if phases[n.name] is p] for p in Phase}

    def earliest(self, node: Node, phases: Mapping[str, Phase]) -> Phase:
        of = {phases[o] for o in node.operands if o in phases}
        if of <= {Phase.once}:
            return Phase.once
        return Phase.before if Phase.steps not in of and self.is_uniform(node) else Phase.steps


def step_group(
    node: Node, target: str, sources: Sequence[ArrayView | float], places: Mapping[int, ArrayView]
) -> StepGroup:  # fmt: skip
    """The body of a loop as a group. Raises CodegenError where it is not one."""
    graph = node.attrs["body"].graph
    numbers = _numbers(graph)
    group = StepGroup(node, graph, Context(graph.specs, numbers, resolve_target(target)), places)
    group.inputs = {v.name: number for number, v in enumerate(graph.inputs)}
    for n in graph.nodes:
        if n.name not in numbers:
            group.add(n)
    for before, after in zip(group.names, group.carried_out, strict=False):
        group.add_value(before)
        group.add_value(after)
        group.axes.lay(after, before)
    for value in group.left:
        group.add_value(value)
    group.solve(_views(group, sources, places))
    group.assign()
    return group


def _numbers(graph: Graph) -> dict[str, float]:
    """The constants of a body."""
    found: dict[str, float] = {}
    for node in graph.nodes:
        if node.op in ("constant", "iota"):
            uniform = node.attrs["value"].uniform if node.op == "constant" else None
            if uniform is None:
                raise unsupported(node, "a step of a loop has a constant array")
            found[node.name] = float(uniform)
    return found


def _views(
    group: StepGroup, sources: Sequence[ArrayView | float], places: Mapping[int, ArrayView]
) -> dict[str, ArrayView]:  # fmt: skip
    """Values in HBM in one step."""
    first = zip(group.names[: group.carries], sources, strict=False)
    found = {value: source for value, source in first if isinstance(source, ArrayView)}
    for value in group.outside:
        source = sources[group.inputs[value]]
        if isinstance(source, ArrayView):
            found[value] = group.view(value, one_step(group.node, group.inputs[value], source))
    for number, place in places.items():
        last = number < group.carries
        found[group.graph.outputs[number]] = place if last else without_steps(place)
    return found


def one_step(node: Node, number: int, source: ArrayView) -> ArrayView:
    """An operand as a step sees it."""
    first = node.attrs["carries"]
    is_stacked = first <= number < first + node.attrs["stacked"]
    return without_steps(source) if is_stacked else source


def without_steps(source: ArrayView) -> ArrayView:
    return ArrayView(
        source.buffer, source.offset, source.shape[1:], source.strides[1:], source.dtype,
        source.look,
    )  # fmt: skip
