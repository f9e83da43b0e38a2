"""A plan's groups one after the other: parameters, arrays between groups, results."""

from __future__ import annotations

from dataclasses import replace

from neuroncore.engines import Space as Memory
from neuroncore.program import Access, Affine, Program, whole
from neuroncore.targets import resolve_target
from nki_dtypes import bfloat16, float16, float32
from nkigen_lite.ir import Graph, Node
from nkigen_lite.lower.budget import column_values, fit, in_matrix_tiles
from nkigen_lite.lower.chains import Part, parts_of
from nkigen_lite.lower.contraction import OnChip, bytes_of
from nkigen_lite.lower.groups import Group, Plan, plan_groups
from nkigen_lite.lower.matmul import Epilogue, Products
from nkigen_lite.lower.refuse import LoweringError, cannot
from nkigen_lite.lower.replicate import Replicas
from nkigen_lite.lower.sources import Source, whole_source
from nkigen_lite.lower.spaces import Role, Space, matrix_space, solve
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
        self.kept: dict[str, OnChip] = {}
        self.held = 0
        for value in self.graph.inputs:
            shape = value.spec.shape
            made = writer.parameter(value.name, shape or (1,), value.spec.dtype)
            self.arrays[value.name] = whole_source(made, shape)

    def program(self) -> Program:
        stored = self.plan.stored()
        direct = [r for r in self.graph.results if r in stored]
        order = [n.name for n in self.graph.nodes]
        for part in parts_of(self.plan, resolve_target(self.writer.target)):
            inside = {n.name for n in part.products} if part.group else set()
            mine = frozenset((stored & part.names) - inside)
            for value in sorted(mine - {part.kept}, key=order.index):
                self.array(value, value in direct)
            if part.products:
                self.products(part, mine)
            elif part.group is not None:
                self.group(part.group, mine)
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
        """Element-wise operations and row reductions, from HBM to HBM."""
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
        Tiles(
            self.writer, space, found, sources, stored, self.replicas(group, space, sources)
        ).run()  # fmt: skip

    def replicas(self, group: Group, space: Space, sources: dict[str, Source]) -> Replicas:
        """What is the same for all rows, on every partition."""
        replicas = Replicas(self.writer)
        for value in column_values(space, self.graph.specs, self.plan.numbers):
            if value not in group.names:
                stride = space.strides(sources[value], value, Role.columns)[0]
                replicas.load(value, sources[value], space.size(Role.columns), stride)
        return replicas

    def products(self, part: Part, stored: frozenset[str]) -> None:
        """Products of matrices, and the group that works on them in PSUM."""
        for node in part.products:
            self.refuse_product(node)
        left_name = part.products[0].operands[0]
        left = self.kept.get(left_name) or self.source(left_name)
        rights = {n.name: self.source(n.operands[1]) for n in part.products}
        outputs = {v: self.arrays[v] for v in stored if v != part.kept}
        held = self.held if isinstance(left, OnChip) else 0
        epilogue = self.epilogue(part, stored) if part.group else None
        made = Products(self.writer, part.products, left, rights, outputs, epilogue, held)
        if part.kept is None:
            made.write()
            return
        spec = self.graph.specs[part.kept]
        self.kept[part.kept] = made.keep(part.kept, spec.dtype)
        self.held += bytes_of(spec.shape[1], spec.shape[0], spec.dtype)

    def refuse_product(self, node: Node) -> None:
        taken = [self.graph.specs[o].dtype for o in node.operands]
        for dtype in (*taken, node.spec.dtype):
            if dtype not in (float32, bfloat16, float16):
                raise cannot(node, f"no kernel is written for {dtype} here yet")
        if any(o in self.plan.numbers for o in node.operands):
            raise cannot(node, "one of its matrices is a constant")

    def epilogue(self, part: Part, stored: frozenset[str]) -> Epilogue:
        """The group of the part on tiles of the products; transposed where its result is kept."""
        group = part.group
        assert group is not None
        space = matrix_space(group.axes, group.anchor, transposed=part.kept is not None)
        specs, numbers = self.graph.specs, self.plan.numbers
        target = resolve_target(self.writer.target)
        names = {n.name for n in part.products}
        found = in_matrix_tiles(group.nodes, space, specs, numbers, target, stored)
        for value in stored:
            if found.made.get(value, value) != value:
                raise cannot(self.graph.by_name[value], "it is a product under another name")
        group.space, group.fit = space, found
        outside = [v for v in group.axes.shapes if v not in group.names | names]
        sources = {v: self.source(v) for v in outside}
        sources |= {v: self.arrays[v] for v in stored if v in self.arrays}
        replicas = self.replicas(group, space, sources)
        bound = frozenset(names | stored)
        tiles = Tiles(self.writer, space, found, sources, stored, replicas, bound)
        return Epilogue(tiles, tuple(sorted(stored)))

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
