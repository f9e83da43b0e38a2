"""Loops of the device whose body becomes a function (`nl.fori_loop`, `nl.while_loop`)."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from neuroncore.findings import Edit
from nki_migrate.index import walk
from nki_migrate.rules.site import Site

_JUMPS = (ast.Break, ast.Continue, ast.Return, ast.Yield, ast.YieldFrom, ast.Nonlocal, ast.Global)


def inside(loop: ast.For | ast.While) -> list[ast.AST]:
    """Every node of the body."""
    return [node for statement in loop.body for node in walk(statement)]


def obstacle(loop: ast.For | ast.While, site: Site) -> str | None:
    """Why the body cannot become a function, or None when it can."""
    nodes = inside(loop)
    if any(isinstance(node, _JUMPS) for node in nodes):
        return "the body leaves the loop or a name's scope"
    if any(_is_no_reorder(node, site) for node in site.index.ancestors(loop)):
        return "it stands inside no_reorder()"
    escaping = _assigned(nodes) & _used_outside(loop, site)
    if escaping:
        return f"the body rebinds {', '.join(sorted(escaping))}, used outside"
    return None


def _is_no_reorder(node: ast.AST, site: Site) -> bool:
    return isinstance(node, ast.With) and any(
        isinstance(item.context_expr, ast.Call)
        and site.canonical(item.context_expr.func) == "nl.no_reorder"
        for item in node.items
    )


def _assigned(nodes: Iterable[ast.AST]) -> set[str]:
    return {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}


def _used_outside(loop: ast.For | ast.While, site: Site) -> set[str]:
    function = site.function_of(loop)
    assert function is not None
    own = {id(node) for node in walk(loop)}
    names = (n for n in walk(function.node) if isinstance(n, ast.Name) and id(n) not in own)
    return {n.id for n in names} | set(function.parameters)


def call_after(loop: ast.For | ast.While, call: str, site: Site) -> Edit:
    """The call of the loop function, below the last line of the body."""
    source = site.index.source
    last = source.span(loop.body[-1])[2]
    text = source.lines[last - 1].rstrip("\r\n")
    below = f"{source.newline}{source.indentation(loop.lineno)}{call}"
    return Edit(last, len(text) + 1, last, len(text) + 1, below)


def name_of_body(loop: ast.For | ast.While, site: Site) -> str:
    """`body`, or `body_2` for the second such loop of the file, …; never a name in use."""
    nodes = site.index.nodes
    loops = sorted(
        n.lineno for n in nodes if isinstance(n, ast.For | ast.While) and is_device_loop(n, site)
    )
    number = loops.index(loop.lineno) + 1
    taken = {n.id for n in nodes if isinstance(n, ast.Name)}
    taken |= {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
    stem = "body" if number == 1 else f"body_{number}"
    return next(
        name for name in (stem + "_" * i for i in range(len(taken) + 1)) if name not in taken
    )


def is_device_loop(loop: ast.For | ast.While, site: Site) -> bool:
    """Whether the device counts: `for … in nl.dynamic_range(…)`, `while register`."""
    if isinstance(loop, ast.While):
        return register_of(loop, site) is not None
    return isinstance(loop.iter, ast.Call) and site.canonical(loop.iter.func) == "nl.dynamic_range"


def register_of(loop: ast.While, site: Site) -> str | None:
    """The register that a `while` tests, if the name is bound to nothing but registers."""
    function = site.function_of(loop)
    if function is None or not isinstance(loop.test, ast.Name):
        return None
    name = loop.test.id
    bound = [
        site.index.parent(n)
        for n in walk(function.node)
        if isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load)
    ]
    registers = [
        isinstance(b, ast.Assign)
        and isinstance(b.value, ast.Call)
        and site.canonical(b.value.func) == "nisa.register_alloc"
        for b in bound
    ]
    return name if registers and all(registers) else None
