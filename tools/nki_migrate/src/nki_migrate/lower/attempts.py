"""A statement converts as a whole or not at all.

What cannot is left as it stands under a TODO with the rule's id, and what it binds counts as
unknown from there on.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Callable

from nki_migrate.facts.values import Parameter, Unknown
from nki_migrate.findings import Finding, Safety, Severity
from nki_migrate.lower.context import Cannot, Context, Deselected, Unproved
from nki_migrate.lower.plan import Change
from nki_migrate.lower.source_text import text_of

__all__ = ["attempt", "bind_anything", "bind_unknown"]


def attempt(ctx: Context, statement: ast.stmt, lower: Callable[[], bool]) -> bool:
    """Run one lowering; `lower` says whether the emitted lines replace the statement."""
    scope, counts = ctx.scope.copy(), dict(ctx.counts[-1])
    names, outer, guards = set(ctx.generated), ctx.statement, set(ctx.guards[-1])
    ctx.out, ctx.statement, ctx.basis = [], statement, []
    old_rewrites = dict(ctx.rewrites)
    try:
        replaced = lower()
    except (Cannot, Deselected) as problem:
        ctx.scope, ctx.generated, ctx.rewrites = scope, names, old_rewrites
        ctx.counts[-1], ctx.guards[-1] = counts, guards
        ctx.drop_findings()
        ctx.statement = outer
        if isinstance(problem, Cannot):
            _leave_todo(ctx, statement, problem)
        bind_unknown(ctx, statement)
        return False
    change = ctx.changes.setdefault(statement, Change())
    if replaced and not _says_the_same(ctx, statement):
        change.lines = ctx.out
        change.comments = _inner_comments(ctx, statement)
    elif replaced:
        ctx.drop_findings()
    else:
        _keep(ctx, statement, change)
    ctx.commit_findings(statement, change)
    ctx.out, ctx.statement = [], outer
    return True


def _says_the_same(ctx: Context, statement: ast.stmt) -> bool:
    """Whether the statement is already what would be written."""
    if len(ctx.out) != 1:
        return False
    old, new = ("".join(t.split()) for t in (ctx.index.source.segment(statement), ctx.out[0]))
    return old.replace(",)", ")") == new.replace(",)", ")")


def _keep(ctx: Context, statement: ast.stmt, change: Change) -> None:
    """The statement stays, with its rewrites and what has to come before it."""
    change.before = ctx.out
    if hasattr(statement, "body"):
        return
    text = text_of(ctx, statement)
    if text != ctx.index.source.segment(statement):
        change.lines = [*ctx.out, text]
        change.before = []


def _leave_todo(ctx: Context, statement: ast.stmt, problem: Cannot) -> None:
    node = problem.node or statement
    unproved = isinstance(problem, Unproved)
    finding = Finding(
        problem.rule,
        ctx.index.source.path,
        *ctx.index.source.span(node),
        severity=Severity.ERROR,
        safety=Safety.UNSAFE if unproved else Safety.MANUAL,
        message=problem.message,
        kernel=ctx.function.name,
        assumption=problem.assumption if isinstance(problem, Unproved) else None,
        basis=tuple(ctx.basis),
    )
    if not ctx.request.selects(problem.rule) or ctx.silenced(problem.rule, finding.line):
        return
    ctx.findings.append(finding)
    if ctx.request.todo == "comment":
        text = f"# TODO(nki-migrate {problem.rule}): {problem.message}"
        if isinstance(problem, Unproved):
            text += f"; holds if {problem.assumption} (--unsafe-fixes)"
        ctx.changes[statement] = Change(comments=[text])


def _inner_comments(ctx: Context, statement: ast.stmt) -> list[str]:
    """Comments between the lines of a statement that is written anew."""
    if statement.end_lineno == statement.lineno:
        return []
    text = ctx.index.source.segment(statement)
    if "#" not in text:
        return []
    tokens = tokenize.generate_tokens(io.StringIO(f"({text}\n)").readline)
    try:
        return [t.string for t in tokens if t.type == tokenize.COMMENT]
    except tokenize.TokenError:
        return []


def bind_unknown(ctx: Context, statement: ast.AST) -> None:
    """Names that a statement binds stand for something we know nothing about."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bind_anything(ctx, node.id)


def bind_anything(ctx: Context, name: str) -> None:
    ctx.scope.bind(name, Unknown(name))
    ctx.scope.values[name] = Parameter(name, None, ctx.scope.clock)
