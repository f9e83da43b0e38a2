"""Reductions of several axes, or of long ones, as reductions after one another.

Axes that are not neighbours are reduced from the last to the first; if they have few elements, as
the axes of pooling do, the elements are combined two by two, as separate arrays. A long row
of few is cut into rows for all partitions, and what they give is reduced again. In between is
float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from math import prod

from neuroncore.targets import PARTITIONS
from nki_dtypes import float32
from nkigen_lite.fusion.iteration_domain import is_across
from nkigen_lite.ir import Builder, Graph, Node, users
from nkigen_lite.ir.builder import renumbered
from nkigen_lite.ops import Kind
from nkigen_lite.selection.engine_operations import REDUCTIONS

LONG = 13312
"""Elements of a row beyond which two float32 tiles of it do not fit into SBUF twice."""

FEW = 8
"""So few rows leave most partitions idle: worth cutting from SHORT elements on."""

SHORT = 8192
FEW_ELEMENTS = 16
"""Of all axes that do not lie together: instructions that read a tile each, all in one pass."""

ROUNDED = frozenset({"sum", "prod"})

TILE = 2048
"""Elements of the rows that a long one is cut into: a tile of 1 MiB."""

MOST_ARRAYS = 2
"""Arrays of whole rows from which a value is computed again: more than one written and read."""

BY_ELEMENT = (Kind.elementwise, Kind.select)


def keeps_inner_axes(graph: Graph) -> bool:
    """Whether some reduction leaves axes behind the reduced ones."""
    specs = graph.specs
    known = (n for n in graph.nodes if n.op in REDUCTIONS)
    return any(is_across(n, specs[n.operands[0]].shape) for n in known)


def split_reductions(graph: Graph, by_axis: bool = False) -> Graph:
    """The graph with every reduction as reductions of axes that lie together, or
    (`by_axis`) of one axis each, as views in another order need them."""
    build, new, used = Builder(graph.name), dict[str, str](), users(graph)
    for value in graph.inputs:
        new[value.name] = build.input(value.spec, value.name)
    for node in graph.nodes:
        reduction = _without_kept_axes(node, graph, used) or node
        operands = tuple(new[o] for o in reduction.operands)
        new[node.name] = (
            _Split(build, reduction, by_axis).reduced(operands[0]) if reduction.op in REDUCTIONS
            else build.emit(node.op, *operands, origin=node.origin, **node.attrs)
        )  # fmt: skip
    outputs = tuple(new[o] for o in graph.outputs)
    return renumbered(build.finish(outputs, tuple((name, new[v]) for name, v in graph.writes)))


def _without_kept_axes(
    node: Node, graph: Graph, used: Mapping[str, tuple[Node, ...]]
) -> Node | None:
    """A reshape that only drops the axes that a reduction kept: the reduction without them."""
    before = graph.by_name.get(node.operands[0]) if node.op == "reshape" else None
    if before is None or before.op not in REDUCTIONS or not before.attrs["keepdims"]:
        return None
    gone = before.attrs["axes"]
    left = tuple(n for d, n in enumerate(before.spec.shape) if d not in gone)
    alone = len(used[before.name]) == 1 and before.name not in graph.results
    if not alone or left != node.spec.shape:
        return None
    return replace(
        before, name=node.name, spec=node.spec, attrs={**before.attrs, "keepdims": False}
    )


class _Split:
    """One reduction."""

    def __init__(self, build: Builder, node: Node, by_axis: bool) -> None:
        self.build, self.node, self.by_axis = build, node, by_axis

    def emit(self, op: str, *values: str, **attrs: object) -> str:
        return self.build.emit(op, *values, origin=self.node.origin, **attrs)

    def reduced(self, value: str) -> str:
        """The result; the node itself where its axes lie together and are not long."""
        node, shape = self.node, self.build.specs[value].shape
        runs = runs_of(shape, node.attrs["axes"])
        if self.by_axis:
            runs = [(d,) for run in runs for d in run]
        if len(runs) < 2 and not (runs and self.is_long(shape, runs[0])):
            return self.emit(node.op, value, **node.attrs)
        gone = tuple(d for run in runs for d in run)
        if len(runs) > 1 and prod(shape[d] for d in gone) <= FEW_ELEMENTS:
            value = self.combined(value, gone)
        else:
            value = self.widened(value)
            for run in reversed(runs):
                value = self.run(value, run)
        if self.build.specs[value].shape != node.spec.shape:
            value = self.emit("reshape", value, shape=node.spec.shape)
        if self.build.specs[value].dtype is not node.spec.dtype:
            value = self.emit("convert", value, dtype=node.spec.dtype)
        return value

    def widened(self, value: str) -> str:
        """Sums and products are rounded once, at the end."""
        dtype = self.build.specs[value].dtype
        if self.node.op not in ROUNDED or dtype is float32 or not dtype.is_float:
            return value
        return self.emit("convert", value, dtype=float32)

    def is_long(self, shape: tuple[int, ...], run: tuple[int, ...]) -> bool:
        """Whether the run is the end of rows that are cut."""
        if any(n != 1 for n in shape[run[-1] + 1 :]):
            return False
        length, rows = prod(shape[d] for d in run), prod(shape[: run[0]])
        return length > LONG or (rows <= FEW and length >= SHORT)

    def combined(self, value: str, axes: tuple[int, ...]) -> str:
        """The elements along a few short axes as arrays, combined two by two; the elements of an
        array that was widened are widened one by one."""
        shape, wide = self.build.specs[value].shape, self.build.by_name.get(value)
        if wide is not None and wide.op == "convert":
            (value,) = wide.operands
        sizes = tuple(1 if d in axes else n for d, n in enumerate(shape))
        boxes = product(*(range(n) if d in axes else (0,) for d, n in enumerate(shape)))
        ones = (1,) * len(shape)
        parts = [self.emit("slice", value, starts=at, sizes=sizes, steps=ones) for at in boxes]
        if wide is not None and wide.op == "convert":
            parts = [self.emit("convert", part, **wide.attrs) for part in parts]
        parts = [self.widened(part) for part in parts]
        while len(parts) > 1:
            pairs = [parts[n : n + 2] for n in range(0, len(parts), 2)]
            parts = [self.emit(REDUCTIONS[self.node.op], *p) if p[1:] else p[0] for p in pairs]
        return parts[0]

    def run(self, value: str, run: tuple[int, ...]) -> str:
        """Neighbouring axes reduced, with one element each left."""
        shape = self.build.specs[value].shape
        if not self.is_long(shape, run):
            return self.emit(self.node.op, value, axes=run, keepdims=True)
        length = prod(shape[d] for d in run)
        after = tuple(1 if d in run else n for d, n in enumerate(shape))
        flat = self.emit("reshape", value, shape=(*shape[: run[0]], length))
        return self.emit("reshape", self.cut(flat), shape=after)

    def cut(self, value: str) -> str:
        """(..., N) reduced to (..., 1): as rows, what is left of it joined to what they give."""
        *outer, length = self.build.specs[value].shape
        count, last = rows_of(length, prod(outer)), len(outer)
        each, rest = divmod(length, count)
        rows = self.part(value, 0, (*outer, count, each))
        parts = [self.emit(self.node.op, rows, axes=(last + 1,), keepdims=False)]
        if rest:
            row = self.part(value, count * each, (*outer, rest))
            parts.append(self.emit(self.node.op, row, axes=(last,), keepdims=True))
        made = self.emit("concatenate", *parts, axis=last) if rest else parts[0]
        if self.is_long(self.build.specs[made].shape, (last,)):
            return self.cut(made)
        return self.emit(self.node.op, made, axes=(last,), keepdims=True)

    def part(self, value: str, start: int, shape: tuple[int, ...]) -> str:
        """Elements of the last axis from `start` on in this shape, computed again from arguments
        where that reads few of them."""
        *outer, length = self.build.specs[value].shape
        count = prod(shape[len(outer) :])
        zeros, ones = (0,) * len(outer), (1,) * (len(outer) + 1)

        def of(array: str) -> str:
            flat = self.reshaped(array, (*outer, length))
            if count < length:
                box = {"starts": (*zeros, start), "sizes": (*outer, count), "steps": ones}
                flat = self.emit("slice", flat, **box)
            return self.reshaped(flat, shape)

        arrays, arguments = self.arrays(value), {v.name for v in self.build.inputs}
        again = arrays <= arguments and len(arrays) <= MOST_ARRAYS
        return self.computed(value, of) if again else of(value)

    def reshaped(self, value: str, shape: tuple[int, ...]) -> str:
        if self.build.specs[value].shape == shape:
            return value
        return self.emit("reshape", value, shape=shape)

    def arrays(self, value: str) -> set[str]:
        """The arrays that a value is made of, element by element."""
        node = self.build.by_name.get(value)
        if node is None or not self.is_by_element(node):
            return {value} if self.build.specs[value].shape else set()
        return set[str]().union(*map(self.arrays, node.operands))

    def is_by_element(self, node: Node) -> bool:
        """Whether every operand has the elements of the result in its order, or is one number."""
        sizes = {self.build.specs[o].size for o in node.operands if self.build.specs[o].shape}
        by_element = node.record.kind in BY_ELEMENT or node.op == "reshape"
        return by_element and sizes == {node.spec.size}

    def computed(self, value: str, of: Callable[[str], str]) -> str:
        """The value computed again, `of` its arrays."""
        node = self.build.by_name.get(value)
        if not self.build.specs[value].shape:
            return value
        if node is None or not self.is_by_element(node):
            return of(value)
        operands = [self.computed(o, of) for o in node.operands]
        return operands[0] if node.op == "reshape" else self.emit(node.op, *operands, **node.attrs)


def runs_of(shape: tuple[int, ...], axes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The axes with more than one element, those together that nothing kept lies between."""
    runs: list[tuple[int, ...]] = []
    between = True
    for d in (d for d, n in enumerate(shape) if n != 1):
        if d in axes:
            runs = [*runs, (d,)] if between else [*runs[:-1], (*runs[-1], d)]
        between = d not in axes
    return runs


def rows_of(length: int, outer: int) -> int:
    """How many rows a long row is cut into: enough for all partitions, none too long; a number that
    divides it where there is one nearby."""
    least = max(2, -(-length // TILE), -(-PARTITIONS // outer))
    divisors = (n for n in range(least, 2 * least + 1) if length % n == 0)
    return next(divisors, least)
