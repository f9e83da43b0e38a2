"""Keywords that SDK 2.27 knew or silently ignored."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety, Severity
from nki_migrate.rules.arguments import is_device_call, keyword
from nki_migrate.rules.rule import Example, Rule, Site

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
            f"{name} has no {'= and '.join(stale)}=; 2.27 ignored it, later versions refuse it",
            edits=[site.without_keyword(call, *stale)],
        )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


_HEAD = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def product(a, b):
    acc = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
"""

RULES = (
    Rule(
        id="NKI2031",
        step=("0.2", "0.3"),
        klass="a",
        safety=Safety.SAFE,
        title="keywords of `nc_matmul` that only SDK 2.27 had",
        page="""\
`psumAccumulateFlag` goes: a first write to a place of PSUM overwrites, later writes add.
`is_moving_zero` was renamed `is_moving_onezero` in 2.28.
""",
        examples=(
            Example.of(
                _HEAD + "    nisa.nc_matmul(acc, a, b, psumAccumulateFlag=3)\n",
                _HEAD + "    nisa.nc_matmul(acc, a, b)\n",
            ),
            Example.of(
                _HEAD + "    nisa.nc_matmul(acc, a, b, is_moving_zero=True)\n",
                _HEAD + "    nisa.nc_matmul(acc, a, b, is_moving_onezero=True)\n",
            ),
        ),
        nodes=(ast.Call,),
        check=_matmul,
    ),
    Rule(
        id="NKI2032",
        step=("0.2", "0.3"),
        klass="a",
        safety=Safety.SAFE,
        title="`dtype=` and `mask=` left over from 0.1 on destination-first calls",
        page="""\
SDK 2.27 silently ignored unknown keywords, so such files exist. The result has the dtype of `dst`;
a real mask was never applied, which is yours to judge.
""",
        examples=(
            Example.of(
                _HEAD + "    nisa.tensor_copy(a, acc, dtype=nl.bfloat16)\n",
                _HEAD + "    nisa.tensor_copy(a, acc)\n",
            ),
        ),
        nodes=(ast.Call,),
        check=_ignored,
    ),
)
