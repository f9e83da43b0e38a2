"""The variable of `nl.dynamic_range` is not written to."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site
from nki_migrate.rules.tiles import argument

_WRITERS = {"nisa.register_move", "nisa.register_load"}


def _check(loop: ast.For, site: Site) -> Iterator[Finding]:
    call, target = loop.iter, loop.target
    if not isinstance(call, ast.Call) or site.canonical(call.func) != "nl.dynamic_range":
        return
    if site.function_of(loop) is None or not isinstance(target, ast.Name):
        return
    body = (node for statement in loop.body for node in ast.walk(statement))
    if any(_writes(node, target.id, site) for node in body):
        said = f"`{target.id}` is written to, and counts the loop: an error from 0.4 on"
        yield site.finding("NKI3006", target, said, safety=Safety.MANUAL)


def _writes(node: ast.AST, name: str, site: Site) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name and not isinstance(node.ctx, ast.Load)
    if not isinstance(node, ast.Call) or site.canonical(node.func) not in _WRITERS:
        return False
    dst = argument(node, "dst", 0)
    return isinstance(dst, ast.Name) and dst.id == name


HOOKS = Hooks(nodes=(ast.For,), check=_check)
