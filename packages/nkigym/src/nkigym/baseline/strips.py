"""A plan's groups as strips: what is done to the same rows, one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field

from nkigen_lite.fusion import Group, IterationDomain, Plan, has_reduction, strip_domain
from nkigen_lite.ir import Node
from nkigym.baseline.errors import BaselineError


@dataclass(slots=True)
class Segment:
    """The results of one loop over columns: `products`, then the `group` on a tile of them.

    `columns` are all of them. A segment whose group needs whole rows (`by_rows`) has no loop and no
    products. `is_turned`: with columns on partitions.
    """

    columns: int
    products: list[Node] = field(default_factory=list)
    group: Group | None = None
    domain: IterationDomain | None = None
    by_rows: bool = False
    is_transposed: bool = False

    @property
    def nodes(self) -> list[Node]:
        return [*self.products, *(self.group.nodes if self.group else ())]

    @property
    def made(self) -> set[str]:
        """The values that it makes."""
        return {n.name for n in self.nodes}


@dataclass(slots=True)
class Strip:
    """Segments on the rows M of (batch…, M) = `lead`. `stored` values leave the chip, later
    segments need the `kept` values."""

    lead: tuple[int, ...]
    groups: list[Group]
    segments: list[Segment] = field(default_factory=list)
    stored: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()

    @property
    def made(self) -> set[str]:
        """The values that it makes."""
        return {name for group in self.groups for name in group.names}


def strips_of(plan: Plan) -> list[Strip]:
    """The strips in order. Raises BaselineError for operations that do not work on rows."""
    strips: list[Strip] = []
    for group in plan.groups:
        lead = _lead(plan, group)
        if strips and strips[-1].lead == lead and _follows(plan, group, strips[-1].made):
            strips[-1].groups.append(group)
        else:
            strips.append(Strip(lead, [group]))
    for strip in strips:
        strip.segments = _segments(plan, strip)
        strip.stored = frozenset(plan.stored() & strip.made) - _inside(plan, strip)
        strip.kept = _kept(plan, strip)
        _turn(strip)
    return strips


def _unsupported(node: Node, why: str) -> BaselineError:
    return BaselineError(
        f"{node.op}: {why}", got=f"{node.name}: {node.spec}",
        expected="products of matrices, and work on rows of two axes or more", place=node.origin,
    )  # fmt: skip


def _lead(plan: Plan, group: Group) -> tuple[int, ...]:
    """(batch…, M) of what the group makes."""
    if group.is_layout:
        raise _unsupported(group.nodes[0], "a baseline kernel puts no arrays together")
    shapes = [plan.graph.specs[v].shape for v in group.axes.shapes]
    shapes += [n.spec.shape for n in group.nodes]
    if group.is_matmul:
        shapes = [group.nodes[0].spec.shape]
    shape = max(shapes, key=lambda s: (len(s), s))
    if len(shape) < 2:
        raise _unsupported(group.nodes[0], "a baseline kernel works on rows")
    return shape[:-1]


def _follows(plan: Plan, group: Group, made: set[str]) -> bool:
    """Whether all that the group needs of what was made for these rows is of these rows."""
    for node in group.nodes:
        for position, operand in enumerate(node.operands):
            is_right = group.is_matmul and position == 1
            if plan.base_of(operand) in made and (operand not in made or is_right):
                return False
    return True


def _segments(plan: Plan, strip: Strip) -> list[Segment]:
    found: list[Segment] = []
    for group in strip.groups:
        last = found[-1] if found else None
        is_open = last is not None and last.group is None and bool(last.products)
        if group.is_matmul:
            (node,) = group.nodes
            columns = node.spec.shape[-1]
            same = is_open and last is not None and last.columns == columns
            if same and last is not None and node.operands[0] not in last.made:
                last.products.append(node)
            else:
                found.append(Segment(columns, [node]))
            continue
        domain = _domain(plan, strip, group)
        columns = plan.graph.specs[_anchor(group, strip.lead)].shape[-1]
        columnwise = _is_columnwise(plan, group, columns)
        if is_open and last is not None and columnwise and last.columns == columns:
            last.group, last.domain = group, domain
        else:
            found.append(Segment(columns, group=group, domain=domain, by_rows=not columnwise))
    return found


def _anchor(group: Group, lead: tuple[int, ...]) -> str:
    """The value with all axes of the group."""
    shapes = group.axes.shapes
    found = [v for v, s in shapes.items() if s[:-1] == lead]
    if not found:
        raise _unsupported(group.nodes[0], "its rows belong to no array of the group")
    return max(found, key=lambda v: shapes[v][-1])


def _domain(plan: Plan, strip: Strip, group: Group) -> IterationDomain:
    domain = strip_domain(group.axes, _anchor(group, strip.lead))
    if isinstance(domain, str):
        raise _unsupported(group.nodes[0], domain)
    return domain


def _is_columnwise(plan: Plan, group: Group, columns: int) -> bool:
    """Whether each column can be worked on without the others."""
    return columns > 1 and not has_reduction(group.nodes) and all(
        n.spec.shape[-1:] == (columns,) for n in group.nodes
    )  # fmt: skip


def _inside(plan: Plan, strip: Strip) -> set[str]:
    """The values that nothing beyond the strip needs."""
    needed = {plan.base_of(r) for r in plan.graph.results}
    for node in plan.graph.nodes:
        if node.name not in strip.made:
            needed |= {plan.base_of(o) for o in node.operands if node.name not in plan.views}
    return strip.made - needed


def _kept(plan: Plan, strip: Strip) -> frozenset[str]:
    """The values that one segment makes and another needs."""
    kept: set[str] = set()
    for segment in strip.segments:
        others = (n for s in strip.segments if s is not segment for n in s.nodes)
        kept |= segment.made & {o for n in others for o in n.operands}
    return frozenset(kept)


def _turn(strip: Strip) -> None:
    """Marks the segments that are made with their columns on partitions: only later products need
    them, from the left, and no row is worked on as a whole. All that is kept is made so, or none.
    """
    makers = [s for s in strip.segments if s.made & strip.kept]
    if not any(s.by_rows for s in strip.segments) and all(_turns(strip, s) for s in makers):
        for segment in makers:
            segment.is_transposed = True


def _turns(strip: Strip, segment: Segment) -> bool:
    kept, products = strip.kept & segment.made, {n.name for n in segment.products}
    inputs = set(segment.group.axes.shapes) - segment.group.names if segment.group else set()
    takers = [n for s in strip.segments for n in s.nodes if set(n.operands) & kept]
    return (
        all(n.op == "matmul" for n in takers) and inputs <= products
        and not strip.stored & segment.made
    )  # fmt: skip
