"""Changes of Python objects in the body of a device loop, read from its source."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from functools import lru_cache

from neuroncore.findings import Region
from neuroncore.python_source import parse_python
from neuroncore.source_location import Place

_CHANGING = frozenset(
    {"add", "append", "clear", "discard", "extend", "insert", "pop", "remove", "setdefault",
     "sort", "update", "write"}
)  # fmt: skip
"""Methods that change the list, dict, set or file that they belong to."""
_BODY_LOOPS = {"fori_loop": 2, "while_loop": 1}
"""Loops of functions, and the position of the body among their arguments."""
_GENERATOR_LOOP = "dynamic_range"


def changes_of_body(loop: Place | None) -> list[tuple[Region, str]]:
    """Where the body of the loop at a place changes what is outside of it, and how."""
    if loop is None:
        return []
    place = loop.region
    tree = _parsed("".join(linecache.getlines(place.path)))
    if tree is None:
        return []
    modules = _imported_names(tree)
    found = [
        change
        for body, own in _bodies(tree, place.line)
        for node in body
        for change in _changes(node, own | modules)
    ]
    return [(_region(place.path, node), what) for node, what in found]


@lru_cache(maxsize=16)
def _parsed(text: str) -> ast.Module | None:
    try:
        return parse_python(text)
    except SyntaxError:
        return None


def _bodies(tree: ast.Module, line: int) -> Iterator[tuple[list[ast.stmt], set[str]]]:
    """The statements of the bodies of loops in a line, and the names that are their own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.For) and node.iter.lineno == line and _called(node.iter):
            yield node.body, _bound_names(node)
        elif isinstance(node, ast.Call) and node.lineno == line:
            yield from _function_bodies(tree, node)


def _bound_names(loop: ast.For) -> set[str]:
    """The variable of a loop and the names that its body assigns anew."""
    assigned = (t for n in ast.walk(loop) if isinstance(n, ast.Assign) for t in n.targets)
    names = (n for t in (loop.target, *assigned) for n in ast.walk(t) if isinstance(n, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, ast.Store)}


def _imported_names(tree: ast.Module) -> set[str]:
    """Names of modules, whose functions may be called as the methods that change something."""
    return {
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }


def _called(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _last_name(node.func) == _GENERATOR_LOOP


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _function_bodies(tree: ast.Module, call: ast.Call) -> Iterator[tuple[list[ast.stmt], set[str]]]:
    position = _BODY_LOOPS.get(_last_name(call.func))
    if position is None:
        return
    named = [k.value for k in call.keywords if k.arg == "body_fun"]
    given = (*call.args[position : position + 1], *named)
    names = {node.id for node in given if isinstance(node, ast.Name)}
    for name in names:
        function = _function_in_scope(tree, name, call.lineno)
        if function is not None:
            yield function.body, _own_names(function)


def _function_in_scope(tree: ast.Module, name: str, line: int) -> ast.FunctionDef | None:
    """The function that a name is in a line: of the innermost scope, the last one before it."""
    found = None
    scope: ast.AST | None = tree
    while scope is not None:
        own = [node for node in _statements(scope) if isinstance(node, ast.FunctionDef)]
        named = [node for node in own if node.name == name]
        before = [node for node in named if node.lineno <= line]
        found = next(iter(before[-1:] or named[:1]), found)
        scope = next((f for f in own if f.lineno <= line <= (f.end_lineno or 0)), None)
    return found


def _statements(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope in order, without the nodes of its functions."""
    for node in ast.iter_child_nodes(scope):
        yield node
        if not isinstance(node, ast.FunctionDef):
            yield from _statements(node)


def _own_names(function: ast.FunctionDef) -> set[str]:
    """Parameters and names that the function assigns, without names of an outer one."""
    outer = {
        name
        for node in ast.walk(function)
        if isinstance(node, (ast.Nonlocal, ast.Global))
        for name in node.names
    }
    parameters = {arg.arg for arg in ast.walk(function.args) if isinstance(arg, ast.arg)}
    assigned = {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return (parameters | assigned) - outer


def _changes(statement: ast.stmt, own: set[str]) -> Iterator[tuple[ast.stmt | ast.expr, str]]:
    """The nodes that change an object which is not the body's own."""
    for node in ast.walk(statement):
        if not isinstance(node, (ast.stmt, ast.expr)):
            continue
        target = _changed(node)
        if target is not None and _root(target) not in own:
            yield node, f"{ast.unparse(target)} is changed"
        elif isinstance(node, ast.Call) and _last_name(node.func) == "print":
            yield node, "print is called"


def _changed(node: ast.AST) -> ast.expr | None:
    """The object that a node changes, if it is one that outlives the body."""
    if isinstance(node, ast.AugAssign):
        return node.target
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Subscript, ast.Attribute)):
        return node.targets[0]
    changed = _changed_by_call(node) if isinstance(node, ast.Call) else None
    return changed if isinstance(changed, ast.Name) else None


def _changed_by_call(call: ast.Call) -> ast.expr | None:
    """The object of a method that changes it, or the iterator of `next`."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in _CHANGING:
        return call.func.value
    return call.args[0] if _last_name(call.func) == "next" and call.args else None


def _root(node: ast.expr) -> str:
    """The name at the beginning of a chain of attributes and subscripts."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return getattr(node, "id", "")


def _region(path: str, node: ast.stmt | ast.expr) -> Region:
    line, column = node.lineno, node.col_offset + 1
    return Region(path, line, column, node.end_lineno or line, (node.end_col_offset or 0) + 1)
