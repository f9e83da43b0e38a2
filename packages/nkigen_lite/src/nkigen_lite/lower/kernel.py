"""A plan's groups one after the other: parameters, arrays between groups, results."""

from __future__ import annotations

from dataclasses import replace

from neuroncore.engines import Space as Memory
from neuroncore.program import Access, Affine, Program, whole
from neuroncore.targets import resolve_target
from nkigen_lite.ir import Graph, Node
from nkigen_lite.lower.budget import column_values, fit
from nkigen_lite.lower.groups import Group, Plan, plan_groups
from nkigen_lite.lower.refuse import LoweringError, cannot
from nkigen_lite.lower.replicate import Replicas
from nkigen_lite.lower.sources import Source, whole_source
from nkigen_lite.lower.spaces import Role, solve
from nkigen_lite.lower.tiles import Tiles
from nkigen_lite.lower.writer import Writer


def lower(graph: Graph, target: str, nki: str) -> tuple[Program, Plan]:
    """The graph as a program, and the groups that it became.

    Raises LoweringError, at the user's line, for what cannot be lowered yet.
    """
    refuse(graph)
    plan = plan_groups(graph, resolve_target(target))
    return _Kernel(plan, Writer(graph.name, target, nki)).program(), plan


def refuse(graph: Graph) -> None:
    """Whole graphs that no kernel can be."""
    if graph.writes:
        name = graph.writes[0][0]
        raise LoweringError(f"{graph.name} writes into its argument {name}; not lowered yet")
    for value, spec in graph.specs.items():
        if not spec.size:
            node = graph.by_name.get(value)
            if node is not None:
                raise cannot(node, "it has no elements")
            raise LoweringError(f"{value} has no elements", got=str(spec))


class _Kernel:
    def __init__(self, plan: Plan, writer: Writer) -> None:
        self.plan, self.writer, self.graph = plan, writer, plan.graph
        self.arrays: dict[str, Source] = {}
        for value in self.graph.inputs:
            shape = value.spec.shape
            made = writer.parameter(value.name, shape or (1,), value.spec.dtype)
            self.arrays[value.name] = whole_source(made, shape)

    def program(self) -> Program:
        stored = self.plan.stored()
        direct = [r for r in self.graph.results if r in stored]
        for group in self.plan.groups:
            mine = frozenset(stored & group.names)
            for value in sorted(mine, key=[n.name for n in group.nodes].index):
                self.array(value, value in direct)
            self.group(group, mine)
        results: list[str] = []
        for value in self.graph.results:
            known = self.arrays[value].buffer if value in direct else None
            results.append(known if known and known not in results else self.copied(value))
        return self.writer.finish(tuple(results))

    def array(self, value: str, is_result: bool) -> None:
        """A place in HBM for a value that leaves its group."""
        spec = self.graph.specs[value]
        memory = Memory.shared_hbm if is_result else Memory.private_hbm
        name = "out" if is_result else f"{self.graph.by_name[value].op}_in_hbm"
        made = self.writer.allocate(name, spec.shape or (1,), spec.dtype, memory)
        self.arrays[value] = whole_source(made, spec.shape)

    def group(self, group: Group, stored: frozenset[str]) -> None:
        if group.is_matmul:
            raise cannot(group.nodes[0], "products of matrices are not written yet")
        sources = {v: self.source(v) for v in group.axes.shapes if v not in group.names}
        sources |= {v: self.arrays[v] for v in stored}
        space = solve(group.axes, group.anchor, sources)
        if isinstance(space, str):
            raise cannot(group.nodes[0], space)
        specs, numbers = self.graph.specs, self.plan.numbers
        target = resolve_target(self.writer.target)
        found = fit(group.nodes, space, specs, numbers, target, stored)
        if found.problem is not None:
            raise cannot(group.nodes[0], found.problem)
        group.space, group.fit = space, found
        replicas = Replicas(self.writer)
        for value in column_values(space, specs, numbers):
            if value not in group.names:
                stride = space.strides(sources[value], value, Role.columns)[0]
                replicas.load(value, sources[value], space.size(Role.columns), stride)
        Tiles(self.writer, space, found, sources, stored, replicas).run()

    def source(self, value: str) -> Source:
        return self.plan.source(value, self.arrays)

    def copied(self, value: str) -> str:
        """A result that is only another look at an array, or a constant: moved in HBM."""
        spec = self.graph.specs[value]
        if value in self.plan.numbers:
            node: Node = self.graph.by_name[value]
            raise cannot(node, "a result that does not depend on an argument")
        source = self.source(value)
        made = self.writer.allocate("out", spec.shape or (1,), spec.dtype, Memory.shared_hbm)
        if not spec.shape:
            source = replace(source, shape=(1,), strides=(1,))
        access = Access(source.buffer, Affine(source.offset), source.shape, source.strides)
        self.writer.call("dma_copy", dst=whole(made), src=access)
        return made.name
