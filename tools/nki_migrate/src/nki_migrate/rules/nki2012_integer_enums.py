"""`engine=5`: enums are given by member."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety
from nki_migrate.rules.enums import members_for_codes
from nki_migrate.rules.rule import Example, Rule, Site


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    yield from members_for_codes("NKI2012", call, site)


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
