"""A plan's groups one after the other: parameters, arrays between groups, results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from neuroncore.program import Program, walk
from neuroncore.targets import BANK_ELEMS, resolve_target
from nki_dtypes import bfloat16, float16, float32
from nkigen_lite.codegen.emission.candidates import TimedProgram
from nkigen_lite.codegen.emission.writer import Writer
from nkigen_lite.codegen.loop_nests import TimeLoop
from nkigen_lite.codegen.loop_nests.group_strategies import write_group
from nkigen_lite.codegen.loop_nests.outer_reductions import write_outer_reductions
from nkigen_lite.codegen.loop_nests.row_replication import replicas_of
from nkigen_lite.codegen.loop_nests.step_phases import step_group
from nkigen_lite.codegen.loop_nests.stored_rows import stored_runs
from nkigen_lite.codegen.loop_nests.tiles import Tiles
from nkigen_lite.codegen.matmul.batched import is_small
from nkigen_lite.codegen.matmul.blocked import Epilogue, Products
from nkigen_lite.codegen.matmul.operand_tiles import OnChip, bytes_of
from nkigen_lite.codegen.movement.buffer_assignment import Arrays, joined_in_tiles
from nkigen_lite.codegen.movement.convolution import write_convolution
from nkigen_lite.codegen.movement.indirect import (
    Places,
    write_gather,
    write_gather_along,
    write_scatter,
)
from nkigen_lite.codegen.movement.ordering import write_sort, write_topk
from nkigen_lite.codegen.residency import keep_on_chip
from nkigen_lite.codegen.strips.epilogue_fusion import KernelPart, parts_of
from nkigen_lite.codegen.strips.strip_selection import StripPlan, write_strip
from nkigen_lite.fusion.array_view import ArrayView
from nkigen_lite.fusion.budget import in_rows
from nkigen_lite.fusion.groups import Group, Plan, plan_groups
from nkigen_lite.fusion.iteration_domain import matrix_domain
from nkigen_lite.ir import Graph, Node, assigned_names
from nkigen_lite.legalization.reduction_splitting import keeps_inner_axes, split_reductions
from nkigen_lite.legalization.row_splitting import in_shorter_rows
from nkigen_lite.ops import Kind
from nkigen_lite.selection.engine_operations import REDUCTIONS
from nkigen_lite.selection.unsupported import CodegenError, check_hbm_capacity, unsupported

WRITERS: dict[str, Callable[[Writer, Node, Places, Sequence[ArrayView]], None]] = {
    "convolution": write_convolution,
    "depthwise_convolution": write_convolution,
    "gather": write_gather,
    "gather_along": write_gather_along,
    "scatter": write_scatter,
    "scatter_add": write_scatter,
    "sort": write_sort,
    "topk_values": write_topk,
    "topk_places": write_topk,
}
"""The operations that are kernel parts of their own, from HBM to HBM, and what writes them."""

_TOGETHER = ({"topk_values", "topk_places"},)
"""Operations that one function writes at once where they have the same operands."""


def _written_together(node: Node, graph: Graph) -> list[Node]:
    """The operation and the others that are written with it."""
    ops = next((ops for ops in _TOGETHER if node.op in ops), {node.op})

    def shared(n: Node) -> tuple[object, ...]:
        return n.operands, {k: v for k, v in n.attrs.items() if k != "result"}

    return [n for n in graph.nodes if n.op in ops and shared(n) == shared(node)]


def generate(graph: Graph, target: str, nki: str, in_place: bool = False) -> tuple[Program, Plan]:
    """The graph as a program, and the groups that it became. `in_place`: written arguments are
    changed where they are stored, if nothing reads them later.

    Raises CodegenError, at the user's line, for operations that are not supported.
    """
    known = resolve_target(target).name
    check_hbm_capacity(graph, known)
    program, plan = _generated(graph, target, nki, in_place)
    check_hbm_capacity(graph, known, tuple(b for b in program.buffers().values() if b.content))
    return program, plan


def _generated(graph: Graph, target: str, nki: str, in_place: bool) -> tuple[Program, Plan]:
    """Long rows cut, or as they are; reductions axis by axis, where they are too
    large at once; smaller groups: the first that is supported, with a note why the others before it
    are not."""
    every = [split_reductions(in_shorter_rows(graph)), split_reductions(graph)]
    every.append(split_reductions(graph, by_axis=True))
    every = [each for number, each in enumerate(every) if each not in every[:number]]
    rejected: list[CodegenError] = []
    for careful, each in product((False, True), every):
        try:
            program, plan = _fastest_plan(each, target, nki, in_place, careful)
        except CodegenError as why:
            rejected.append(why)
            continue
        plan.notes.extend(f"otherwise rejected: {why.what}" for why in rejected)
        return program, plan
    raise rejected[len(every) - 1]


@dataclass(frozen=True, slots=True)
class _Way:
    """One of the plans that are compared, and its name. Reductions that keep inner axes end their
    group (`across`), or reduce rows; products of many batches are strips, or parts of their own;
    joined arrays are put together `in_tiles`, or in HBM."""

    across: bool = True
    strips: bool = True
    in_tiles: bool = False
    name: str = "products in strips"

    def others(self, kernel: _Kernel) -> Iterator[_Way]:
        """Ways that the kernel of this one calls for."""
        if kernel.has_small_batches:
            yield replace(self, strips=False, name=f"{self.name}, every product alone")
        if not self.in_tiles and kernel.may_join_in_tiles:
            yield replace(self, in_tiles=True, name=f"{self.name}, arrays joined in tiles")


_ROWS = (_Way(name="reductions after the last tile"), _Way(False, name="reductions of rows"))


@dataclass(slots=True)
class _Made:
    """A plan's kernel, written in this way."""

    way: _Way
    plan: Plan
    kernel: _Kernel
    timed: TimedProgram


