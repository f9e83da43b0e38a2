"""Instructions that return their result in 0.1, and instructions with a destination.

`nc_stream_shuffle` changed its order as well: (src, dst, mask) of 0.1 is (dst, src, mask).
"""

from __future__ import annotations

import ast
from functools import partial

from neuroncore.surface import instruction_names
from nki_migrate.facts.values import Const, Tensor, Value
from nki_migrate.rewriting.context.call_site import DONE, CallSite
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot
from nki_migrate.rewriting.context.source_text import as_dtype, text_of
from nki_migrate.rewriting.destinations.destination import Operand, emit
from nki_migrate.rewriting.destinations.regions import mask_region, valid_limits, valid_region
from nki_migrate.rewriting.operations.instructions import INSTRUCTIONS, instruction
from nki_migrate.rewriting.operations.operands import operator_text
from nki_migrate.rewriting.views.tensors import as_tensor, tile_of
from nki_migrate.rules.rule import Hooks

# rules of their own: NKI1194, NKI1197
_SEARCHES = ("nisa.max8", "nisa.nc_find_index8", "nisa.nc_match_replace8")
_ELSEWHERE = {"nisa.tensor_reduce", *_SEARCHES}
_REMOVED_ARGUMENTS = {"mask", "dtype"}
OLDEST = "0.2"  # the first version whose instructions take their destination


def _search(ctx: Context, site: CallSite) -> Tensor:
    """NKI1197: predicated copies, the eight largest, and where they are."""
    ctx.report("NKI1197", site.node, f"`{site.name}` takes its destination first")
    node = site.arguments.get("data")
    data = as_tensor(ctx, ctx.value_of(node)) if node is not None else None
    if data is not None and any(axis > 0 for axis in valid_limits(ctx, data)):
        raise Cannot("NKI1197", "a search in part of a tile", site.node)
    if data is not None and site.get("mask") is not None:
        raise Cannot("NKI1197", f"a mask on `{site.name}`", site.node)
    return instruction(ctx, site)


def _into_destination(rule: str, message: str, ctx: Context, site: CallSite) -> Value:
    """An instruction that took its destination in 0.1: only how operands are written changes."""
    dst, is_positional = tile_of(ctx, site, "dst"), len(site.node.args) > 1
    if dst is None or not isinstance(ctx.index.parent(site.node), ast.Expr):
        if _REMOVED_ARGUMENTS & site.arguments.keys() or is_positional:
            raise Cannot(rule, "the destination is not known to be a tile", site.node)
        return Const(None, "as it is")  # the form of 0.2
    if is_positional and ctx.is_mixed:
        raise Cannot(rule, "arguments of 0.1 or of 0.2: name them manually", site.node)
    dtype = as_dtype(ctx, site.get("dtype"))  # one of its own would round before dst does
    if dtype is not None and (dst.dtype is None or dst.dtype.key != dtype.key):
        text = f"`dtype={dtype.text}` beside a destination of another dtype"
        raise Cannot(rule, text, site.node)
    ctx.report(rule, site.node, message.format(site.name))
    kept = {k: v for k, v in site.arguments.items() if k not in {"dst", *_REMOVED_ARGUMENTS}}
    operands = [(k, _operand(ctx, k, v)) for k, v in kept.items()]
    region = mask_region(ctx, site, dst.shape) or valid_region(ctx, dst)
    emit(ctx, site.name.partition(".")[2], dst, operands, region)
    return DONE


def _operand(ctx: Context, name: str, node: ast.expr) -> Operand:
    if name == "reduce_op":
        return operator_text(ctx, node)
    found = ctx.value_of(node)
    return found if isinstance(found, Tensor) else text_of(ctx, node)


def _message(canonical: str) -> str:
    """NKI1198: instructions whose result is left to the reader."""
    if canonical.partition(".")[2] in instruction_names(OLDEST):
        return f"`{canonical}` writes to `dst=` from 0.2 on: allocate the result"
    return f"`{canonical}` is gone: 0.2 and later have no such instruction"


_SHUFFLE = partial(_into_destination, "NKI1193", "`{}` has its destination first")
_SELECTION = partial(_into_destination, "NKI1197", "`{}` takes its destination first")
HOOKS = {
    "NKI1180": Hooks(calls={n: instruction for n in INSTRUCTIONS if n not in _ELSEWHERE}),
    "NKI1193": Hooks(calls={"nisa.nc_stream_shuffle": _SHUFFLE}),
    "NKI1197": Hooks(
        calls=dict.fromkeys(_SEARCHES, _search)
        | {"nisa.tensor_copy_predicated": _SELECTION, "nisa.select_reduce": _SELECTION}
    ),
    "NKI1198": Hooks(message=_message),
}
