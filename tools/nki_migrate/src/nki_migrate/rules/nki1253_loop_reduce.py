"""`t[…] = nl.loop_reduce(x, op, loop_indices=[i])`: the destination is the other operand (NKI1253).

0.1 adds x to what `t` holds, or starts with x where nothing has been written. A `t` that was made
with a value, or got one right before the loops, holds something: the instruction is in place.
"""

from __future__ import annotations

import ast

from nki_migrate.facts.values import Tensor
from nki_migrate.rewriting.context.call_site import CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot
from nki_migrate.rewriting.context.source_text import as_dtype
from nki_migrate.rewriting.operations.operator_names import operator_text
from nki_migrate.rewriting.operations.operators import two_tiles
from nki_migrate.rewriting.views.tensors import as_tensor
from nki_migrate.rewriting.views.view_text import own_dtype
from nki_migrate.rules.rule import Hooks

_KNOWN = {"x", "op", "loop_indices", "dtype", "mask", "name"}
_RULE = "NKI1253"


def rewrite_loop_reduce(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
    """`t[…] = nl.loop_reduce(x, np.add, loop_indices=[i])` → `t[…] = x + t[…]`."""
    view = target.view if target is not None else None
    x = as_tensor(ctx, ctx.value_of(site.arguments["x"]))
    op = site.get("op")
    if view is None or x is None or op is None:
        raise Cannot(_RULE, "`nl.loop_reduce` that is not assigned to part of a tensor", site.node)
    if site.get("mask") is not None or set(site.arguments) - _KNOWN:
        raise Cannot(_RULE, "`nl.loop_reduce` with a mask", site.node)
    if not view.storage.filled and not _is_set_before(ctx, site.node):
        message = "`nl.loop_reduce` into a tensor that may hold nothing before its first turn"
        raise Cannot(_RULE, message, site.node)
    own = own_dtype(ctx, view)
    dtype = as_dtype(ctx, site.get("dtype"))
    if dtype is not None and dtype.key != own.key:
        raise Cannot(_RULE, "`nl.loop_reduce` that rounds to another dtype on the way", site.node)
    name = operator_text(ctx, op).rpartition(".")[2]
    ctx.report(_RULE, site.node, f"the destination is the other operand: `{name}` in place")
    ctx.use(x, "op")
    return two_tiles(ctx, site.node, name, x, view, own, None, Target(view=view))


def _is_set_before(ctx: Context, node: ast.expr) -> bool:
    """Whether the statement right before the loops gives the destination a number."""
    statement = ctx.index.statement_of(node)
    target = getattr(statement, "targets", [None])[0]
    around = [a for a in ctx.index.ancestors(node) if isinstance(a, ast.For)]
    rebound = {
        n.id for loop in around[:1] for n in ast.walk(loop)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }  # fmt: skip
    if target is None or not around or rebound & {getattr(n, "id", "") for n in ast.walk(target)}:
        return False
    body = getattr(ctx.index.parent(around[0]), "body", [])
    at = body.index(around[0]) if around[0] in body else 0
    first = body[at - 1] if at else None
    return (
        isinstance(first, ast.Assign)
        and isinstance(first.value, ast.Constant)
        and ast.dump(first.targets[0]) == ast.dump(target)
    )


HOOKS = Hooks(calls={"nl.loop_reduce": rewrite_loop_reduce})
