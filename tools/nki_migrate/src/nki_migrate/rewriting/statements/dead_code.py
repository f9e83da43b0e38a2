"""Lines that nothing needs after the rewriting: index tensors, masks, counters of addresses."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import replace

from neuroncore.findings import Safety
from nki_migrate.index import children, walk
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Reason
from nki_migrate.rewriting.context.scope import identifiers
from nki_migrate.rewriting.plan.changes import Change, statements_in_order


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


def remove_address_lines(ctx: Context) -> None:
    """Variables that were read for `base_addr=` only go with all that computes them."""
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
        message = f"`{_target(statement)}` counts addresses, which are not used"
        gone_here = ctx.finding(Reason.DIRECT_ALLOCATION, statement, message, Safety.SAFE)
        lines = gone_here.region.line, gone_here.region.end_line
        ctx.findings = [f for f in ctx.findings if (f.region.line, f.region.end_line) != lines]
        ctx.findings.append(replace(gone_here, applied=True))


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
