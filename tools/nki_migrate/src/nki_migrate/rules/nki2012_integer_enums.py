"""`engine=5`: enums are given by member."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety
from nki_migrate.rules.rule import Example, Rule, Site

# keyword → members by integer code (NKI API stubs of SDK 2.32)
_CODES = {
    "engine": ("unknown", "tensor", "scalar", "gpsimd", "dma", "vector", "sync"),
    "dge_mode": ("unknown", "swdge", "hwdge", "none"),
    "oob_mode": ("error", "skip"),
    "reduce_cmd": ("idle", "reset", "reduce", "reset_reduce", "load_reduce"),
}


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    name = site.canonical(call.func)
    instructions = site.index.alias_for("nisa")
    if name is None or not name.startswith("nisa.") or instructions is None:
        return
    if site.function_of(call) is None:
        return
    for given in call.keywords:
        member = _member(given)
        if member is not None:
            text = f"{instructions}.{given.arg}.{member}"
            yield site.finding(
                "NKI2012",
                given.value,
                f"{given.arg} is an enum, not a number: {text}",
                edits=[site.replace(given.value, text)],
            )


def _member(given: ast.keyword) -> str | None:
    members = _CODES.get(given.arg or "")
    if members is None or not isinstance(given.value, ast.Constant):
        return None
    code = given.value.value
    return members[code] if type(code) is int and code < len(members) else None


_BAD = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def copy(x):
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x, dge_mode=3)
    nisa.tensor_copy(dst=tile, src=tile, engine=5)
"""

RULE = Rule(
    id="NKI2012",
    step=("0.2", "0.3"),
    klass="a",
    safety=Safety.SAFE,
    title="enum arguments are members, not integers",
    page="""\
`engine`, `dge_mode`, `oob_mode` and `reduce_cmd` take members of the enums of `nki.isa`. The codes
are those of the API stubs: engine 0 unknown, 1 tensor, 2 scalar, 3 gpsimd, 4 dma, 5 vector, 6 sync.
""",
    examples=(
        Example.of(
            _BAD,
            _BAD.replace("dge_mode=3", "dge_mode=nisa.dge_mode.none").replace(
                "engine=5", "engine=nisa.engine.vector"
            ),
        ),
    ),
    nodes=(ast.Call,),
    check=_check,
)
