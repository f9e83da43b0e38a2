"""A statement converts as a whole or not at all.

What cannot is left as it stands under a TODO with the rule's id, and what it binds counts as
unknown from there on. In a function that an earlier run left TODOs in, only statements below those
are tried again, and of these only what reads no tile: what the first run knew of tiles (how much
of them is filled, for one) cannot be read off its result.
"""

from __future__ import annotations

import ast
import builtins
import io
import re
import tokenize
from collections.abc import Callable
from dataclasses import replace

from neuroncore.findings import Safety
from nki_migrate.comments.todos import todo_above, todo_text
from nki_migrate.facts.values import Container, Parameter, Seq, Tensor, Unknown
from nki_migrate.index import children, shadowed_call, walk
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.line_breaks import WIDTH, fitted
from nki_migrate.rewriting.context.reasons import Cannot, Deselected, Reason, Unproved, Unsupported
from nki_migrate.rewriting.context.scope import Scope
from nki_migrate.rewriting.context.source_text import text_of
from nki_migrate.rewriting.plan.changes import Change

_LAST_COMMA = re.compile(r",(?=[)\]}])")


def attempt(ctx: Context, statement: ast.stmt, rewrite: Callable[[], bool]) -> bool:
    """Run one rewriting; `rewrite` says whether the emitted lines replace the statement."""
    scope, counts = ctx.scope.copy(), dict(ctx.counts[-1])
    names, outer, guards = set(ctx.generated), ctx.statement, set(ctx.guards[-1])
    ctx.out, ctx.statement, ctx.basis, ctx.marks = [], statement, [], []
    old_rewrites = dict(ctx.rewrites)
    mark = todo_above(ctx.index.source.lines, statement.lineno)
    try:
        _reject_walrus(ctx, statement)
        replaced = rewrite()
        _reject_old(ctx, statement, scope, mark, replaced=replaced)
        _reject_shadowed(ctx, statement, replaced=replaced)
    except (Cannot, Deselected) as problem:
        ctx.scope, ctx.generated, ctx.rewrites = scope, names, old_rewrites
        ctx.counts[-1], ctx.guards[-1] = counts, guards
        ctx.drop_findings()
        ctx.statement = outer
        ctx.changes.pop(statement, None)
        ctx.left.append(statement)
        is_done = ctx.is_again and mark is None
        if isinstance(problem, Cannot) and not is_done:
            _leave_todo(ctx, statement, problem)
        bind_unknown(ctx, statement)
        return False
    change = ctx.changes.setdefault(statement, Change())
    _write(ctx, statement, change, replaced=replaced)
    if ctx.request.todo == "comment" and mark is None:
        change.comments = [*ctx.marks[:1], *change.comments]
    ctx.commit_findings(statement, change)
    ctx.out, ctx.statement = [], outer
    return True


def _write(ctx: Context, statement: ast.stmt, change: Change, *, replaced: bool) -> None:
    """The emitted lines become the change of the statement."""
    if not replaced:
        _keep(ctx, statement, change)
    elif _says_the_same(ctx, statement):
        ctx.drop_findings()
    else:
        change.lines = ctx.out
        change.comments = _inner_comments(ctx, statement)


def _reject_old(
    ctx: Context,
    statement: ast.stmt,
    scope: Scope,
    mark: tuple[str, str] | None,
    *,
    replaced: bool,
) -> None:
    """Raise where an earlier run is done with the statement, or its TODO is still to do."""
    if ctx.is_again and _would_change(ctx, statement, replaced=replaced):
        if mark is None:
            raise Deselected("an earlier run is done with it")
        if _reads_a_tile(ctx, statement, scope):
            raise Cannot(*mark)
    if mark is not None and _may_be_old(ctx, statement, scope):
        raise Cannot(*mark)


def _reject_walrus(ctx: Context, statement: ast.stmt) -> None:
    """A tile that is made inside of an expression needs a statement."""
    for node in (n for part in _own_parts(statement) for n in walk(part)):
        if isinstance(node, ast.NamedExpr) and isinstance(node.value, ast.Call):
            module = (ctx.index.canonical(node.value.func) or "").partition(".")[0]
            if module in {"nl", "nisa"}:
                text = (
                    "device code in an assignment expression; write it as statements of their own"
                )
                raise Cannot(Reason.PYTHON_STATE, text, node)


def _reject_shadowed(ctx: Context, statement: ast.stmt, *, replaced: bool) -> None:
    """Raises Cannot where new code calls a builtin by a name that is something else here."""
    change = ctx.changes.get(statement)
    new = [*ctx.out, change.header or ""] if change is not None else list(ctx.out)
    if not replaced and not hasattr(statement, "body"):
        new.append(text_of(ctx, statement))
    old = (ctx.index.source.segment(part) for part in _own_parts(statement))
    name = shadowed_call(ctx.index, statement, old, new)
    if name is not None:
        text = f"new code calls the builtin `{name}`, which is something else here: rename it"
        raise Cannot(Reason.RETURNED_VALUE, text, statement)


