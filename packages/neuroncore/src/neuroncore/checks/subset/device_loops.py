"""What a loop on the device does not let out of its body, and what it does not nest in."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from neuroncore.checks.subset.kinds import Scope
from neuroncore.checks.subset.syntax import Check, Hit, is_dynamic


def _body(node: ast.AST, scope: Scope) -> ast.For | ast.While | None:
    """The innermost loop on the device around a node; what a `for` runs over is not in it."""
    inner = node
    for outer in scope.above(node):
        is_loop = isinstance(outer, ast.For | ast.While)
        if is_loop and inner in outer.body and is_dynamic(outer, scope):
            return outer
        inner = outer
    return None


def _nested(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    assert isinstance(node, ast.For | ast.While)
    if is_dynamic(node, scope) and _body(node, scope) is not None:
        head = node.iter if isinstance(node, ast.For) else node.test
        yield "nested-dynamic-loop", head, ast.unparse(head)


def _use(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    """A name that is read outside the body in which all its tensors were made."""
    assert isinstance(node, ast.Name)
    if not isinstance(node.ctx, ast.Load) or scope.kind(node) != "tensor":
        return
    bodies = [_body(store, scope) for store in scope.stores.get(node.id, ())]
    around = {*scope.above(node)}
    if bodies and not any(body is None or body in around for body in bodies):
        yield "body-tensor", node, node.id


BY_LOOP: Mapping[str, tuple[Check, ...]] = {
    **dict.fromkeys(("For", "While"), (_nested,)),
    "Name": (_use,),
}
"""Checks of device loops by the type of node that they look at."""
