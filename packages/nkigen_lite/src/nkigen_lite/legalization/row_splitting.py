"""Long rows as many short ones, from the arrays on.

What is reduced along them is computed in the tiles that reduce it, and computed again from the
arrays where it is needed later. Rows of N elements become (count, N / count). Every long
reduction is a pass over the arrays; what comes after n of them has n axes of one element more,
so that it is not the same value as before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from nki_dtypes import float32
from nkigen_lite.ir import Builder, Graph, Node, users
from nkigen_lite.ir.builder import renumbered
from nkigen_lite.legalization.reduction_splitting import (
    BY_ELEMENT,
    LONG,
    MOST_ARRAYS,
    ROUNDED,
    rows_of,
)
from nkigen_lite.selection.engine_operations import REDUCTIONS
from nkigen_lite.tensors.spec import Spec


def in_shorter_rows(graph: Graph) -> Graph:
    """The graph with long rows cut where the arrays are read; the same graph if it has none.

    v0 = exp(x0: f32[8, 1000000]); v1 = sum(v0)   →   v0 = reshape(x0, (8, 500, 2000));
    v1 = exp(v0); v2 = sum(v1, axes=(2,)); v3 = sum(v2, axes=(1,)); v4 = reshape(v3, (8, 1))
    """
    specs = graph.specs
    for node in graph.nodes:
        if _is_long(node, specs):
            shape = specs[node.operands[0]].shape
            return _Rows(graph, shape, _pieces(shape)).rewritten()
    return graph


@dataclass(frozen=True, slots=True)
class _Piece:
    """Elements of long rows from `start` on: `count` short rows of `size`."""

    start: int
    count: int
    size: int


def _pieces(shape: tuple[int, ...]) -> tuple[_Piece, ...]:
    """Short rows of one size, and what remains as one more."""
    count = rows_of(shape[-1], prod(shape[:-1]))
    size, rest = divmod(shape[-1], count)
    main = _Piece(0, count, size)
    return (main, _Piece(count * size, 1, rest)) if rest else (main,)


def _is_long(node: Node, specs: Mapping[str, Spec]) -> bool:
    shape = specs[node.operands[0]].shape if node.operands else ()
    return _reduces_rows(node, shape) and shape[-1] > LONG


def _reduces_rows(node: Node, shape: tuple[int, ...]) -> bool:
    """Whether the node reduces the last axis of an operand of `shape` alone, and keeps it."""
    attrs = node.attrs
    return node.op in REDUCTIONS and bool(attrs["keepdims"]) and attrs["axes"] == (len(shape) - 1,)


class _Rows:
    """One shape of long rows: the values of that shape around its reductions."""

    def __init__(self, graph: Graph, shape: tuple[int, ...], pieces: tuple[_Piece, ...]) -> None:
        self.graph, self.shape, self.pieces = graph, shape, pieces
        self.region = self.near()
        self.passes: dict[str, int] = {}
        self.leaves: dict[str, frozenset[str]] = {}
        for node in graph.nodes:
            self.count_passes(node)
        self.build = Builder(graph.name)
        self.whole = {v.name: self.build.input(v.spec, v.name) for v in graph.inputs}
        self.cut: dict[tuple[str, int, _Piece], str] = {}

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
        by_element = node.record.kind in BY_ELEMENT and node.spec.shape == self.shape
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
            node, passes = self.graph.by_name[value], self.passes[value]
            shapes = [(*self.shape[:-1], p.count * p.size) for p in self.pieces]
            parts = [
                self.emit(node, self.rows(value, passes, piece), op="reshape", shape=shape)
                for piece, shape in zip(self.pieces, shapes, strict=True)
            ]
            self.whole[value] = self.joined(node, parts)
        return self.whole[value]

    def joined(self, node: Node, parts: list[str]) -> str:
        if len(parts) == 1:
            return parts[0]
        return self.emit(node, *parts, op="concatenate", axis=len(self.shape) - 1)

    def cut_shape(self, lead: tuple[int, ...], passes: int, inner: tuple[int, int]) -> list[int]:
        return [*lead, *(1,) * passes, *inner]

    def rows(self, value: str, passes: int, piece: _Piece) -> str:
        """A piece of the value in short rows, as it is needed after so many passes."""
        key = (value, passes, piece)
        if key not in self.cut:
            self.cut[key] = self.made(*key)
        return self.cut[key]

    def made(self, value: str, passes: int, piece: _Piece) -> str:
        """Read, computed again, or what was computed before with more axes of one element."""
        if value not in self.region:
            return self.reshaped(value, passes, piece)
        node, before = self.graph.by_name[value], self.passes[value]
        if passes == before or len(self.leaves[value]) <= MOST_ARRAYS:
            operands = (self.operand(o, passes, piece) for o in node.operands)
            return self.emit(node, *operands, **node.attrs)
        kept = self.rows(value, before, piece)
        shape = self.cut_shape(self.shape[:-1], passes, (piece.count, piece.size))
        return self.emit(node, kept, op="reshape", shape=shape)

    def operand(self, value: str, passes: int, piece: _Piece) -> str:
        shape = self.graph.specs[value].shape
        if shape == self.shape:
            return self.rows(value, passes, piece)
        return self.reshaped(value, passes, piece) if shape else self.in_shape(value)

    def reshaped(self, value: str, passes: int, piece: _Piece) -> str:
        """The operand: rows cut, one number per row with the axes that cut rows have."""
        node, shape = self.graph.by_name.get(value), self.graph.specs[value].shape
        number = node.attrs["value"].uniform if node is not None and node.op == "constant" else None
        if number is not None:
            return self.build.fill(number, self.graph.specs[value].dtype)
        whole, origin = self.in_shape(value), node.origin if node is not None else None
        is_row = shape[-1] > 1
        inner = (piece.count, piece.size) if is_row else (1, 1)
        if is_row and len(self.pieces) > 1:
            zeros, ones = (0,) * (len(shape) - 1), (1,) * len(shape)
            sizes = (*shape[:-1], piece.count * piece.size)
            box = {"starts": (*zeros, piece.start), "sizes": sizes, "steps": ones}
            whole = self.build.emit("slice", whole, origin=origin, **box)
        lead = self.cut_shape(shape[:-1], passes, inner)
        return self.build.emit("reshape", whole, shape=lead, origin=origin)

    def reduced(self, node: Node) -> str:
        """Along the short rows, then along what they give; sums are rounded at the end."""
        parts = [self.reduced_piece(node, piece) for piece in self.pieces]
        value = parts[0] if len(parts) == 1 else self.emit(node, *parts, op=REDUCTIONS[node.op])
        if self.build.specs[value].dtype is not node.spec.dtype:
            value = self.emit(node, value, op="convert", dtype=node.spec.dtype)
        return self.emit(node, value, op="reshape", shape=node.spec.shape)

    def reduced_piece(self, node: Node, piece: _Piece) -> str:
        (x,) = node.operands
        value, dtype = self.rows(x, self.passes.get(x, 0), piece), node.spec.dtype
        if node.op in ROUNDED and dtype.is_float and dtype is not float32:
            value = self.emit(node, value, op="convert", dtype=float32)
        last = len(self.build.specs[value].shape) - 1
        for axis in (last, last - 1):
            value = self.emit(node, value, axes=(axis,), keepdims=True)
        return value
