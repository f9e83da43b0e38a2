"""Buffers of values in HBM: arrays of their own, or places in an array that joins several.

What puts values together is one array; a value that only it needs is written straight into its
place there, all others are copied. Arguments that a function writes to are new arrays that the
kernel returns: since 0.2 the language documents no parameter that a kernel changes [NKI migration:
`nt.mutable_tensor` has no documented equivalent].
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from neuroncore.enums import MemorySpace
from nkigen_lite.codegen.emission.candidates import Candidate, fastest
from nkigen_lite.codegen.emission.writer import Writer
from nkigen_lite.codegen.movement.constant_arrays import write_table
from nkigen_lite.codegen.movement.gather import Picks, pick, picks_of
from nkigen_lite.codegen.movement.hbm_copy import fill, interleave, move
from nkigen_lite.codegen.movement.joined_arrays import JoinedArray, lies_in_lines
from nkigen_lite.fusion.array_view import (
    ArrayView,
    array_view_of,
    box_of,
    buffer_view,
    operand_view,
)
from nkigen_lite.fusion.groups import Plan
from nkigen_lite.ir import Graph, Node
from nkigen_lite.ops import Kind
from nkigen_lite.tensors.spec import Spec
from nkigen_lite.tensors.strides import strided


@dataclass(frozen=True, slots=True)
class Seat:
    """The place of a value in the array of the operation `into`; the buffer is not known yet."""

    into: str
    place: ArrayView


class Arrays:
    """Every value in HBM: `known` by name. With `in_tiles`, joined arrays are put together in the
    tiles that they are loaded into, where they may be."""

    def __init__(
        self, plan: Plan, writer: Writer, in_place: bool = False, in_tiles: bool = False
    ) -> None:
        self.plan, self.writer, self.graph = plan, writer, plan.graph
        self.specs = plan.graph.specs
        self.known: dict[str, ArrayView] = {}
        self.direct = frozenset(self.graph.results) & plan.stored()
        self.in_tiles = joined_in_tiles(plan) if in_tiles else frozenset[str]()
        self.seats = seats(plan, self.in_tiles)
        self.in_place = dict(_in_place(plan)) if in_place else {}
        taken = self.direct | self.seats.keys()
        self.shown = {base: r for r, base in reshaped_results(plan) if base not in taken}
        for value in self.graph.inputs:
            shape = value.spec.shape
            if value.spec.size:
                made = writer.parameter(value.name, shape or (1,), value.spec.dtype)
                self.known[value.name] = buffer_view(made, shape)
        for name, table in plan.tables.items():
            self.known[name] = write_table(writer, table, self.graph.by_name[name])

    def source(self, value: str) -> ArrayView:
        """The value where it lies, or what it is a view of."""
        return self.plan.source(value, self.known)

    def place(self, value: str) -> ArrayView:
        """Room for a value that a group makes."""
        if value not in self.known:
            seat = self.seats.get(value)
            if seat is None:
                self.known[value] = self.own(value)
            else:
                self.known[value] = replace(seat.place, buffer=self.place(seat.into).buffer)
                self.plan.notes.append(f"{value} is written into its place in {seat.into}")
            node = self.graph.by_name[value]
            if node.op in OVERWRITES:
                self.put(node.operands[0], self.known[value], node.name)
        return self.known[value]

    def own(self, value: str) -> ArrayView:
        """An array that holds nothing else; or the argument that the value is left in."""
        if value in self.in_place:
            return self.known[self.in_place[value]]
        if value in self.in_tiles:
            return self.in_parts(self.graph.by_name[value])
        spec, node = self.specs[value], self.graph.by_name[value]
        result = value in self.direct or value in self.shown
        memory = MemorySpace.shared_hbm if result else MemorySpace.private_hbm
        name = "out" if result else f"{self.writer.names.get(value, node.op)}_in_hbm"
        shape = self.specs[self.shown.get(value, value)].shape
        made = self.writer.allocate(name, shape or (1,), spec.dtype, memory)
        if value not in self.shown:
            return buffer_view(made, spec.shape)
        place = _place_below(self.plan, self.shown[value], buffer_view(made, shape))
        assert place is not None, "a result that is a view of all elements"
        return place

    def join(self, node: Node) -> None:
        """Copies elements that are not in their place yet."""
        if node.name in self.in_tiles:
            return
        placed = boxes(node, self.place(node.name), self.graph)
        if node.op == "concatenate" and self.is_interleaved(placed):
            self.interleave(node, placed)
            return
        picks = self.picks(node, placed)

        def part_by_part() -> None:
            for operand, box in placed[1:] if node.op == "update" else placed:
                self.put(operand, box, node.name)

        if picks is None:
            part_by_part()
            return
        candidates = [
            Candidate("part by part", part_by_part),
            Candidate("picked on chip", lambda: pick(self.writer, picks)),
        ]
        noted = len(self.plan.notes)
        candidate = fastest(self.writer, candidates)
        self.plan.notes[noted:] = [f"{node.name} = {node.op}: {candidate}"]

    def in_parts(self, node: Node) -> ArrayView:
        """The joined array, to be put together in tiles."""
        axis, numbers, base_of = node.attrs["axis"], self.plan.numbers, self.plan.base_of
        sources = [
            (self.specs[o].shape[axis], numbers[base] if base in numbers else self.source(o))
            for o in node.operands
            for base in (base_of(o),)
        ]
        name = self.writer.unused(f"{self.writer.names.get(node.name, node.op)}_in_parts")
        made = JoinedArray.of(name, node.spec, axis, sources)
        self.writer.joined[name], self.writer.buffers[name] = made, made.buffer
        self.plan.notes.append(f"{node.name} is put together in the tiles that it is loaded into")
        return made.view

    def picks(self, node: Node, placed: list[tuple[str, ArrayView]]) -> Picks | None:
        """The parts as elements of one array in HBM, where they are."""
        bases = {self.plan.base_of(operand) for operand, _ in placed}
        if node.op != "concatenate" or len(bases) > 1 or bases & {*self.plan.numbers, *self.seats}:
            return None
        return picks_of([box for _, box in placed], [self.source(o) for o, _ in placed])

    def is_interleaved(self, placed: list[tuple[str, ArrayView]]) -> bool:
        """Whether the parts are arrays in HBM whose elements do not lie together in the joined
        array."""
        bases = [self.plan.base_of(operand) for operand, _ in placed]
        here = all(b not in self.plan.numbers and b not in self.seats for b in bases)
        return here and len(placed) > 1 and not any(box.is_in_rows for _, box in placed)

    def interleave(self, node: Node, placed: list[tuple[str, ArrayView]]) -> None:
        sources = [self.source(operand) for operand, _ in placed]
        targets = [box for _, box in placed]

        def part_by_part() -> None:
            for target, source in zip(targets, sources, strict=True):
                move(self.writer, target, source)

        candidate = interleave(
            self.writer, targets, sources, Candidate("part by part", part_by_part)
        )
        self.plan.notes.append(f"{node.name} = {node.op}: {candidate}")

    def put(self, value: str, place: ArrayView, into: str | None = None) -> None:
        """The value copied to `place`, unless it is made there."""
        base = self.plan.base_of(value)
        if not self.specs[value].size or place == self.known.get(value):
            return
        seat = self.seats.get(base)
        if seat is not None and seat.into == into:
            return
        if base in self.plan.numbers:
            fill(self.writer, place, self.graph.by_name[base].attrs["value"].uniform)
        else:
            candidate = move(self.writer, place, self.source(value))
            self.plan.notes.append(f"{value} is copied to {into or 'a result'}: {candidate}")

    def result(self, value: str, taken: list[str]) -> str:
        """The name of an array that holds the value, and that is not `taken` by another result."""
        base = self.plan.base_of(value)
        lies = value in self.direct or self.shown.get(base) == value
        if lies and (known := self.known[base].buffer) not in taken:
            return known
        spec = self.specs[value]
        made = self.writer.allocate("out", spec.shape or (1,), spec.dtype, MemorySpace.shared_hbm)
        self.put(value, buffer_view(made, spec.shape))
        return made.name


def _in_place(plan: Plan) -> Iterator[tuple[str, str]]:
    """(value, argument) where the value is the argument with parts overwritten, and nothing reads
    the argument after the first of them."""
    users, made_by = _users(plan), plan.made_by()
    nodes = plan.graph.by_name
    for argument, value in plan.graph.writes:
        below, first = value, value
        while below in nodes and nodes[below].op in OVERWRITES:
            below, first = nodes[below].operands[0], below
        numbers = users.get(argument, [])
        last = max(numbers, default=-1)
        alone = last == made_by.get(first) and numbers.count(last) == 1
        if below == argument != value and alone and value not in plan.graph.outputs:
            yield value, argument


def reshaped_results(plan: Plan) -> Iterator[tuple[str, str]]:
    """(result, array) of results that are an array in another shape; or in another order, of an
    operation that stores elements anywhere."""
    stored, nodes = plan.stored(), plan.graph.by_name
    for result in plan.graph.results:
        value, ops = result, set[str]()
        while value in plan.views and plan.views[value].op in ("reshape", "transpose"):
            ops.add(plan.views[value].op)
            (value,) = plan.views[value].operands
        anywhere = value in nodes and nodes[value].op in STORED_ANYWHERE
        if value in stored and (ops == {"reshape"} or (anywhere and ops)):
            spec = plan.graph.specs[result]
            if _place_below(plan, result, array_view_of("", spec.shape, spec.dtype)):
                yield result, value


def _place_below(plan: Plan, value: str, place: ArrayView) -> ArrayView | None:
    """Where the array lies that a value stored in `place` is a view of; None where no strides say
    it."""
    while value in plan.views:
        node = plan.views[value]
        (value,) = node.operands
        below = operand_view(node, place, plan.graph.specs[value].shape)
        if below is None:
            return None
        place = below
    return place


STORED_ANYWHERE = frozenset({"loop", "convolution", "depthwise_convolution"})
"""Operations whose results need not be in C order."""

OVERWRITES = frozenset({"update", "scatter", "scatter_add"})
"""Operations that begin with a copy of their first operand."""


def boxes(node: Node, whole: ArrayView, graph: Graph) -> list[tuple[str, ArrayView]]:
    """(operand, its place in `whole`) of an operation that makes an array of others."""
    specs = graph.specs
    shapes = [specs[o].shape for o in node.operands]
    if node.op == "update":
        part = box_of(whole, node.attrs["starts"], shapes[1], node.attrs["steps"])
        return list(zip(node.operands, (whole, part), strict=True))
    if node.op == "concatenate":
        axis, start, found = node.attrs["axis"], 0, []
        for operand, shape in zip(node.operands, shapes, strict=True):
            starts = tuple(start if d == axis else 0 for d in range(len(shape)))
            found.append((operand, box_of(whole, starts, shape, (1,) * len(shape))))
            start += shape[axis]
        return found
    if node.op in OVERWRITES:
        return [(node.operands[0], whole)]
    if node.record.kind in (Kind.indirect, Kind.loop):
        return []
    before = operand_view(node, whole, shapes[0])
    assert before is not None, f"{node.op} of a whole array"
    return [(node.operands[0], before)]


def joined_in_tiles(plan: Plan) -> frozenset[str]:
    """Joined arrays that tiles alone read, and that some part is copied to: tiles may be loaded by
    parts instead."""
    users, in_place = _users(plan), seats(plan)
    joined = (g.nodes[0] for g in plan.groups if g.is_layout and g.nodes[0].op == "concatenate")
    return frozenset(
        node.name
        for node in joined
        if _is_read_by_tiles(plan, users.get(node.name, ()))
        and (parts := [o for o in node.operands if plan.base_of(o) not in plan.numbers])
        and not in_place.keys() >= {plan.base_of(o) for o in parts}
        and all(lies_in_lines(plan.planned_view(o), node.attrs["axis"]) for o in parts)
    )


def _is_read_by_tiles(plan: Plan, users: Sequence[int]) -> bool:
    """Whether there are users, all of them groups of tiles."""
    groups = plan.groups
    return bool(users) and not any(
        n == len(groups) or groups[n].is_layout or groups[n].is_matmul for n in users
    )


def seats(plan: Plan, in_tiles: Collection[str] = ()) -> dict[str, Seat]:
    """Values that are made in their place of a joined array, other than those `in_tiles`.

    They lie there in rows and only it needs them; or an update overwrites part of them and nothing
    else needs them any more: then the part is copied, behind all that needs them before.
    """
    users, made_by, specs = _users(plan), plan.made_by(), plan.graph.specs
    found: dict[str, Seat] = {}
    for number, group in reversed(list(enumerate(plan.groups))):
        (node, *_) = group.nodes
        if not group.is_layout or node.name in in_tiles:
            continue
        whole = found[node.name].place if node.name in found else (
            array_view_of("", node.spec.shape, node.spec.dtype)
        )  # fmt: skip
        base = plan.base_of(node.operands[0])
        placed = boxes(node, whole, plan.graph)
        alternate = _is_made_together(plan, node, placed)
        for position, (operand, box) in enumerate(placed):
            below = _below(plan, specs, operand, box)
            if below is None or below[0] not in made_by:
                continue
            if not (alternate or below[1].is_in_rows):
                continue
            value, place = below
            alone = users[value] == [number]
            if node.op in OVERWRITES and not position:
                whole_place = strided(place.shape, place.strides)
                alone |= whole_place and max(users[value]) == number and (
                    users[value].count(number) == 1
                )  # fmt: skip
            elif node.op == "update":  # what is overwritten comes first
                alone &= made_by.get(base, -1) < made_by[value]
                alone &= base not in found or users[base] == [number]
            if alone:
                found[value] = Seat(node.name, place)
    return found


def _is_made_together(plan: Plan, node: Node, placed: list[tuple[str, ArrayView]]) -> bool:
    """Whether parts whose elements alternate are made by one group, tile by tile: it stores them
    together."""
    made_by, bases = plan.made_by(), [plan.base_of(operand) for operand, _ in placed]
    numbers = {made_by.get(base, -1) for base in bases}
    if node.op != "concatenate" or len(numbers) > 1 or -1 in numbers or len({*bases}) < len(bases):
        return False
    group = plan.groups[numbers.pop()]
    products = (plan.graph.by_name.get(v) for v in group.axes.shapes)
    alone = not any(n is not None and n.op == "matmul" for n in products)
    return alone and not group.ends and not group.is_layout and not group.is_matmul


def _below(
    plan: Plan, specs: Mapping[str, Spec], value: str, place: ArrayView
) -> tuple[str, ArrayView] | None:
    """(array, its place) where the value, a view of the array, is to lie at `place`."""
    while value in plan.views:
        node = plan.views[value]
        (value,) = node.operands
        before = operand_view(node, place, specs[value].shape)
        if before is None:
            return None
        place = before
    return value, place


def _users(plan: Plan) -> dict[str, list[int]]:
    """The groups that need an array, and do not make it. Results are needed at the end; a product
    may come as late as what is done to it."""
    last = len(plan.groups)
    found: dict[str, list[int]] = {}
    for result in plan.graph.results:
        found.setdefault(plan.base_of(result), []).append(last)
    for number, group in enumerate(plan.groups):
        mine = group.names
        outside = (o for n in group.nodes for o in n.operands if o not in mine)
        for operand in outside:
            late = last if group.is_matmul else number
            found.setdefault(plan.base_of(operand), []).append(late)
    return found