class _Maker:
    """Makes the kernels of a graph that are compared; what was timed once is `known`."""

    def __init__(self, graph: Graph, target: str, nki: str, in_place: bool, careful: bool) -> None:
        self.careful = careful
        self.graph, self.target, self.nki, self.in_place = graph, target, nki, in_place
        self.known: dict[str, float] = {}
        self.plans: dict[_Way, tuple[Plan, list[KernelPart | StripPlan]]] = {}
        self.keeps = False
        """Whether arrays stayed on chip in a kernel of the graph: they do in the others."""

    def make(self, way: _Way, forced: Mapping[int, str] | None = None) -> _Made:
        if way not in self.plans:
            plan = plan_groups(self.graph, resolve_target(self.target), way.across, self.careful)
            self.plans[way] = plan, parts_of(plan, way.strips)
        plan, parts = self.plans[way]
        plan = replace(plan, strips=[], notes=[])
        writer = Writer(self.graph.name, self.target, self.nki, self.known)
        writer.forced.update(forced or {})
        kernel = _Kernel(plan, writer, parts, self.in_place, way.in_tiles)
        timed, residents = keep_on_chip(TimedProgram(kernel.program()), not self.keeps)
        self.keeps |= bool(residents)
        plan.notes += residents
        return _Made(way, plan, kernel, timed)

    def refined(self, made: _Made) -> _Made:
        """The kernel, or a faster one: of candidates that take nearly the same time by themselves
        the one that is predicted fastest between the other parts."""
        near = [(n, c) for n, names in enumerate(made.kernel.writer.choices) for c in names]
        if not near:
            return made
        statements = sum(1 for _ in walk(made.timed.program.body))
        trials = min(MOST_TRIALS, MOST_STATEMENTS // statements, len(near))
        for number, name in near[len(near) - trials :]:
            try:
                other = self.make(made.way, {**made.kernel.writer.forced, number: name})
            except CodegenError:
                continue
            if other.timed.us < made.timed.us:
                made = other
        return made


MOST_TRIALS, MOST_STATEMENTS = 4, 256
"""Kernels that are written again with another candidate, and their statements together, at most: of
the last parts."""


def _fastest_plan(
    graph: Graph, target: str, nki: str, in_place: bool, careful: bool
) -> tuple[Program, Plan]:
    """The way that is predicted fastest, where there are several."""
    maker = _Maker(graph, target, nki, in_place, careful)
    found: list[_Made] = []
    rejected: list[CodegenError] = []
    waiting = list(_ROWS if keeps_inner_axes(graph) else (_Way(),))
    while waiting:
        way = waiting.pop(0)
        try:
            found.append(maker.make(way))
        except CodegenError as why:
            rejected.append(why)
            continue
        waiting += way.others(found[-1].kernel)
    if not found:
        raise rejected[0]
    if len(found) == 1:
        made = maker.refined(found[0])
        return made.timed.program, made.plan
    times = [each.timed.us for each in found]
    best = times.index(min(times))
    others = (
        f"{m.way.name}: {t:.1f} us"
        for m, t in zip(found, times, strict=True)
        if m is not found[best]
    )
    made = maker.refined(found[best])
    made.plan.notes.append(f"{made.way.name}: {times[best]:.1f} us (not {'; '.join(others)})")
    return made.timed.program, made.plan


def returned(graph: Graph) -> tuple[str, ...]:
    """The results of a kernel: the outputs, then other values of written arguments. Arrays
    without elements are neither parameters nor results."""
    left = dict.fromkeys(value for _, value in graph.writes)
    every = (*graph.outputs, *(v for v in left if v not in graph.outputs))
    return tuple(v for v in every if graph.specs[v].size)


def buffer_names(graph: Graph) -> dict[str, str]:
    """Values whose buffers are called after the user's variable, or after a reduction of rows."""
    rows = {n.name: f"row_{n.op}" for n in graph.nodes if n.op in REDUCTIONS}
    return rows | assigned_names(graph)


class _Kernel:
    def __init__(
        self, plan: Plan, writer: Writer, parts: Sequence[KernelPart | StripPlan], in_place: bool,
        in_tiles: bool,
    ) -> None:  # fmt: skip
        self.plan, self.writer, self.graph = plan, writer, plan.graph
        writer.names = buffer_names(plan.graph)
        self.arrays = Arrays(plan, writer, in_place, in_tiles)
        self.parts = parts
        self.kept: dict[str, OnChip] = {}
        self.written: set[str] = set()
        self.held = 0

    @property
    def has_small_batches(self) -> bool:
        """Whether some strip is of small matrices of several batches."""
        strips = (part.strip for part in self.parts if isinstance(part, StripPlan))
        return any(prod(s.lead[:-1]) > 1 and all(map(is_small, s.products)) for s in strips)

    @property
    def may_join_in_tiles(self) -> bool:
        return bool(joined_in_tiles(self.plan))

    def program(self) -> Program:
        stored = self.plan.stored()
        order = [n.name for n in self.graph.nodes]
        for part in self.parts:
            inside = self.inside(part)
            mine = frozenset((stored & part.names) - inside)
            for value in sorted(mine, key=order.index):
                self.arrays.place(value)
            self.part(part, mine)
        results: list[str] = []
        for value in returned(self.graph):
            results.append(self.arrays.result(value, results))
        return self.writer.finish(tuple(results))

    def inside(self, part: KernelPart | StripPlan) -> set[str]:
        """The part's values that others need and that never leave the chip."""
        if isinstance(part, StripPlan):
            return part.names - part.strip.stored
        kept = {part.kept} if part.kept else set[str]()
        return kept | ({n.name for n in part.products} if part.group else set[str]())

    def part(self, part: KernelPart | StripPlan, stored: frozenset[str]) -> None:
        if isinstance(part, StripPlan):
            self.plan.strips.append(str(part))
            shape = (part.rows, part.interleaved)
            write_strip(self.writer, self.plan, part.strip, shape, self.source)
            return
        if part.products:
            self.products(part, stored | ({part.kept} if part.kept else set[str]()))
            return
        assert part.group is not None, "a part of nothing"
        first = part.group.nodes[0]
        if first.record.kind in (Kind.indirect, Kind.loop):
            self.indirect(first)
        elif part.group.is_layout:
            self.arrays.join(first)
        else:
            self.group(part.group, stored)

    def indirect(self, node: Node) -> None:
        """An operation of its own, with what is written together with it."""
        if node.name in self.written or not node.spec.size:
            return
        seats = self.arrays.seats
        made = [n for n in _written_together(node, self.graph) if n is node or n.name not in seats]
        self.written.update(n.name for n in made)
        if node.record.kind is Kind.loop:
            self.loop(node, made)
            return
        places = {n.op: self.arrays.place(n.name) for n in made}
        WRITERS[node.op](self.writer, node, places, [self.source(o) for o in node.operands])

    def loop(self, node: Node, made: list[Node]) -> None:
        """A loop with all its results; what it begins with may be numbers."""
        carries, numbers = node.attrs["carries"], self.plan.numbers
        sources = [
            numbers[o] if n < carries and o in numbers else self.source(o)
            for n, o in enumerate(node.operands)
        ]
        places = {n.attrs["result"]: self.arrays.place(n.name) for n in made}
        group = step_group(node, self.writer.target, sources, places)
        TimeLoop(self.writer, node, sources, places, group).write()

    def group(self, group: Group, stored: frozenset[str]) -> None:
        """Element-wise operations and row reductions, from HBM to HBM."""
        sources = {v: self.source(v) for v in group.axes.shapes if v not in group.names}
        sources |= {v: self.arrays.known[v] for v in stored}
        context = self.plan.context
        if group.ends:
            candidate = write_outer_reductions(self.writer, group, sources, context, stored)
        else:
            runs = stored_runs(self.writer, sources)
            candidate = write_group(self.writer, group, sources, context, stored, runs)
        if candidate is not None:
            self.plan.notes.append(f"{', '.join(sorted(stored))}: {candidate}")

    def products(self, part: KernelPart, stored: frozenset[str]) -> None:
        """Products of matrices, and the group that works on them in PSUM."""
        for node in part.products:
            self.check_product(node)
        left_name = part.products[0].operands[0]
        left = self.kept.get(left_name) or self.source(left_name)
        rights = {n.name: self.source(n.operands[1]) for n in part.products}
        outputs = {v: self.arrays.known[v] for v in stored if v != part.kept}
        held = self.held if isinstance(left, OnChip) else 0
        epilogue = self.epilogue(part, stored) if part.group else None
        made = Products(self.writer, part.products, left, rights, outputs, epilogue, held)
        if part.kept is None:
            made.write()
            return
        spec = self.graph.specs[part.kept]
        self.kept[part.kept] = made.keep(part.kept, spec.dtype)
        self.held += bytes_of(spec.shape[1], spec.shape[0], spec.dtype)

    def check_product(self, node: Node) -> None:
        taken = [self.graph.specs[o].dtype for o in node.operands]
        for dtype in (*taken, node.spec.dtype):
            if dtype not in (float32, bfloat16, float16):
                raise unsupported(node, f"no kernel is written for {dtype} here yet")
        if any(self.source(o).look for o in node.operands if o not in self.kept):
            raise unsupported(node, "one of its matrices is the bits of another array")

    def epilogue(self, part: KernelPart, stored: frozenset[str]) -> Epilogue:
        """The group of the part on tiles of the products; transposed where its result is kept."""
        group = part.group
        assert group is not None
        anchor = part.products[0].name
        domain = matrix_domain(group.axes, anchor, transposed=part.kept is not None)
        names = {n.name for n in part.products}
        found = in_rows(group.nodes, domain, self.plan.context, stored, most=BANK_ELEMS)
        group.domain, group.fit = domain, found
        outside = [v for v in group.axes.shapes if v not in group.names | names]
        sources = {v: self.source(v) for v in outside}
        replicas = replicas_of(self.writer, domain, self.plan.context, sources)
        sources |= {v: self.arrays.known[v] for v in stored if v in self.arrays.known}
        tiles = Tiles(self.writer, domain, found, sources, stored, replicas)
        return Epilogue(tiles, tuple(sorted(stored)))

    def source(self, value: str) -> ArrayView:
        return self.arrays.source(value)