def _would_change(ctx: Context, statement: ast.stmt, *, replaced: bool) -> bool:
    if replaced:
        return not _says_the_same(ctx, statement)
    change = ctx.changes.get(statement)
    if ctx.out or (change is not None and change.header is not None):
        return True
    return not hasattr(statement, "body") and text_of(ctx, statement) != ctx.index.source.segment(
        statement
    )


def _may_be_old(ctx: Context, statement: ast.stmt, scope: Scope) -> bool:
    """Whether what the TODO is about may still be there: its operands are unknown."""
    if _is_new_form(ctx, statement):
        return False
    return _calls_a_helper(ctx, statement) or _reads_a_tile(ctx, statement, scope)


def _is_new_form(ctx: Context, statement: ast.stmt) -> bool:
    """An instruction with a destination, or an allocation."""
    call = getattr(statement, "value", None)
    if not isinstance(call, ast.Call):
        return False
    name = ctx.index.canonical(call.func) or ""
    has_destination = any(k.arg == "dst" for k in call.keywords)
    return name == "nl.ndarray" or (name.startswith("nisa.") and has_destination)


def _calls_a_helper(ctx: Context, statement: ast.stmt) -> bool:
    """Whether a simple statement calls something outside of the language."""
    if hasattr(statement, "body"):
        return False
    calls = [n.func for n in walk(statement) if isinstance(n, ast.Call)]
    return any(
        (ctx.index.canonical(f) or "").partition(".")[0] not in _LANGUAGE
        and not (isinstance(f, ast.Name) and hasattr(builtins, f.id))
        for f in calls
    )


_LANGUAGE = {"nl", "nisa", "np", "nki"}


def _reads_a_tile(ctx: Context, statement: ast.stmt, scope: Scope) -> bool:
    """Whether anything in it may be on chip: how much of that is filled is unknown."""
    nodes = [n for part in _own_parts(statement) for n in walk(part)]
    read = {n.id for n in nodes if isinstance(n, ast.Name)} & scope.values.keys()
    values = [scope.values[name] for name in read]
    return any(
        isinstance(v, Unknown | Unsupported | Container | Seq)
        or (isinstance(v, Tensor | Parameter) and v.buffer != "hbm")
        for v in values
    )


def _own_parts(statement: ast.stmt) -> list[ast.AST]:
    """The statement without the statements inside it."""
    if not hasattr(statement, "body"):
        return [statement]
    return [c for c in children(statement) if not isinstance(c, ast.stmt)]


def _says_the_same(ctx: Context, statement: ast.stmt) -> bool:
    """Whether the statement is already what would be written."""
    if len(ctx.out) != 1:
        return False
    old, new = ("".join(t.split()) for t in (ctx.index.source.segment(statement), ctx.out[0]))
    return _LAST_COMMA.sub("", old) == _LAST_COMMA.sub("", new)


def _keep(ctx: Context, statement: ast.stmt, change: Change) -> None:
    """The statement stays, with its rewrites and what has to come before it."""
    change.before = ctx.out
    if hasattr(statement, "body"):
        return
    text = text_of(ctx, statement)
    if text != ctx.index.source.segment(statement):
        change.lines = [*ctx.out, _from_column_one(text, statement.col_offset)]
        change.before = []


def _from_column_one(text: str, column: int) -> str:
    """A statement's text as it would stand outside of any block."""
    if "\n" not in text:
        return fitted(text, WIDTH - column)
    if '"""' in text or "'''" in text:
        return text
    first, *rest = text.split("\n")
    pad = " " * column
    return "\n".join([first, *(x.removeprefix(pad) for x in rest)])


def _leave_todo(ctx: Context, statement: ast.stmt, problem: Cannot) -> None:
    node = problem.node or statement
    safety = Safety.UNSAFE if isinstance(problem, Unproved) else Safety.MANUAL
    finding = replace(
        ctx.finding(problem.cause, node, problem.message, safety),
        assumption=problem.assumption if isinstance(problem, Unproved) else None,
        basis=tuple(ctx.basis),
    )
    rule = finding.rule
    if not ctx.request.selects(rule) or ctx.silenced(rule, finding.region.line):
        return
    ctx.findings.append(finding)
    if (
        ctx.request.todo == "comment"
        and todo_above(ctx.index.source.lines, statement.lineno) is None
    ):
        ctx.changes[statement] = Change(
            comments=[todo_text(rule, _open_text(problem, finding.message))]
        )


def _open_text(problem: Cannot, message: str) -> str:
    """What a TODO says: an assumed equality says all of it."""
    if not isinstance(problem, Unproved):
        return message
    assumed = " ".join(problem.assumption.split())
    if " == " in assumed:
        return f"`{assumed}` is not known; --unsafe-fixes assumes it"
    return f"{message}; holds if {assumed} (--unsafe-fixes)"


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
    """Names that a statement binds represent something we know nothing about."""
    for node in walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bind_anything(ctx, node.id)


def bind_anything(ctx: Context, name: str) -> None:
    ctx.scope.bind(name, Unknown(name))
    ctx.scope.values[name] = Parameter(name, None, ctx.scope.clock)
