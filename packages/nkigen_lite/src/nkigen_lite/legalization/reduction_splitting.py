"""Reductions of several axes, or of long ones, as reductions after one another.

Axes that are not neighbours are reduced from the last to the first; if they have few elements, as
the axes of pooling do, the elements are combined two by two, as separate arrays. A long row
of few is cut into rows for all partitions, and what they give is reduced again. In between is
float32.
"""

from __future__ import annotations

from collections.abc import Mapping
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
from nkigen_lite.tensors.spec import Spec

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
        count = rows_of(length, prod(outer))
        each = length // count
        parts = []
        main = self.part(value, 0, count * each)
        rows = self.emit("reshape", main, shape=(*outer, count, each))
        parts.append(self.emit(self.node.op, rows, axes=(len(outer) + 1,), keepdims=False))
        if length % count:
            rest = self.part(value, count * each, length % count)
            parts.append(self.emit(self.node.op, rest, axes=(len(outer),), keepdims=True))
        made = parts[0]
        if len(parts) > 1:
            made = self.emit("concatenate", *parts, axis=len(outer))
        last = len(outer)
        if self.is_long(self.build.specs[made].shape, (last,)):
            return self.cut(made)
        return self.emit(self.node.op, made, axes=(last,), keepdims=True)

    def part(self, value: str, start: int, count: int) -> str:
        shape = self.build.specs[value].shape
        if count == shape[-1]:
            return value
        zeros, ones = (0,) * (len(shape) - 1), (1,) * len(shape)
        return self.emit(
            "slice", value, starts=(*zeros, start), sizes=(*shape[:-1], count), steps=ones
        )  # fmt: skip


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


# -- long rows as many short ones, from the arrays on ---------------------------------------------
# What is reduced along them is computed in the tiles that reduce it, and computed again from the
# arrays where it is needed later. Rows of N elements become (count, N / count). Every long
# reduction is a pass over the arrays; what comes after n of them has n axes of one element more,
# so that it is not the same value as before.

MOST_ARRAYS = 2
"""Arrays of whole rows from which a value is computed again: more than one written and read."""

_BY_ELEMENT = (Kind.elementwise, Kind.select)


def in_shorter_rows(graph: Graph) -> Graph:
    """The graph with long rows cut where the arrays are read; the same graph if it has none.

    v0 = exp(x0: f32[8, 1000000]); v1 = sum(v0)   →   v0 = reshape(x0, (8, 500, 2000));
    v1 = exp(v0); v2 = sum(v1, axes=(2,)); v3 = sum(v2, axes=(1,)); v4 = reshape(v3, (8, 1))
    """
    specs = graph.specs
    for node in graph.nodes:
        if _is_long(node, specs):
            shape = specs[node.operands[0]].shape
            count = rows_of(shape[-1], prod(shape[:-1]))
            if shape[-1] % count == 0:
                return _Rows(graph, shape, count).rewritten()
    return graph


def _is_long(node: Node, specs: Mapping[str, Spec]) -> bool:
    shape = specs[node.operands[0]].shape if node.operands else ()
    return _reduces_rows(node, shape) and shape[-1] > LONG


def _reduces_rows(node: Node, shape: tuple[int, ...]) -> bool:
    """Whether the node reduces the last axis of an operand of `shape` alone, and keeps it."""
    attrs = node.attrs
    return node.op in REDUCTIONS and bool(attrs["keepdims"]) and attrs["axes"] == (len(shape) - 1,)


