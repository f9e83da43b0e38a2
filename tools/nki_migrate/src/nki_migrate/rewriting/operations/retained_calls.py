"""`--nl keep`: `nl.*` calls that 0.3 and later still have stay, where they mean what they meant.

From 0.3 on they are back, but without masks and without broadcasting, and some do not compile
for the device (decision 1 of the rule catalogue). So a call stays only if its rewriting, tried and
thrown away, is the one plain instruction that the call itself would be; all else is rewritten.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from nki_migrate.facts.values import Tensor, Value
from nki_migrate.rewriting.context.call_site import CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.views.view_text import spell

# What the rewriting of a call must consist of for the call to stay.
_PLAIN = {
    "nl.load": "dma_copy",
    "nl.store": "dma_copy",
    "nl.sum": "tensor_reduce",
    "nl.max": "tensor_reduce",
    "nl.min": "tensor_reduce",
} | dict.fromkeys(("nl.add", "nl.subtract", "nl.multiply", "nl.maximum", "nl.minimum"), "tensor_")
_PLAIN |= dict.fromkeys(
    (f"nl.{n}" for n in ("exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "relu", "gelu", "silu")),
    "activation",
)
STAYING = frozenset(_PLAIN)


def keep_call(
    ctx: Context,
    site: CallSite,
    rewrite: Callable[[Context, CallSite, Target | None], Value],
    target: Target | None,
) -> Value | None:
    """The value of a call that stays, apart from its subscripts; None if it is rewritten."""
    instruction = _PLAIN.get(site.name)
    wanted = ctx.request.nl == "keep" and ctx.request.target >= "0.3" and instruction is not None
    if not wanted or site.get("mask") is not None or (target is not None and target.view):
        return None
    before, names, findings = len(ctx.out), set(ctx.generated), ctx.pending_findings()
    value = rewrite(ctx, site, target)
    made = ctx.out[before:]
    calls = [line for line in made if f"{ctx.alias('nisa')}." in line]
    if len(calls) != 1 or f".{instruction}" not in calls[0] or "operand0=" in calls[0]:
        return _undone(ctx, before, names, findings)
    _undone(ctx, before, names, findings)
    for node in site.arguments.values():
        _rewrite_view(ctx, node)
    ctx.kept.add(site.node)
    return value


def _undone(ctx: Context, before: int, names: set[str], findings: int) -> None:
    del ctx.out[before:]
    ctx.generated = names
    ctx.forget_findings(findings)


def _rewrite_view(ctx: Context, node: ast.expr) -> None:
    """Subscripts with index tensors become slices."""

    value = ctx.value_of(node) if isinstance(node, ast.Subscript) else None
    if isinstance(value, Tensor):
        text = spell(ctx, value)
        if text != ctx.index.source.segment(node):
            ctx.rewrites[node] = text
