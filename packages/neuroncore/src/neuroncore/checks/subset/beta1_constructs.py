"""What 0.1 alone restricts: control flow on indices, the scope of tensors, where outputs are."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from neuroncore.checks.subset.syntax_constructs import Check, Hit
from neuroncore.checks.subset.traversal import parameters, walk
from neuroncore.checks.subset.value_kinds import Scope

# A branch on values known when the kernel is traced is none: public kernels of 0.1 make tensors
# and outputs in such branches.
_CONDITIONS: Mapping[type[ast.AST], str] = {
    ast.If: "if", ast.IfExp: "the conditional expression", ast.While: "while",
}  # fmt: skip


def _condition(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    assert isinstance(node, ast.If | ast.IfExp | ast.While)
    parts = (part for part in walk(node.test) if isinstance(part, ast.Name))
    yield from _on_index(node.test, parts, _CONDITIONS[type(node)], scope)


def _number(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    """`range(i)`, `min(i, 2)`: what needs the number that a symbol will be."""
    assert isinstance(node, ast.Call)
    name = scope.module.nki(node.func) or ast.unparse(node.func)
    if name in _TAKE_NUMBERS:
        yield from _on_index(node, node.args, name.rpartition(".")[2], scope)


_TAKE_NUMBERS = {"range", "min", "max", *(f"nki.language.{kind}_range" for kind in
                 ("affine", "sequential", "static"))}  # fmt: skip


def _on_index(node: ast.AST, parts: Iterable[ast.expr], what: str, scope: Scope) -> Iterator[Hit]:
    kinds = {scope.kind(part) for part in parts}
    if "index" in kinds:
        yield "index-condition", node, what
    elif "sequential index" in kinds:
        yield "sequential-condition", node, what


def _store(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    """`nl.store(parameter[...], value)`."""
    assert isinstance(node, ast.Call)
    if not scope.is_entry or scope.module.nki(node.func) != "nki.language.store" or not node.args:
        return
    target = node.args[0]
    while isinstance(target, ast.Subscript):
        target = target.value
    if isinstance(target, ast.Name) and _is_read_only(target.id, scope):
        yield "parameter-write", target, target.id


def _is_read_only(name: str, scope: Scope) -> bool:
    """A kernel without a result is of SDK 2.20, which gave kernels their outputs."""
    returns = any(isinstance(n, ast.Return) and n.value is not None for n in walk(scope.function))
    annotations = {p.arg: p.annotation for p in parameters(scope.function)}
    if not returns or name not in annotations:
        return False
    return "mutable_tensor" not in ast.unparse(annotations[name] or ast.Constant(None))


def _output(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    assert isinstance(node, ast.Call)
    for keyword in node.keywords:
        is_shared = scope.module.nki(keyword.value) == "nki.language.shared_hbm"
        if keyword.arg == "buffer" and is_shared and _block(node, scope) is not None:
            yield "nested-output", node, ""


def _block(node: ast.AST, scope: Scope) -> ast.AST | None:
    """The loop around a node whose body 0.1 runs once; it unrolls nl.static_range and lists."""
    return next((above for above in scope.above(node) if _is_block(above, scope)), None)


def _is_block(node: ast.AST, scope: Scope) -> bool:
    return isinstance(node, ast.While) or (
        isinstance(node, ast.For) and scope.loop_index(node) is not None
    )


def _use(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    """A name that is read outside the loop in which a tensor was made for it."""
    assert isinstance(node, ast.Name)
    if not isinstance(node.ctx, ast.Load) or scope.kind(node) != "tensor":
        return
    makers = [_block(store, scope) for store in scope.stores.get(node.id, ())]
    around = {id(above) for above in scope.above(node)}
    if makers and not any(block is None or id(block) in around for block in makers):
        yield "tensor-scope", node, node.id


BY_INDEX: Mapping[str, tuple[Check, ...]] = {
    **dict.fromkeys(("If", "IfExp", "While"), (_condition,)),
    "Call": (_store, _output, _number),
    "Name": (_use,),
}
"""Checks of 0.1 by the type of node that they look at."""
