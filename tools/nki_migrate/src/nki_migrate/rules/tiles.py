"""Tiles by name in a function: the allocation that all bindings of a name share."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass

from nki_migrate.index import bound_names, walk
from nki_migrate.rules.arguments import keyword
from nki_migrate.rules.site import Site

_ALLOCATIONS = {"nl.ndarray", "nl.zeros", "nl.full", "nl.ones"}
_PLACE = {"shape": 0, "dtype": 1, "buffer": 2}


@dataclass(frozen=True, slots=True)
class Allocation:
    """A tile's shape as written, and canonical names of its dtype and buffer; None: not known."""

    shape: tuple[ast.expr, ...] | None
    dtype: str | None
    buffer: str | None

    @property
    def rank(self) -> int | None:
        """How many dimensions."""
        return None if self.shape is None else len(self.shape)

    @property
    def sizes(self) -> tuple[int, ...] | None:
        """The sizes, where all are literals."""
        return literal_sizes(self.shape) if self.shape is not None else None


def literal_sizes(shape: tuple[ast.expr, ...]) -> tuple[int, ...] | None:
    """The numbers of a shape that is written in numbers."""
    values = [s.value if isinstance(s, ast.Constant) else None for s in shape]
    return tuple(v for v in values if type(v) is int) if all(_is_int(v) for v in values) else None


def _is_int(value: object) -> bool:
    return type(value) is int


def elements(sizes: tuple[int, ...]) -> int:
    """How many elements a shape has."""
    return math.prod(sizes)


def argument(call: ast.Call, name: str, place: int) -> ast.expr | None:
    """An argument by name or, as the signature has it, by position."""
    given = keyword(call, name)
    if given is not None:
        return given.value
    return call.args[place] if place < len(call.args) else None


def base_of(node: ast.expr | None) -> ast.Name | None:
    """The name under subscripts."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def allocation_of(tile: ast.expr | None, site: Site) -> Allocation | None:
    """The allocation of the tile under a name or its subscripts, if all bindings agree."""
    name = base_of(tile)
    function = site.function_of(name) if name is not None else None
    if name is None or function is None or name.id in function.parameters:
        return None
    bound = [n for n in bound_names(walk(function.node)) if n.id == name.id]
    made = [_allocating(site.index.parent(n), site) for n in bound]
    different = {ast.dump(call): call for call in made if call is not None}
    if None in made or len(different) != 1:
        return None
    return _read(different.popitem()[1], site)


def _allocating(statement: ast.AST | None, site: Site) -> ast.Call | None:
    value = statement.value if isinstance(statement, ast.Assign) else None
    is_made = isinstance(value, ast.Call) and site.canonical(value.func) in _ALLOCATIONS
    return value if is_made else None  # type: ignore[return-value]


def _read(call: ast.Call, site: Site) -> Allocation:
    name = site.canonical(call.func)
    shift = 1 if name == "nl.full" else 0
    shape = argument(call, "shape", _PLACE["shape"])
    dtype = argument(call, "dtype", _PLACE["dtype"] + shift)
    buffer = argument(call, "buffer", _PLACE["buffer"] + shift)
    listed = isinstance(shape, ast.Tuple | ast.List)
    return Allocation(
        tuple(shape.elts) if listed else None,  # type: ignore[union-attr]
        site.canonical(dtype),
        site.canonical(buffer),
    )


def is_whole_statement(call: ast.Call, site: Site) -> bool:
    """Whether a call is a statement that has its lines to itself, so that lines may go above it."""
    statement = site.index.parent(call)
    if not isinstance(statement, ast.Expr):
        return False
    line, column, end_line, end_column = site.index.source.span(statement)
    lines = site.index.source.lines
    after = lines[end_line - 1][end_column - 1 :].strip()
    return not lines[line - 1][: column - 1].strip() and (not after or after.startswith("#"))


def fresh_name(wish: str, site: Site) -> str:
    """`wish`, or `wish_2`, …: a name that the file does not have."""
    taken = {n.id for n in site.index.nodes if isinstance(n, ast.Name)}
    taken |= {n.arg for n in site.index.nodes if isinstance(n, ast.arg)}
    name, number = wish, 2
    while name in taken:
        name, number = f"{wish}_{number}", number + 1
    return name


def lines_of(site: Site, node: ast.AST, *texts: str) -> str:
    """The statements of the block of a node."""
    line, _, _, _ = site.index.source.span(node)
    return f"{site.index.source.newline}{site.index.source.indentation(line)}".join(texts)
