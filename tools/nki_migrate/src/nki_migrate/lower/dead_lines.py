"""Lines that nothing needs after the lowering: index tensors, masks, counters of addresses."""

from __future__ import annotations

import ast
from collections import Counter

from nki_migrate.findings import Finding, Safety, Severity
from nki_migrate.index import children, walk
from nki_migrate.lower.context import Context, identifiers
from nki_migrate.lower.plan import Change, statements_in_order

__all__ = ["remove_address_lines", "remove_dead_lines"]


def remove_dead_lines(ctx: Context) -> None:
    """Assignments of index tensors and masks go when nothing mentions them any more."""
    mentions = {s: _mentioned(ctx, s) for s in statements_in_order(ctx.function.node.body)}
    alive = dict(ctx.removable)
    while True:
        count = Counter(name for names in mentions.values() for name in names)
        gone = [
            s for s, names in alive.items() if all(count[n] == (n in mentions[s]) for n in names)
        ]
        if not gone:
            return
        for statement in gone:
            del alive[statement], mentions[statement]
            ctx.changes[statement] = Change(lines=[])


def _mentioned(ctx: Context, statement: ast.stmt) -> set[str]:
    """Names that a statement reads in its new form."""
    change = ctx.changes.get(statement)
    if change is None:
        return _own_names(statement)
    names = identifiers("\n".join([*change.before, *(change.lines or ()), change.header or ""]))
    if "_" not in _own_names(statement):  # the counter of a loop that makes tiles
        names -= {"_"}
    if change.lines is None and change.header is None:
        names |= _own_names(statement)
    return names


def _own_names(statement: ast.stmt) -> set[str]:
    """Names read by a statement itself, not by statements inside it."""
    found, queue = set[str](), list[ast.AST](children(statement))
    while queue:
        node = queue.pop()
        if isinstance(node, ast.stmt | ast.ExceptHandler):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.add(node.id)
        queue += children(node)
    return found


# -- addresses

_COUNTS = "counts addresses, which nobody asks for any more"


def remove_address_lines(ctx: Context) -> None:
    """Variables that were read for `base_addr=` only go with all that computes them (NKI1143)."""
    statements = list(statements_in_order(ctx.function.node.body))
    gone = {name for name in ctx.addresses if name not in ctx.function.parameters}
    while gone:
        lines = {s for s in statements if _target(s) in gone and not _is_device_code(ctx, s)}
        bound = Counter(n for s in statements if s not in lines for n in _bound(s))
        read = Counter(n for s in statements if s not in lines for n in _mentioned(ctx, s))
        kept = {name for name in gone if bound[name] or read[name]}
        if not kept:
            break
        gone -= kept
    for statement in (s for s in statements if gone and _target(s) in gone):
        ctx.changes[statement] = Change(lines=[])
        span = ctx.index.source.span(statement)
        ctx.findings = [f for f in ctx.findings if (f.line, f.end_line) != (span[0], span[2])]
        ctx.findings.append(
            Finding(
                "NKI1143", ctx.index.source.path, *span, severity=Severity.ERROR,
                safety=Safety.SAFE, message=f"`{_target(statement)}` {_COUNTS}",
                kernel=ctx.function.name, applied=True,
            )
        )  # fmt: skip


def _target(statement: ast.stmt) -> str | None:
    """The one name that a statement assigns a number to."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target: ast.expr = statement.targets[0]
    elif isinstance(statement, ast.AugAssign):
        target = statement.target
    else:
        return None
    return target.id if isinstance(target, ast.Name) else None


def _bound(statement: ast.stmt) -> set[str]:
    nodes = [statement.target] if isinstance(statement, ast.For) else []
    if isinstance(statement, ast.Assign):
        nodes = statement.targets
    return {n.id for node in nodes for n in walk(node) if isinstance(n, ast.Name)}


def _is_device_code(ctx: Context, statement: ast.AST) -> bool:
    """Whether it calls what may run on the device, itself or by way of functions of the file."""
    queue, reached = walk(statement), set[str]()
    for node in queue:
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            canonical = ctx.index.canonical(node.func) or ""
            if canonical.startswith(("nl.", "nisa.")):
                return True
            callee = ctx.index.functions.get(name)
            if callee is not None and name not in reached:
                reached.add(name)
                queue += walk(callee.node)
    return False
