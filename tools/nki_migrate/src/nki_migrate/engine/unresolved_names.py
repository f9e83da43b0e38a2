"""Names and calls of the result that its Python, or its version of NKI, does not have.

Rewriting reports what it could not convert; this check reads the output alone. A kernel that is
reported complete has no name that only the old text bound, and no call of an instruction that
its version would reject. What runs when the file is imported counts for every kernel in it.
"""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Container, Iterator
from functools import cache

from neuroncore.findings import Finding, Safety, Severity
from neuroncore.surface import Signature, signature
from nki_migrate.comments.todos import todo_above
from nki_migrate.engine.file_state import FileState
from nki_migrate.engine.linked_files import is_out_of_view
from nki_migrate.engine.remaining_constructs import header_lines
from nki_migrate.index import FileIndex, Function, walk
from nki_migrate.index.launchers import HARNESS
from nki_migrate.rules.arguments import has_unknown_arguments
from nki_migrate.rules.run_rules import RunRule

_OLD = (HARNESS - {"nki.simulate"}) | {"nki.trace"}
_MODULE_NAMES = frozenset(dir(builtins)) | {"__file__", "__path__", "__builtins__"}


def report_unresolved(state: FileState) -> None:
    """Report names and calls that do not resolve; kernels with any are incomplete."""
    if state.text == state.before:
        return
    index, origin = state.index(), state.origin()
    found = [
        *_lost_names(state, index),
        *_rejected_calls(state, index),
        *_unknown_indices(state, index),
    ]
    for function, node, text in found:
        statement = index.statement_of(node)
        if statement is not None and has_todo(state, statement):
            continue
        state.unfinished.add(function.name)
        finding = Finding(
            RunRule.UNRESOLVED,
            place=index.source.region(node),
            severity=Severity.ERROR,
            safety=Safety.MANUAL,
            message=text,
            kernel=function.name,
        )
        state.findings.append(origin.moved(finding))
    if any(index.canonical(node) in _OLD for node in _run_at_import(index.source.tree)):
        state.unfinished |= index.functions.keys()


def has_todo(state: FileState, statement: ast.stmt) -> bool:
    """Whether a statement is left to a person already."""
    first, last = header_lines(statement)
    lines = {state.origin().line(n) for n in range(first, last + 1)}
    return todo_above(state.index().source.lines, first, "") is not None or any(
        f.region.line in lines for f in state.findings if not f.applied
    )


def _lost_names(state: FileState, index: FileIndex) -> Iterator[tuple[Function, ast.AST, str]]:
    """Names that a function reads and nothing binds any more."""
    before, after = unbound_names(state.before), unbound_names(state.text)
    for function in index.outermost_functions():
        for name in sorted(after.get(function.name, set()) - before.get(function.name, set())):
            node = next(
                (n for n in walk(function.node) if isinstance(n, ast.Name) and n.id == name),
                function.node,
            )
            yield function, node, f"`{name}` is not bound any more: define it before this line"


@cache
def unbound_names(text: str) -> dict[str, set[str]]:
    """Per function of a module, the names that neither it, nor the module, nor Python binds."""
    table = symtable.symtable(text, "<kernels>", "exec")
    symbols = table.get_symbols()
    bound = {s.get_name() for s in symbols if s.is_assigned() or s.is_imported()}
    bound |= {s.get_name() for t in _below(table) for s in t.get_symbols() if _sets_global(s)}
    if "import *" in text:
        return {}
    found: dict[str, set[str]] = {}
    for child in table.get_children():
        for inner in (child, *_below(child)):
            read = {s.get_name() for s in inner.get_symbols() if s.is_global() and _is_read(s)}
            found.setdefault(child.get_name(), set()).update(read - bound - _MODULE_NAMES)
    return found


def _is_read(symbol: symtable.Symbol) -> bool:
    return symbol.is_referenced() and not symbol.is_annotated()


def _sets_global(symbol: symtable.Symbol) -> bool:
    return symbol.is_declared_global() and symbol.is_assigned()


