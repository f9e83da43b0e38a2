"""Products of matrices with what follows them: which operations work on results still in PSUM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from neuroncore.targets import BANK_ELEMS
from nkigen_lite.codegen.matmul.operand_tiles import bytes_of
from nkigen_lite.codegen.strips.strip_selection import StripPlan, longest_strip
from nkigen_lite.fusion.budget import has_reduction
from nkigen_lite.fusion.groups import Group, Plan, Rejection
from nkigen_lite.ir import Node, users


@dataclass(frozen=True, slots=True)
class KernelPart:
    """Operations written together: products of one left matrix, then element-wise operations.

    `kept` is the value that stays in SBUF, with its columns on partitions, for the next product.
    A part without products is a group of tiles.
    """

    products: tuple[Node, ...]
    group: Group | None
    kept: str | None = None

    @property
    def names(self) -> set[str]:
        """The values that it makes."""
        made = {n.name for n in self.products}
        return made | (self.group.names if self.group else set())


KEPT_SHARE = 3
"""A value kept for the next product takes at most this part of SBUF: the product needs room."""


def parts_of(plan: Plan, strips: bool = True) -> list[KernelPart | StripPlan]:
    """The plan's groups: as strips, if asked for, where that keeps values on chip that would go
    through HBM, else products joined with the groups that alone use them."""
    if not strips:
        return [*_fused(plan, plan.groups)]
    parts: list[KernelPart | StripPlan] = []
    single, waiting = list[Group](), list(plan.groups)
    while waiting:
        run = longest_strip(plan, waiting)
        if run is None:
            single.append(waiting.pop(0))
            continue
        used = {id(g) for g in (*run.groups, *run.before)}
        waiting = [g for g in waiting if id(g) not in used]
        single += run.before
        if _crossing(plan, list(run.groups)):
            parts += [*_fused(plan, single), run]
            single = []
            _drop_rejections(plan, run)
        else:
            single += run.groups
    return parts + _fused(plan, single)


def _drop_rejections(plan: Plan, run: StripPlan) -> None:
    """Remove the rejections between groups that the strip joins."""
    inside = {plan.groups.index(g) for g in run.groups}
    plan.rejections[:] = [
        r for r in plan.rejections if not (r.group in inside and r.node.name in run.names)
    ]


def _crossing(plan: Plan, groups: list[Group]) -> bool:
    """Whether values of the groups would go through HBM without a strip."""
    parts = _fused(plan, groups)
    used = users(plan.graph)
    for number, part in enumerate(parts):
        later = {v for p in parts[number + 1 :] for v in p.names}
        for value in part.names - {part.kept}:
            if later & {u.name for u in used[value]}:
                return True
    return False


def _fused(plan: Plan, groups: list[Group]) -> list[KernelPart]:
    fused: dict[int, tuple[Node, ...]] = {}
    nodes, used = plan.graph.by_name, users(plan.graph)
    known = {g.nodes[0].name for g in groups if g.is_matmul}
    for number, group in enumerate(groups):
        if not group.is_matmul:
            inside = [n for v in group.axes.shapes if (n := nodes.get(v)) and n.op == "matmul"]
            found = _products_of(plan, group, inside, used)
            fused[number] = tuple(n for n in found if n.name in known)
    gone = {n.name for nodes in fused.values() for n in nodes}
    parts: list[KernelPart] = []
    for number, group in enumerate(groups):
        if not group.is_matmul:
            parts.append(KernelPart(fused[number], group))
        elif group.nodes[0].name not in gone:
            parts.append(KernelPart((group.nodes[0],), None))
    return [_keeping(plan, part, parts[i + 1 : i + 2]) for i, part in enumerate(parts)]


def _products_of(
    plan: Plan, group: Group, products: list[Node], used: Mapping[str, tuple[Node, ...]]
) -> list[Node]:
    """The products that this group alone uses, element by element, all of one left matrix."""
    found: list[Node] = []
    for node in products:
        why = _reason_for_hbm(plan, group, node, {u.name for u in used[node.name]})
        if why is None and found and node.operands[0] != found[0].operands[0]:
            why = "another product of the group has another left matrix"
        if why is None:
            found.append(node)
        else:
            plan.rejections.append(Rejection(node, plan.groups.index(group), why))
    return found


def _reason_for_hbm(plan: Plan, group: Group, node: Node, used_by: set[str]) -> str | None:
    """Why a product goes through HBM."""
    if has_reduction(group.nodes):
        return "the group reduces rows, and a product gives 512 columns at a time"
    if not used_by <= group.names or node.name in plan.graph.results:
        return "it is needed elsewhere too"
    shapes = {n.spec.shape for n in group.nodes if n.name in plan.stored()}
    shape = node.spec.shape
    if len(shape) != 2 or shape[1] == 1 or shapes != {shape}:
        return "only results of two axes of the same shape are worked on in PSUM"
    return None


def _keeping(plan: Plan, part: KernelPart, after: list[KernelPart]) -> KernelPart:
    """The part, its result kept on chip where only the next product's left side needs it."""
    if not part.products or part.group is None or not after:
        return part
    stored = plan.stored() & part.group.names
    if len(stored) != 1:
        return part
    (value,) = stored
    spec = plan.context.specs[value]
    rows, columns = spec.shape
    most = plan.context.target.usable_sbuf_bytes // KEPT_SHARE
    small = bytes_of(columns, rows, spec.dtype) <= most
    lefts = {n.operands for n in after[0].products}
    by_left = all(a == value and b != value for a, b in lefts) and lefts
    alone = {u.name for u in users(plan.graph)[value]} <= {n.name for n in after[0].products}
    if not (small and by_left and alone and 1 < rows <= BANK_ELEMS) or value in plan.graph.results:
        return part
    return KernelPart(part.products, part.group, value)
