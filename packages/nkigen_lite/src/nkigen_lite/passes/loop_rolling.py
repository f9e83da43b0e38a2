"""Loops over time as loops: repeated steps become one operation with the graph of a step.

    v0 = tanh(x0); v1 = tanh(v0); …; v63 = tanh(v62)   →   v0 = loop(x0, body=…, steps=64)

What a step takes at its own place of an array is a stacked operand; what every step leaves is
stacked, joined or written where the unrolled steps have put it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from nkigen_lite.ir import Builder, Graph, Node, body_of
from nkigen_lite.passes.steps import Steps


def rolled(steps: Steps) -> Graph:
    """The graph of the steps with a loop in their place."""
    return _Rolled(steps).graph()


def map_bodies(graph: Graph, change: Callable[[Graph], Graph]) -> Graph:
    """The graph with the body of every loop changed."""
    build = Builder(graph.name)
    names = {v.name: build.input(v.spec, v.name) for v in graph.inputs}
    for node in graph.nodes:
        attrs = dict(node.attrs)
        if "body" in attrs:
            attrs["body"] = body_of(change(map_bodies(attrs["body"].graph, change)))
        operands = (names[o] for o in node.operands)
        names[node.name] = build.emit(node.op, *operands, origin=node.origin, **attrs)
    writes = tuple((i, names[v]) for i, v in graph.writes)
    return build.finish(tuple(names[o] for o in graph.outputs), writes)


class _Rolled:
    """Writes the graph with a loop in place of the steps."""

    def __init__(self, steps: Steps) -> None:
        self.steps, self.values = steps, steps.values
        self.count = steps.count + bool(steps.before)
        self.nodes = {n.name: n for n in steps.graph.nodes}
        self.build = Builder(steps.graph.name)
        inputs = steps.graph.inputs
        self.names = {v.name: self.build.input(v.spec, v.name) for v in inputs}
        self.stacked: dict[int, str] = {}
        self.pieces: dict[str, tuple[int, int, tuple[int, ...]]] = {}
        """Value → (step, place, shape) of what a step leaves, as it is or reshaped."""

    def graph(self) -> Graph:
        graph, steps = self.steps.graph, self.steps
        for node in graph.nodes[: steps.start]:
            self.copy(node)
        self.loop()
        for node in graph.nodes[steps.end :]:
            self.after(node)
        writes = tuple((i, self.name(v)) for i, v in graph.writes)
        return self.build.finish(tuple(map(self.name, graph.outputs)), writes)

    def copy(self, node: Node) -> None:
        operands = (self.name(o) for o in node.operands)
        self.names[node.name] = self.build.emit(
            node.op, *operands, origin=node.origin, **node.attrs
        )

    # ---------------------------------------------------------------- the loop

    def loop(self) -> None:
        """The loop, and the names of what its steps leave."""
        carried = [p for p in self.steps.carried if not self.steps.is_collector(p)]
        used = self.used_later(carried)
        body = _BodyWriter(self.steps, carried, used)
        operands = [self.names[self.steps.initial[p]] for p in carried]
        operands += [self.elements(p) for p in body.slices]
        operands += [self.names[o] for o in body.outside]
        fields: dict[str, Any] = {
            "body": body_of(body.graph), "carries": len(carried), "stacked": len(body.slices),
            "steps": self.count,
        }  # fmt: skip
        made = [
            self.build.emit("loop", *operands, result=n, origin=body.origin, **fields)
            for n in range(len(body.graph.outputs))
        ]
        self.stacked = dict(zip(used, made[len(carried) :], strict=True))
        for place, value in zip(carried, made, strict=False):
            self.names[self.last(place)] = value
        for name, (step, place) in self.values.items():
            if place in self.stacked:
                self.pieces[name] = step, place, self.nodes[name].spec.shape
        for place in filter(self.steps.is_collector, self.steps.carried):
            self.names[self.last(place)] = self.collected(place)

    def last(self, place: int) -> str:
        return self.steps.node(self.steps.count - 1, place).name

    def used_later(self, carried: list[int]) -> list[int]:
        """The places whose values of every step are used behind the loop."""
        steps = self.steps
        later = {o for n in steps.graph.nodes[steps.end :] for o in n.operands}
        later |= set(steps.graph.results)
        alone = {self.last(p) for p in (*carried, *steps.carried)}
        found = {place for name, (_, place) in self.values.items() if name in later - alone}
        parts = [p for p in steps.carried if steps.is_collector(p)]
        found |= {steps.operands[p][1][1] for p in parts if steps.operands[p][1][0] == "inside"}
        return sorted(found - set(parts))

    def moved(self, place: int) -> tuple[tuple[int, ...], int, int]:
        """(beginning in the first step, the axis along which it moves, by how much)."""
        by = self.steps.moves[place]
        axis = next(d for d, n in enumerate(by) if n)
        starts = self.steps.node(0, place).attrs["starts"]
        if self.steps.before:
            starts = tuple(a - b for a, b in zip(starts, by, strict=True))
        return starts, axis, by[axis]

    def elements(self, place: int) -> str:
        """The slices of all steps, the step as the first axis."""
        node, (starts, axis, by) = self.steps.node(0, place), self.moved(place)
        sizes, steps = list(node.attrs["sizes"]), list(node.attrs["steps"])
        sizes[axis], steps[axis] = self.count, by
        (whole,) = node.operands
        value = self.build.emit(
            "slice", self.names[whole], starts=starts, sizes=sizes, steps=steps, origin=node.origin
        )
        order = (axis, *(d for d in range(len(sizes)) if d != axis))
        value = self.build.emit("transpose", value, axes=order, origin=node.origin)
        return self.reshape(value, (self.count, *node.spec.shape))

    def reshape(self, value: str, shape: tuple[int, ...]) -> str:
        if self.build.specs[value].shape == shape:
            return value
        return self.build.emit("reshape", value, shape=shape)

    def collected(self, place: int) -> str:
        """The array into which every step writes its part."""
        (starts, axis, by), node = self.moved(place), self.steps.node(0, place)
        _, part = self.steps.operands[place][1]
        whole = self.names[self.steps.initial[place]]
        value = self.joined(part, self.nodes[node.operands[1]].spec.shape, axis)
        if not any(starts) and self.build.specs[value] == self.build.specs[whole]:
            return value
        steps = list(node.attrs["steps"])
        steps[axis] = by
        return self.build.emit("update", whole, value, starts=starts, steps=steps)

    def joined(
        self, place: int, shape: tuple[int, ...], axis: int, is_backward: bool = False
    ) -> str:  # fmt: skip
        """The results of all steps, as pieces of this shape next to each other along the axis."""
        value = self.reshape(self.stacked[place], (self.count, *shape))
        if is_backward:
            starts, steps = (self.count - 1, *(0 for _ in shape)), (-1, *(1 for _ in shape))
            sizes = self.build.specs[value].shape
            value = self.build.emit("slice", value, starts=starts, sizes=sizes, steps=steps)
        order = [d + 1 for d in range(len(shape))]
        order.insert(axis, 0)
        value = self.build.emit("transpose", value, axes=order)
        return self.reshape(value, (*shape[:axis], self.count * shape[axis], *shape[axis + 1 :]))

    # --------------------------------------------------------------- behind it

    def after(self, node: Node) -> None:
        piece = self.pieces.get(node.operands[0]) if node.op == "reshape" else None
        if piece is not None:
            self.pieces[node.name] = (*piece[:2], node.spec.shape)
        elif node.op == "concatenate":
            operands = list(self.parts(node.operands, node.attrs["axis"]))
            self.names[node.name] = operands[0] if len(operands) == 1 else self.build.emit(
                "concatenate", *operands, origin=node.origin, **node.attrs
            )  # fmt: skip
        else:
            self.copy(node)

    def parts(self, operands: tuple[str, ...], axis: int) -> Iterator[str]:
        """The operands, what all steps leave in order as one."""
        at, forward = 0, list(range(self.count))
        while at < len(operands):
            run = [self.pieces.get(o) for o in operands[at : at + self.count]]
            first = run[0]
            numbers = (
                [piece[0] if piece and piece[1:] == first[1:] else -1 for piece in run]
                if first
                else []
            )
            if numbers in (forward, forward[::-1]):
                assert first is not None
                yield self.joined(first[1], first[2], axis, numbers[0] > 0)
                at += self.count
            else:
                yield self.name(operands[at])
                at += 1

    def name(self, value: str) -> str:
        """The value in the new graph; what one step leaves is a slice of what all leave."""
        if value not in self.names:
            step, place, shape = self.pieces[value]
            whole = self.stacked[place]
            sizes = (1, *self.build.specs[whole].shape[1:])
            starts, steps = (step, *(0 for _ in sizes[1:])), (1,) * len(sizes)
            one = self.build.emit("slice", whole, starts=starts, sizes=sizes, steps=steps)
            self.names[value] = self.reshape(one, shape)
        return self.names[value]


class _BodyWriter:
    """The graph of one step: `slices` are the places that are stacked operands, `outside` the
    values that every step uses."""

    def __init__(self, steps: Steps, carried: list[int], used: list[int]) -> None:
        self.build, self.steps = Builder("step"), steps
        self.slices = [p for p in steps.moves if steps.node(0, p).op == "slice"]
        left_out = {*self.slices, *filter(steps.is_collector, range(steps.period))}
        self.kept = [p for p in range(steps.period) if p not in left_out]
        self.origin = steps.node(0, self.kept[0]).origin
        self.values: dict[tuple[str, Any], str] = {}
        """Where an operand comes from, as `Steps.operands` have it → its value in the body."""
        for kind, places in (("carried", carried), ("inside", self.slices)):
            for place in places:
                self.values[kind, place] = self.build.input(steps.node(0, place).spec)
        self.outside = self.inputs_from_outside()
        for place in self.kept:
            node = steps.node(0, place)
            given = [self.values[operand] for operand in steps.operands[place]]
            self.values["inside", place] = self.build.emit(
                node.op, *given, origin=node.origin, **node.attrs
            )
        outputs = (self.values["inside", place] for place in (*carried, *used))
        self.graph = self.build.finish(tuple(outputs))

    def inputs_from_outside(self) -> list[str]:
        """The values that every step uses, as inputs; numbers are constants of the body."""
        graph = self.steps.graph
        nodes, specs, found = graph.by_name, graph.specs, []
        every = (o for p in self.kept for o in self.steps.operands[p] if o[0] == "outside")
        for kind, value in dict.fromkeys(every):
            node = nodes.get(value)
            if node is not None and _is_number(node):
                self.values[kind, value] = self.build.emit("constant", **node.attrs)
            else:
                self.values[kind, value] = self.build.input(specs[value])
                found.append(value)
        return found


def _is_number(node: Node) -> bool:
    return node.op == "constant" and node.attrs["value"].uniform is not None
