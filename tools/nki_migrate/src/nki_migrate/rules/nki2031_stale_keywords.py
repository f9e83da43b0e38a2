"""Keywords that SDK 2.27 knew or silently ignored."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety, Severity
from nki_migrate.rules.arguments import is_device_call, keyword
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

# They took `dst=` in 0.1 already: their dtype= and mask= may be 0.1 code waiting for a decision.
_DST_IN_01 = {
    "nisa.dma_copy",
    "nisa.nc_stream_shuffle",
    "nisa.select_reduce",
    "nisa.tensor_copy_predicated",
}


def _matmul(call: ast.Call, site: Site) -> Iterator[Finding]:
    if not is_device_call(call, site, "nisa.nc_matmul"):
        return
    if keyword(call, "psumAccumulateFlag"):
        yield site.finding(
            "NKI2031",
            call,
            "nc_matmul has no psumAccumulateFlag; the first write to a place overwrites, "
            "later ones add",
            edits=[site.without_keyword(call, "psumAccumulateFlag")],
        )
    elif given := keyword(call, "is_moving_zero"):
        yield site.finding(
            "NKI2031",
            call,
            "is_moving_zero is called is_moving_onezero",
            edits=[site.replace(given, f"is_moving_onezero={site.source(given.value)}")],
        )


def _ignored(call: ast.Call, site: Site) -> Iterator[Finding]:
    name = site.canonical(call.func)
    if name is None or not name.startswith("nisa.") or site.function_of(call) is None:
        return
    if name in _DST_IN_01 or not isinstance(site.index.parent(call), ast.Expr):
        return
    mask = keyword(call, "mask")
    if mask is not None and not _is_none(mask.value):
        yield site.finding(
            "NKI2032",
            call,
            f"{name} has no mask=; 2.27 ignored it, so the whole tile was computed",
            severity=Severity.WARNING,
            safety=Safety.MANUAL,
        )
        return
    stale = [k for k in ("dtype", "mask") if keyword(call, k)]
    if stale:
        yield site.finding(
            "NKI2032",
            call,
            f"{name} has no {'= and '.join(stale)}=; 2.27 ignored it, later versions reject it",
            edits=[site.without_keyword(call, *stale)],
        )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


HOOKS = {
    "NKI2031": Hooks(nodes=(ast.Call,), check=_matmul),
    "NKI2032": Hooks(nodes=(ast.Call,), check=_ignored),
}
