"""NKI1146: `nl.shared_identity_matrix` is a tile on chip."""

from __future__ import annotations

import ast

from nki_migrate.facts.dtypes import DType
from nki_migrate.facts.values import Storage, Tensor, Unknown, Value
from nki_migrate.findings import Safety
from nki_migrate.lower.context import Context
from nki_migrate.lower.destination import Target
from nki_migrate.lower.evaluate import as_dtype, value_of
from nki_migrate.lower.signatures import CallSite
from nki_migrate.lower.source_text import as_number, text_of
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]


def _lower(ctx: Context, site: CallSite, target: Target | None) -> Value:
    """The statement stays; what 0.1 had in HBM and loaded is on chip already."""
    node = site.get("n")
    size = as_number(ctx, value_of(ctx, node)) if node is not None else None
    dtype = as_dtype(ctx, site.get("dtype")) or DType(f"{ctx.alias('nl')}.uint8", "uint8")
    named = target.name if target is not None and target.view is None else None
    if size is None or named is None or not isinstance(ctx.index.parent(site.node), ast.Assign):
        return Unknown(text_of(ctx, site.node))
    ctx.kept.add(site.node)
    storage = Storage(
        named, (size, size), dtype, "sbuf", ctx.loops, ctx.site(site.node), flat_name=named,
        is_value=False, written=True, is_resident=True,
    )  # fmt: skip
    return Tensor(storage, storage.shape)


_BAD = """
identity = nl.shared_identity_matrix(n=128, dtype=nl.bfloat16)
tile = nl.load(identity)
wide = nl.exp(tile, dtype=nl.float32)
"""
_GOOD = """
identity = nl.shared_identity_matrix(n=128, dtype=nl.bfloat16)
tile = identity
wide = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
nisa.activation(dst=wide, op=nl.exp, data=identity)
"""

RULE = Rule(
    id="NKI1146",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="`nl.shared_identity_matrix` is a tile on chip",
    page="""\
Old: `tile = nl.load(nl_identity)`, the identity being a constant in HBM

New: `tile = nl_identity`; where the kernel writes to the tile, it gets a copy

0.4 and later document an SBUF tile, earlier texts only say "tensor".

**Trap.** A DMA of it on top of a tile is wasteful, and `nl.load` refuses what is not in HBM.
""",
    calls={"nl.shared_identity_matrix": _lower},
    examples=(Example.kernel(_BAD, _GOOD),),
)