def _below(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for child in table.get_children():
        yield child
        yield from _below(child)


def _rejected_calls(state: FileState, index: FileIndex) -> Iterator[tuple[Function, ast.AST, str]]:
    """Calls of instructions that the target does not have, or whose arguments it does not take."""
    version = state.request.target
    for function in index.outermost_functions():
        if state.starts.get(function.name) != "0.1" or state.is_kept(function.node.lineno):
            continue
        for node in walk(function.node):
            if isinstance(node, ast.Call):
                problem = _problem(node, index.canonical(node.func) or "", version)
                if problem:
                    yield function, node, problem


def _unknown_indices(state: FileState, index: FileIndex) -> Iterator[tuple[Function, ast.AST, str]]:
    """Operands of instructions whose index a function of a file out of view returned.

    It may be an index tensor, and what was written takes it for a number.
    """
    if state.request.observed:
        return
    for function in index.outermost_functions():
        if state.starts.get(function.name) != "0.1":
            continue
        returned = _returned_from_elsewhere(state, index, function)
        for node in walk(function.node):
            name = _index_of_operand(node, returned)
            if name:
                text = f"`{name}` may be an index tensor: `{returned[name]}` is in a file that was"
                yield function, node, f"{text} not given; name that file, too, or give --facts"


def _returned_from_elsewhere(
    state: FileState, index: FileIndex, function: Function
) -> dict[str, str]:
    """Names that calls of imported functions bind, each with the function's."""
    found: dict[str, str] = {}
    for node in walk(function.node):
        match node:
            case ast.Assign(targets=[target], value=ast.Call(func=called)):
                path = index.path(called) or ""
                if is_out_of_view(state, path):
                    names = (n.id for n in walk(target) if isinstance(n, ast.Name))
                    found |= dict.fromkeys(names, path.rpartition(".")[2])
    return found


def _index_of_operand(node: ast.AST, names: Container[str]) -> str | None:
    """The first of the names that is, alone, an index of an operand of a call."""
    if not isinstance(node, ast.keyword) or not isinstance(node.value, ast.Subscript):
        return None
    index = node.value.slice
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return next((p.id for p in parts if isinstance(p, ast.Name) and p.id in names), None)


def _problem(call: ast.Call, name: str, version: str) -> str:
    """Why a call of `nisa` does not fit the version; empty where it does."""
    module, _, own = name.partition(".")
    if module != "nisa":
        return ""
    known = signature(own, version)
    if known is None:
        return f"`{name}` is not in NKI {version}" if signature(own, "0.1") is not None else ""
    return _mismatch(call, known, f"`{name}`", f"in NKI {version}")


def _mismatch(call: ast.Call, known: Signature, name: str, where: str) -> str:
    names = {p.name for p in known.params}
    count = sum(not p.keyword_only for p in known.params)
    unknown = [k.arg for k in call.keywords if k.arg and k.arg not in names]
    if unknown:
        return f"{name} has no parameter `{unknown[0]}` {where}"
    if has_unknown_arguments(call):
        return ""
    if len(call.args) > count:
        return f"{name} takes {count} positional arguments {where}"
    lacking = _lacking(call, known)
    return f"{name} needs `{lacking}` {where}" if lacking else ""


def _lacking(call: ast.Call, known: Signature) -> str:
    """The first parameter without a default that a call does not give."""
    given = {k.arg for k in call.keywords} | {p.name for p in known.params[: len(call.args)]}
    needed = (p.name for p in known.params if p.required and p.name.isidentifier())
    return next((name for name in needed if name not in given), "")


def _run_at_import(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes that run when a module is imported: no bodies of functions, no `__main__` block."""
    queue: list[ast.AST] = [s for s in tree.body if not _is_main_block(s)]
    for node in queue:
        yield node
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            queue += node.decorator_list
        elif not is_function:
            queue += ast.iter_child_nodes(node)


def _is_main_block(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "__name__" in ast.dump(statement.test)
