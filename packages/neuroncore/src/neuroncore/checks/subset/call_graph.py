"""Kernel code: the kernels, and the functions and classes that they reach."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from neuroncore.checks.subset.modules import Definition, Module, Project
from neuroncore.checks.subset.traversal import bound_names, walk

# What makes a kernel of a function, as a decorator or as a call (NKI 0.1 and later; the last two
# come from the packages of the frameworks).
_KERNEL_MAKERS = {
    *("nki.jit", "nki.baremetal", "nki.benchmark", "nki.profile", "nki.simulate"),
    *("nki.simulate_kernel", "torch_neuronx.nki_jit", "jax_neuronx.nki_call"),
}


@dataclass(frozen=True, slots=True)
class Reached:
    """A function or class that belongs to kernels; `is_entry` when users launch it."""

    module: Module
    node: Definition
    is_entry: bool


Root = tuple[Module, Definition]


def kernels_of(module: Module) -> list[Root]:
    """The functions of a file that nki.jit and its like are applied to."""
    launched = {
        call.args[0].id
        for call in ast.walk(module.tree)
        if isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Name)
        if is_kernel_maker(module, call.func)
    }
    return [
        (module, node)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef)
        if any(is_kernel_maker(module, decorator) for decorator in node.decorator_list)
        or (node.name in launched and module.definitions.get(node.name) is node)
    ]


def kernels_from(project: Project, module: Module, names: Iterable[str]) -> list[Root]:
    """The kernels that the functions of these names are, or lead to."""
    wanted = [(module, module.definitions[name]) for name in names if name in module.definitions]
    found = _closure(project, wanted)
    return [root for root in found if any(root[1] is node for _, node in kernels_of(root[0]))]


def function_at(module: Module, line: int) -> list[Root]:
    """The function whose text, decorators included, begins on a line."""
    return [
        (module, node)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef)
        if min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) == line
    ]


def reached(project: Project, roots: Iterable[Root]) -> list[Reached]:
    """The kernels `roots` and all they reach, each once, callers before callees."""
    roots = list(roots)
    entries = {id(node) for _, node in roots}
    return [Reached(module, node, id(node) in entries) for module, node in _closure(project, roots)]


def is_kernel_maker(module: Module, node: ast.expr) -> bool:
    """Whether an expression is nki.jit or its like, with or without options."""
    while isinstance(node, ast.Call):
        node = node.func
    return (module.nki(node) or module.dotted(node)) in _KERNEL_MAKERS


def _closure(project: Project, roots: Iterable[Root]) -> list[Root]:
    found: dict[int, Root] = {}
    todo = list(roots)
    while todo:
        module, node = todo.pop(0)
        if id(node) in found:
            continue
        found[id(node)] = (module, node)
        own = {id(inner) for inner in ast.walk(node)}
        used = (project.find(module, name) for name in _references(node))
        todo += [target for target in used if target and id(target[1]) not in own]
    return list(found.values())


def _references(node: Definition) -> Iterator[ast.Name | ast.Attribute]:
    """The names and attribute chains that the code of a definition uses and does not bind."""
    bound = set() if isinstance(node, ast.ClassDef) else bound_names(node)
    for part in walk(node):
        if isinstance(part, ast.Attribute) or (isinstance(part, ast.Name) and part.id not in bound):
            yield part
