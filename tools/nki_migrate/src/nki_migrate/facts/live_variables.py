"""Live variables: read by a piece of code, certainly assigned by it, and read after it.

A backward analysis over the syntax tree of one function, as a compiler's, and conservative: a name
may be reported as needed that no run needs, never the other way round. Comprehensions and lambdas
have scopes of their own; what a nested function reads counts where the function is defined.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from nki_migrate.index import FileIndex, children

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)

Writer = Callable[[ast.Call], str | None]
"""The name whose contents a call overwrites, where contents and not bindings are followed."""


@dataclass(frozen=True, slots=True)
class Flow:
    """`needed`: may be read before the code assigns them; `assigned`: on every path through it."""

    needed: frozenset[str] = frozenset()
    assigned: frozenset[str] = frozenset()


def bindings(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, ast.AST]]:
    """Every name that the code binds in its own scope, with the node that binds it."""
    for node in nodes:
        yield from _bound_here(node)
        if not isinstance(node, (*_SCOPES, *_COMPREHENSIONS, ast.ClassDef)):
            yield from bindings(children(node))


def _bound_here(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id, node
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name, node
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (((a.asname or a.name).partition(".")[0], node) for a in node.names)
    elif isinstance(node, ast.ExceptHandler) and node.name is not None:
        yield node.name, node


def reads(node: ast.AST) -> frozenset[str]:
    """The names that an expression, or a nested function, reads from around it."""
    if isinstance(node, ast.Name):
        return frozenset({node.id}) if isinstance(node.ctx, ast.Load) else frozenset()
    below = frozenset[str]().union(*map(reads, children(node)))
    if isinstance(node, _COMPREHENSIONS):
        return below - _names(g.target for g in node.generators)
    if isinstance(node, _SCOPES):
        return below - _own_names(node)
    return below


def _names(targets: Iterable[ast.AST]) -> frozenset[str]:
    return frozenset(name for name, _ in bindings(targets))


def _own_names(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> frozenset[str]:
    a = node.args
    extra = [p for p in (a.vararg, a.kwarg) if p is not None]
    parameters = {p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs, *extra)}
    body = () if isinstance(node, ast.Lambda) else node.body
    outer = {n for s in body if isinstance(s, ast.Nonlocal | ast.Global) for n in s.names}
    return frozenset(parameters) | (_names(body) - outer)


def _reads_beside(call: ast.Call, written: str) -> frozenset[str]:
    """Reads of a call beside the name that it overwrites."""
    arguments = [*call.args, *(k.value for k in call.keywords)]
    others = [a for a in arguments if not (isinstance(a, ast.Name) and a.id == written)]
    return frozenset[str]().union(*map(reads, others))


class Variables:
    """The flow of variables through statements.

    With `writer`, calls that overwrite the contents of a name (a register's) assign it, and nothing
    else is different: the analysis then answers for contents what it answers for bindings.
    """

    def __init__(self, writer: Writer = lambda call: None) -> None:
        self._writer = writer

    def block(self, statements: Sequence[ast.stmt]) -> Flow:
        """Statements one after another."""
        needed, assigned = frozenset[str](), frozenset[str]()
        for statement in statements:
            flow = self.statement(statement)
            needed |= flow.needed - assigned
            assigned |= flow.assigned
        return Flow(needed, assigned)

    def statement(self, node: ast.stmt) -> Flow:
        """One statement with everything below it."""
        if isinstance(node, ast.If | ast.Match):
            return self._branches(node)
        if isinstance(node, _LOOPS):
            return self._loop(node)
        if isinstance(node, ast.With | ast.AsyncWith):
            return self._with(node)
        if isinstance(node, ast.Try | ast.TryStar):
            parts = [self.block(part) for part in _parts(node)]
            return Flow(frozenset[str]().union(*(p.needed for p in parts)))
        return self._simple(node)

    def _simple(self, node: ast.stmt) -> Flow:
        call = node.value if isinstance(node, ast.Expr) else None
        written = self._writer(call) if isinstance(call, ast.Call) else None
        if written is not None and isinstance(call, ast.Call):
            return Flow(_reads_beside(call, written), frozenset({written}))
        assigned, needed = _names([node]), reads(node)
        if isinstance(node, ast.AugAssign | ast.Delete):
            needed |= assigned
        is_bare = isinstance(node, ast.Delete) or getattr(node, "value", node) is None
        return Flow(needed, frozenset() if is_bare else assigned)

    def _branches(self, node: ast.If | ast.Match) -> Flow:
        if isinstance(node, ast.If):
            first, blocks = reads(node.test), [node.body, node.orelse]
        else:
            first = reads(node.subject)
            blocks = [*(c.body for c in node.cases), []]
        flows = [self.block(block) for block in blocks]
        needed = first.union(*(f.needed for f in flows))
        return Flow(needed, frozenset.intersection(*(f.assigned for f in flows)))

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While) -> Flow:
        """A loop may not turn at all: it surely assigns nothing."""
        body, rest = self.block(node.body), self.block(node.orelse)
        if isinstance(node, ast.While):
            return Flow(reads(node.test) | body.needed | rest.needed)
        return Flow(reads(node.iter) | (body.needed - _names([node.target])) | rest.needed)

    def _with(self, node: ast.With | ast.AsyncWith) -> Flow:
        first = frozenset[str]().union(*(reads(i.context_expr) for i in node.items))
        targets = _names(i.optional_vars for i in node.items if i.optional_vars is not None)
        body = self.block(node.body)
        return Flow(first | (body.needed - targets), body.assigned | targets)

    def needed_after(self, node: ast.stmt, index: FileIndex) -> frozenset[str]:
        """The names whose values may be read once the statement has run."""
        live, killed = frozenset[str](), frozenset[str]()
        child: ast.AST = node
        for parent in index.ancestors(node):
            for block in _parts(parent):
                if child in block:
                    rest = block[block.index(child) + 1 :]  # type: ignore[arg-type]
                    flow = self.block(rest)
                    live |= flow.needed - killed
                    killed |= frozenset() if _jumps(rest) else flow.assigned
                elif isinstance(parent, ast.Try | ast.TryStar):
                    live |= self.block(block).needed
            if isinstance(parent, _LOOPS):
                live |= self._loop(parent).needed - killed
            if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
                return live | _read_in_nested(parent, node)
            child = parent
        return live


def _parts(node: ast.AST) -> list[list[ast.stmt]]:
    """The blocks of statements of a compound statement."""
    handlers = getattr(node, "handlers", [])
    cases = getattr(node, "cases", [])
    own = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
    found = [*own, *(h.body for h in handlers), *(c.body for c in cases)]
    return [block for block in found if isinstance(block, list)]


def _jumps(statements: Iterable[ast.stmt]) -> bool:
    """Whether control may leave the statements before their end."""
    jumps = (ast.Break, ast.Continue, ast.Return, ast.Raise)
    return any(isinstance(n, jumps) for s in statements for n in ast.walk(s))


def _read_in_nested(function: ast.AST, without: ast.AST) -> frozenset[str]:
    """Reads by functions nested in this one, outside of a statement."""
    found = frozenset[str]()
    for child in children(function):
        if child is without:
            continue
        if isinstance(child, _SCOPES):
            found |= reads(child)
        else:
            found |= _read_in_nested(child, without)
    return found
