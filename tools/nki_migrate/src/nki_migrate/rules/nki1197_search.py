"""NKI1197: predicated copies, the eight largest, and where they are."""

from __future__ import annotations

from nki_migrate.facts.values import Tensor
from nki_migrate.findings import Safety
from nki_migrate.lower.access import as_tensor
from nki_migrate.lower.context import Cannot, Context
from nki_migrate.lower.destination import Target, valid_limits
from nki_migrate.lower.evaluate import value_of
from nki_migrate.lower.given import into_given
from nki_migrate.lower.instructions import instruction
from nki_migrate.lower.signatures import CallSite
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_SAID = "`{}` takes its destination first"


def _search(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
    ctx.report("NKI1197", site.node, _SAID.format(site.name))
    data = (
        as_tensor(ctx, value_of(ctx, site.arguments["data"])) if "data" in site.arguments else None
    )
    part = data is not None and any(axis > 0 for axis in valid_limits(ctx, data))
    if data is not None and (part or site.get("mask") is not None):
        why = "a search in part of a tile" if part else f"a mask on `{site.name}`"
        raise Cannot("NKI1197", why, site.node)
    return instruction(ctx, site, target)


_BAD = """
tile = nl.load(x[0:128, 0:512])
largest = nisa.max8(src=tile)
places = nisa.nc_find_index8(data=tile, vals=largest)
rest = nisa.nc_match_replace8(data=tile, vals=largest, imm=-1.0)
nisa.tensor_copy_predicated(src=tile, dst=rest, predicate=places)
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:512])
largest = nl.ndarray((128, 8), dtype=x.dtype, buffer=nl.sbuf)
nisa.max8(dst=largest, src=tile)
places = nl.ndarray((128, 8), dtype=nl.uint32, buffer=nl.sbuf)
nisa.nc_find_index8(dst=places, data=tile, vals=largest)
rest = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.nc_match_replace8(dst=rest, data=tile, vals=largest, imm=-1.0)
nisa.tensor_copy_predicated(dst=rest, src=tile, predicate=places)
"""

RULE = Rule(
    id="NKI1197",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="predicated copies and searches take `dst` first",
    page="""\
Old: `nisa.tensor_copy_predicated(src=…, dst=…, predicate=…)`, `nisa.select_reduce(dst=…, …)`,
`v = nisa.max8(src=…)`, `i = nisa.nc_find_index8(data=…, vals=…)`,
`r = nisa.nc_match_replace8(data=…, vals=…, imm=…)`

New: the same with `dst=` first; positions are `nl.uint32` unless `dtype=` says otherwise

A search in a tile that is filled in part, or under a mask, stays with a TODO.
""",
    calls={f"nisa.{name}": _search for name in ("max8", "nc_find_index8", "nc_match_replace8")}
    | {
        name: into_given("NKI1197", _SAID.format(name))
        for name in ("nisa.tensor_copy_predicated", "nisa.select_reduce")
    },
    examples=(Example.kernel(_BAD, _GOOD),),
)
