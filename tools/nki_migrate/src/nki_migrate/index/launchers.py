"""Functions that make or launch kernels: `nki.jit`, the harness of 0.1, and their aliases."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from nki_migrate.index.names import dotted, shorten

HARNESS = {"nki.baremetal", "nki.benchmark", "nki.profile", "nki.simulate_kernel", "nki.simulate"}
LAUNCHERS = HARNESS | {
    "nki.jit", "torch_neuronx.nki_jit", "nki.trace", "jax_neuronx.nki_call",
}  # fmt: skip


def launcher_aliases(tree: ast.Module, path: Callable[[ast.AST], str | None]) -> dict[str, str]:
    """`run = nki.simulate_kernel` → {"run": "neuronxcc.nki.simulate_kernel"}.

    So with its options: `timed = nki.benchmark(warmup=5)`, `partial(nki.jit, mode="trace")`. A name
    that the file binds to something else as well is not followed.
    """
    found = {
        name: meant
        for name, value in _assignments(tree)
        if (meant := path(launcher_of(value))) is not None and shorten(meant) in LAUNCHERS
    }
    if not found:
        return {}
    bound = [n for node in ast.walk(tree) for n in _bound(node)]
    return {name: meant for name, meant in found.items() if bound.count(name) == 1}


def launcher_of(value: ast.expr) -> ast.expr:
    """The function that `f`, `f(option=…)` and `functools.partial(f, option=…)` start from."""
    if not isinstance(value, ast.Call):
        return value
    if value.args and (dotted(value.func) or "").rpartition(".")[2] == "partial":
        return value.args[0] if len(value.args) == 1 else value
    return value if value.args else value.func


ANY_MODULE = "*"
"""In place of an import path: the file of the project that has a kernel of the name."""


def object_member(node: ast.expr, around: ast.AST | None) -> str | None:
    """`module.kernel[grid]` of a variable: a kernel of this name, if the project has one."""
    is_bracket = isinstance(around, ast.Subscript) and around.value is node
    if is_bracket and isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{ANY_MODULE}.{node.attr}"
    return None


def bracket_of(callee: ast.expr, host: ast.AST | None) -> ast.Subscript | None:
    """The grid of a launch: `kernel[grid](…)`, or `run = kernel[grid]` in front of `run(…)`.

    A name that its function binds to something else as well is not followed.
    """
    if isinstance(callee, ast.Subscript):
        return callee
    value = _only_value(callee.id, host) if isinstance(callee, ast.Name) and host else None
    if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name | ast.Attribute):
        return value
    return None


def _only_value(name: str, host: ast.AST) -> ast.expr | None:
    """The value that a function assigns to a name that nothing else binds there."""
    nodes = list(ast.walk(host))
    assigned = [n for n in nodes if isinstance(n, ast.Assign) and len(n.targets) == 1]
    values = [n.value for n in assigned if name in _bound(n.targets[0])]
    return (
        values[0] if [b for n in nodes for b in _bound(n)].count(name) == len(values) == 1 else None
    )


def _assignments(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ast.Name):
                yield target.id, statement.value


def _bound(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(ctx=ast.Store()):
            yield node.id
        case ast.arg():
            yield node.arg
        case ast.FunctionDef() | ast.ClassDef():
            yield node.name
