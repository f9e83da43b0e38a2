"""Sequences of products and groups on the same rows, and the number of rows at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod

from neuroncore.enums import MemorySpace
from neuroncore.program import peaks
from neuroncore.surface import DEFAULT_VERSION
from neuroncore.targets import BANK_ELEMS, NUM_PSUM_BANKS, PARTITIONS
from nki_dtypes import bfloat16, float16, float32
from nkigen_lite.codegen.emission.writer import Writer
from nkigen_lite.codegen.loop_nests.row_replication import replicas_of
from nkigen_lite.codegen.loop_nests.tiles import Tiles
from nkigen_lite.codegen.matmul.operand_tiles import bytes_of
from nkigen_lite.codegen.strips.strip_loops import PSUM_BANKS, Strip, Strips
from nkigen_lite.fusion.array_view import ArrayView, buffer_view
from nkigen_lite.fusion.budget import in_rows
from nkigen_lite.fusion.groups import Group, Plan
from nkigen_lite.fusion.iteration_domain import IterationDomain, Role, strip_domain
from nkigen_lite.ir import Node, users

MOST_ROWS = BANK_ELEMS // PARTITIONS
"""Rows of a partition at a time: with 128 partitions, as many columns as a moving matrix has."""

_DTYPES = (float32, bfloat16, float16)
Sources = Callable[[str], ArrayView]


@dataclass(frozen=True, slots=True)
class StripPlan:
    """Groups of a plan that become one strip: `rows` rows in each partition at a time, and
    `interleaved` such interleaved tiles. `before` are groups between them that come first."""

    groups: tuple[Group, ...]
    strip: Strip
    rows: int
    interleaved: int
    before: tuple[Group, ...]

    @property
    def names(self) -> set[str]:
        """The values that it makes."""
        return {n for g in self.groups for n in g.names}

    def __str__(self) -> str:
        made = ", ".join(f"{n.name} = {n.op}" for g in self.groups for n in g.nodes)
        interleaved = ", two interleaved" if self.interleaved > 1 else ""
        return f"strip of {self.rows} x 128 rows{interleaved}: {made}"


def longest_strip(plan: Plan, groups: list[Group]) -> StripPlan | None:
    """The longest run that begins with the first of the groups, in order, and fits on chip; None
    for less than two."""
    run, before = [groups[0]], list[tuple[int, Group]]()
    if not _joins(plan, [], groups[0]):
        return None
    for group in groups[1:]:
        if _joins(plan, run, group):
            run.append(group)
            continue
        if _depends(plan, group, run):
            break
        before.append((len(run), group))
    tries = (_strip_plan(plan, tuple(run[:end]), before) for end in range(len(run), 1, -1))
    return next(filter(None, tries), None)


def _strip_plan(
    plan: Plan, groups: tuple[Group, ...], before: list[tuple[int, Group]]
) -> StripPlan | None:
    """The groups as a strip, after the groups of `before` that come between them; None without a
    product, and where it does not fit on chip."""
    usable = plan.context.target.usable_sbuf_bytes
    if not any(g.is_matmul for g in groups) or _matrix_bytes(plan, groups) > usable:
        return None
    strip = _strip(plan, groups)
    shape = _fitting(plan, strip, usable)
    early = tuple(g for place, g in before if place < len(groups))
    return None if shape is None else StripPlan(groups, strip, *shape, early)


def _depends(plan: Plan, group: Group, run: list[Group]) -> bool:
    """Whether the group needs, directly or through a view, what the run makes."""
    made = {n for g in run for n in g.names}
    return any(plan.base_of(o) in made for n in group.nodes for o in n.operands)


def _lead(group: Group) -> tuple[int, ...] | None:
    """(batch…, M) of what the group makes."""
    if group.is_matmul:
        shape = group.nodes[0].spec.shape
    else:
        shapes = [n.spec.shape for n in group.nodes]
        shape = max(shapes, key=lambda s: (len(s), s))
    return shape[:-1] if len(shape) >= 2 and shape[-1] > 1 else None


def _joins(plan: Plan, run: list[Group], group: Group) -> bool:
    """Whether the group goes on with the rows of the run."""
    lead = None if group.is_layout else _lead(run[0] if run else group)
    if lead is None:
        return False
    made = {n for g in run for n in g.names}
    taken = [
        (position, operand)
        for node in group.nodes
        for position, operand in enumerate(node.operands)
        if operand in made or plan.base_of(operand) in made
    ]
    if any(operand not in made or (group.is_matmul and at == 1) for at, operand in taken):
        return False
    if run and not taken:
        return False
    if group.is_matmul:
        node = group.nodes[0]
        return node.spec.shape[:-1] == lead and _product_joins(plan, node, made)
    return _tiles_join(group, lead, made)


def _product_joins(plan: Plan, node: Node, made: set[str]) -> bool:
    specs = plan.context.specs
    left, right = node.operands
    if any(specs[v].dtype not in _DTYPES for v in (left, right, node.name)):
        return False
    if left in plan.numbers or right in plan.numbers or specs[left].shape[-1] < 2:
        return False
    outside = [plan.planned_view(v) for v in (left, right) if v not in made]
    if any(s.look is not None for s in outside):
        return False
    return left in made or outside[0].strides[-1] == 1


def _tiles_join(group: Group, lead: tuple[int, ...], made: set[str]) -> bool:
    """Whether what the group makes, and reads of what is `made` before, has all of the rows."""
    domain = _domain(group, lead)
    if isinstance(domain, str):
        return False
    spread = [a.last for a in domain.axes if a.role is not Role.columns]
    values = group.names | (made & domain.of.keys())
    return all(p in domain.of[v] for v in values for p in spread)


def _domain(group: Group, lead: tuple[int, ...]) -> IterationDomain | str:
    shapes = group.axes.shapes
    anchors = [v for v, s in shapes.items() if s[:-1] == lead and s[-1:] > (1,)]
    if not anchors:
        return "it has other rows"
    return strip_domain(group.axes, max(anchors, key=lambda v: shapes[v][-1]))


def _strip(plan: Plan, groups: tuple[Group, ...]) -> Strip:
    made = {n for g in groups for n in g.names}
    used = users(plan.graph)
    inside = {n.name for g in groups for n in g.nodes}
    kept: set[str] = set()
    for number, group in enumerate(groups):
        later = {n.name for g in groups[number + 1 :] for n in g.nodes}
        kept |= {v for v in group.names if later & {u.name for u in used[v]}}
    needed = {plan.base_of(r) for r in plan.graph.results}
    for node in plan.graph.nodes:
        if node.name not in inside:
            needed |= {plan.base_of(o) for o in node.operands}
    lead = _lead(groups[0])
    assert lead is not None
    stages = tuple(g.nodes[0] if g.is_matmul else g for g in groups)
    return Strip(stages, lead, frozenset(kept), frozenset(needed & made), _shared(groups, made))


def _shared(groups: tuple[Group, ...], made: set[str]) -> frozenset[str]:
    """The values from outside that several stages take row by row."""
    taken: Counter[str] = Counter()
    for group in groups:
        rows = group.nodes[0].operands[:1] if group.is_matmul else group.axes.shapes
        taken.update(v for v in rows if v not in made)
    return frozenset(v for v, count in taken.items() if count > 1)


def write_strip(
    writer: Writer, plan: Plan, strip: Strip, shape: tuple[int, int], source: Sources
) -> None:
    """The strip's loops; `shape` is (rows of a partition, interleaved tiles), `source` returns
    the view of an array in HBM."""
    sources: dict[str, ArrayView] = {v: source(v) for v in strip.stored}
    tiles: dict[int, Tiles] = {}
    made: set[str] = set()
    for number, stage in enumerate(strip.stages):
        if isinstance(stage, Node):
            sources |= {o: source(o) for o in stage.operands if o not in made}
            made.add(stage.name)
            continue
        domain = _domain(stage, strip.lead)
        assert isinstance(domain, IterationDomain)
        mine = (strip.stored | strip.kept) & stage.names
        found = in_rows(stage.nodes, domain, plan.context, frozenset(mine))
        outside = {v: source(v) for v in stage.axes.shapes if v not in stage.names | made}
        sources |= outside
        replicas = replicas_of(writer, domain, plan.context, outside)
        made |= stage.names
        stored = frozenset(mine & strip.stored)
        known = outside | {v: sources[v] for v in stored}
        tiles[number] = Tiles(writer, domain, found, known, stored, replicas)
        stage.domain, stage.fit = domain, found
    Strips(writer, strip, sources, tiles, *shape).write()


def _fitting(plan: Plan, strip: Strip, usable: int) -> tuple[int, int] | None:
    """(rows of a partition, interleaved tiles): the most with which all is on chip twice; or
    one row, once."""
    *larger, least = _candidates(strip)
    held, used = _peaks(plan, strip, least)
    if used > NUM_PSUM_BANKS or held > usable:
        return None
    for shape in larger if 2 * held <= usable else ():
        held, used = _peaks(plan, strip, shape)
        if used <= NUM_PSUM_BANKS and 2 * held <= usable:
            return shape
    return least


def _matrix_bytes(plan: Plan, groups: tuple[Group, ...]) -> int:
    """Bytes of SBUF in a partition that the right matrices of their products take."""
    rights = {group.nodes[0].operands[1] for group in groups if group.is_matmul}
    specs = plan.context.specs
    return sum(bytes_of(s.shape[-2], s.shape[-1], s.dtype) for s in map(specs.__getitem__, rights))


def _candidates(strip: Strip) -> Iterator[tuple[int, int]]:
    """The shapes, the largest first; a single tile has nothing to be interleaved with."""
    tiles, batches = -(-strip.lead[-1] // PARTITIONS), prod(strip.lead[:-1])
    most = min(MOST_ROWS, tiles)
    wide = max((p.spec.shape[-1] for p in strip.products), default=1)
    while most > 1 and most * wide > PSUM_BANKS * BANK_ELEMS:
        most -= 1
    for rows in range(most, 0, -1):
        yield from ((rows, 2), (rows, 1)) if tiles > rows or batches > 1 else ((rows, 1),)


def _peaks(plan: Plan, strip: Strip, shape: tuple[int, int]) -> tuple[int, int]:
    """(bytes of SBUF in a partition, PSUM banks) that the strip takes: it is written on trial."""
    target = plan.context.target
    writer = Writer("trial", target.name, DEFAULT_VERSION)
    arrays: dict[str, ArrayView] = {}

    def source(value: str) -> ArrayView:
        base = plan.base_of(value)
        if base not in arrays:
            spec = plan.context.specs[base]
            made = writer.parameter(base, spec.shape or (1,), spec.dtype)
            arrays[base] = buffer_view(made, spec.shape)
        return plan.source(value, arrays)

    write_strip(writer, plan, strip, shape, source)
    found = peaks(writer.finish(()), target)
    held = {domain: peak.held for domain, peak in found.items()}
    return held.get(MemorySpace.sbuf, 0), held.get(MemorySpace.psum, 0)