class _Rows:
    """One shape of long rows: the values of that shape around its reductions."""

    def __init__(self, graph: Graph, shape: tuple[int, ...], count: int) -> None:
        self.graph, self.shape, self.count = graph, shape, count
        self.region = self.near()
        self.passes: dict[str, int] = {}
        self.leaves: dict[str, frozenset[str]] = {}
        for node in graph.nodes:
            self.count_passes(node)
        self.build = Builder(graph.name)
        self.whole = {v.name: self.build.input(v.spec, v.name) for v in graph.inputs}
        self.cut: dict[tuple[str, int], str] = {}

    # -- what is cut ------------------------------------------------------------------------------

    def near(self) -> set[str]:
        """The nodes that a walk from the reductions finds."""
        fitting = {n.name: n for n in self.graph.nodes if self.fits(n)}
        used, waiting = users(self.graph), [n for n, v in fitting.items() if v.op in REDUCTIONS]
        found: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name in found:
                continue
            found.add(name)
            node = fitting[name]
            full = [o for o in node.operands if self.graph.specs[o].shape == self.shape]
            near = [u.name for o in (*full, name) for u in used[o]]
            waiting += [v for v in (*full, *near) if v in fitting]
        return found

    def fits(self, node: Node) -> bool:
        """Whether the node works on whole rows, each element for itself, or reduces them."""
        specs = self.graph.specs
        if node.operands and _reduces_rows(node, specs[node.operands[0]].shape):
            return specs[node.operands[0]].shape == self.shape
        by_element = node.record.kind in _BY_ELEMENT and node.spec.shape == self.shape
        return by_element and all(self.lies(specs[o].shape) for o in node.operands)

    def lies(self, shape: tuple[int, ...]) -> bool:
        """Whole rows, one number per row, or the same row for all."""
        if shape in ((), self.shape) or shape[-1] == 1:
            return True
        return shape[-1] == self.shape[-1] and prod(shape[:-1]) == 1

    def count_passes(self, node: Node) -> None:
        """How many long reductions come before the node, and which arrays of rows it is made of."""
        before = max((self.passes.get(o, 0) for o in node.operands), default=0)
        mine = node.name in self.region
        self.passes[node.name] = before + (mine and node.op in REDUCTIONS)
        full = [o for o in node.operands if self.graph.specs[o].shape == self.shape]
        self.leaves[node.name] = frozenset().union(
            *(self.leaves.get(o, frozenset((o,))) for o in full)
        ) if mine else frozenset((node.name,))  # fmt: skip

    # -- writing ----------------------------------------------------------------------------------

    def rewritten(self) -> Graph:
        graph = self.graph
        for node in graph.nodes:
            if node.name not in self.region:
                operands = [self.in_shape(o) for o in node.operands]
                self.whole[node.name] = self.emit(node, *operands, **node.attrs)
            elif node.op in REDUCTIONS:
                self.whole[node.name] = self.reduced(node)
        writes = tuple((name, self.in_shape(v)) for name, v in graph.writes)
        return renumbered(self.build.finish(tuple(map(self.in_shape, graph.outputs)), writes))

    def emit(self, node: Node, *operands: str, op: str | None = None, **attrs: object) -> str:
        return self.build.emit(op or node.op, *operands, origin=node.origin, **attrs)

    def in_shape(self, value: str) -> str:
        """The value in its own shape."""
        if value not in self.whole:
            node = self.graph.by_name[value]
            made = self.rows(value, self.passes[value])
            self.whole[value] = self.emit(node, made, op="reshape", shape=self.shape)
        return self.whole[value]

    def cut_shape(self, lead: tuple[int, ...], passes: int, inner: tuple[int, int]) -> list[int]:
        return [*lead, *(1,) * passes, *inner]

    def rows(self, value: str, passes: int) -> str:
        """The value in short rows, as it is needed after so many passes."""
        if (value, passes) not in self.cut:
            self.cut[value, passes] = self.made(value, passes)
        return self.cut[value, passes]

    def made(self, value: str, passes: int) -> str:
        """Read, computed again, or what was computed before with more axes of one element."""
        if value not in self.region:
            return self.reshaped(value, passes)
        node, before = self.graph.by_name[value], self.passes[value]
        if passes == before or len(self.leaves[value]) <= MOST_ARRAYS:
            return self.emit(node, *(self.operand(o, passes) for o in node.operands), **node.attrs)
        kept = self.rows(value, before)
        inner = (self.count, self.shape[-1] // self.count)
        return self.emit(
            node, kept, op="reshape", shape=self.cut_shape(self.shape[:-1], passes, inner)
        )

    def operand(self, value: str, passes: int) -> str:
        shape = self.graph.specs[value].shape
        if shape == self.shape:
            return self.rows(value, passes)
        return self.reshaped(value, passes) if shape else self.in_shape(value)

    def reshaped(self, value: str, passes: int) -> str:
        """The operand: rows cut, one number per row with the axes that cut rows have."""
        node, shape = self.graph.by_name.get(value), self.graph.specs[value].shape
        number = node.attrs["value"].uniform if node is not None and node.op == "constant" else None
        if number is not None:
            return self.build.fill(number, self.graph.specs[value].dtype)
        cut = (self.count, self.shape[-1] // self.count)
        lead = self.cut_shape(shape[:-1], passes, (1, 1) if shape[-1] == 1 else cut)
        origin = node.origin if node is not None else None
        return self.build.emit("reshape", self.in_shape(value), shape=lead, origin=origin)

    def reduced(self, node: Node) -> str:
        """Along the short rows, then along what they give; sums are rounded at the end."""
        (x,) = node.operands
        value, dtype = self.rows(x, self.passes.get(x, 0)), node.spec.dtype
        wide = node.op in ROUNDED and dtype.is_float and dtype is not float32
        if wide:
            value = self.emit(node, value, op="convert", dtype=float32)
        last = len(self.build.specs[value].shape) - 1
        for axis in (last, last - 1):
            value = self.emit(node, value, axes=(axis,), keepdims=True)
        if wide:
            value = self.emit(node, value, op="convert", dtype=dtype)
        return self.emit(node, value, op="reshape", shape=node.spec.shape)
