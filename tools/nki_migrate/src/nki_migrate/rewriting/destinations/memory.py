"""Memories of tensors: `buffer=`, and explicit addresses.

From 0.2 on the compiler places tiles by itself. An address goes; what it said about reuse stays:
block i of `mod_alloc(num_free_tiles=(k,))` was tile i modulo k, and the list of tiles is made so.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from nki_migrate.facts.values import Ref, Seq, Sym, Value
from nki_migrate.rewriting.context.call_site import CallSite
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.context.source_text import as_number, text_of

BUFFERS = {
    "nl.sbuf": "sbuf", "nl.psum": "psum", "nl.hbm": "hbm", "nl.shared_hbm": "hbm",
    "nl.private_hbm": "hbm",
}  # fmt: skip
_STRINGS = {"sbuf": "nl.sbuf", "psum": "nl.psum", "hbm": "nl.hbm", "shared_hbm": "nl.shared_hbm",
            "private_hbm": "nl.private_hbm"}  # fmt: skip
_RINGS = {
    "ncc.sbuf.mod_alloc": ("num_free_tiles", "num_par_tiles"),
    "ncc.psum.mod_alloc": ("num_bank_tiles", "num_free_tiles", "num_par_tiles"),
}
_ADDRESSES = ("base_addr", "base_bank", "base_partition")
# How the address was given: the rule that speaks of it
_RULES = {
    "ncc.sbuf.mod_alloc": Reason.SBUF_RING, "ncc.psum.mod_alloc": Reason.PSUM_RING,
    "ncc.sbuf.alloc": Reason.ALLOCATION_FUNCTION, "ncc.psum.alloc": Reason.ALLOCATION_FUNCTION,
}  # fmt: skip
_FUNCTIONS = {"mod_alloc", "auto_alloc", "alloc"}
_PLACED = "a tensor with an address of its own (direct allocation)"
_GOES = "the compiler places tiles: the address goes"


@dataclass(frozen=True, slots=True)
class Memory:
    """Where a tensor lies; `ring` is how many tiles its blocks share, per block dimension."""

    buffer: str
    ring: tuple[Sym, ...] | None = None


def memory_of(ctx: Context, site: CallSite) -> Memory:
    """The memory that `buffer=` requests. Raises Cannot for what is not known here."""
    node = site.get("buffer")
    if node is None:
        return Memory("sbuf")
    if isinstance(node, ast.Constant) and node.value in _STRINGS:
        canonical = _STRINGS[node.value]
        ctx.report(Reason.BUFFER_STRING, node, f"buffers are objects: `{canonical}`")
        ctx.rewrites[node] = f"{ctx.alias('nl')}.{canonical[3:]}"
        return Memory(BUFFERS[canonical])
    placed = _function(ctx, node.func) if isinstance(node, ast.Call) else None
    if placed is not None and placed.startswith("ncc."):
        return _placed(ctx, node, placed)  # type: ignore[arg-type]
    value = ctx.value_of(node)
    if isinstance(value, Ref) and value.name in BUFFERS:
        return Memory(BUFFERS[value.name])
    return Memory(_observed(ctx, site.node, node, value))


def _observed(ctx: Context, made: ast.Call, node: ast.expr, value: Value) -> str:
    """The memory that the runs put the tensor in."""
    seen = _seen(ctx, made)
    if seen is not None and _is_made_here(ctx, node):
        ctx.report(Reason.DIRECT_ALLOCATION, node, _GOES)
        ctx.rewrites[node] = f"{ctx.alias('nl')}.{seen}"
        return seen
    if isinstance(value, Ref) or "alloc" in text_of(ctx, node):
        raise Cannot(Reason.DIRECT_ALLOCATION, _PLACED, node)
    raise Cannot(Reason.BUFFER, "a buffer that is not known here", node)


def _function(ctx: Context, node: ast.expr) -> str | None:
    """The canonical name of what is called, also under a name that the module gives it."""
    if isinstance(node, ast.Name) and node.id not in ctx.scope.values:
        node = ctx.index.constant(node.id) or node
    return ctx.index.canonical(node)


def _seen(ctx: Context, node: ast.Call) -> str | None:
    """Where the runs put the tensor."""
    seen = ctx.seen_at(node)
    if seen is None or seen.memory not in {"sbuf", "psum"}:
        return None
    ctx.basis.append(f"observed in {len(seen.runs)} run(s): the tensor is in {seen.memory}")
    return seen.memory


def _is_made_here(ctx: Context, node: ast.expr) -> bool:
    """Whether the buffer is what a call gives, not what the caller of the kernel passes."""
    return isinstance(node, ast.Call) or (
        isinstance(node, ast.Name) and node.id not in ctx.function.parameters
    )


def _placed(ctx: Context, node: ast.Call, canonical: str) -> Memory:
    """`ncc.sbuf.mod_alloc(…)`: the address goes, what it says about reuse stays."""
    rule = _RULES.get(canonical, Reason.DIRECT_ALLOCATION)
    buffer, _, function = canonical.removeprefix("ncc.").partition(".")
    if buffer not in {"sbuf", "psum"} or function not in _FUNCTIONS:
        raise Cannot(rule, _PLACED, node)
    given = {k.arg: k.value for k in node.keywords}
    ring = None  # a function placed each block; the compiler does now
    if canonical in _RINGS:
        ring = _only_ring(ctx, node, [given[k] for k in _RINGS[canonical] if k in given], rule)
    ctx.report(rule, node, _GOES)
    ctx.rewrites[node] = f"{ctx.alias('nl')}.{buffer}"
    for name in given.keys() & _ADDRESSES:
        ctx.addresses |= _names_in(given[name])
    return Memory(buffer, ring)


def _only_ring(
    ctx: Context, node: ast.Call, given: Sequence[ast.expr], rule: Reason
) -> tuple[Sym, ...]:
    """The counts of tiles; () where nothing is counted."""
    counts = [_ring(ctx, count, rule) for count in given]
    rings = [r for r in counts if any(size.value != 1 for size in r)]
    if len(rings) > 1 or node.args or any(k.arg is None for k in node.keywords):
        raise Cannot(rule, "tiles counted in more than one direction", node)
    return rings[0] if rings else ()


def _names_in(node: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _ring(ctx: Context, node: ast.expr, rule: Reason) -> tuple[Sym, ...]:
    value = ctx.value_of(node)
    items = value.items if isinstance(value, Seq) else (value,)
    sizes = [as_number(ctx, item) for item in items]
    if any(size is None for size in sizes):
        raise Cannot(rule, "a number of tiles that is not known here", node)
    return tuple(size for size in sizes if size is not None)
