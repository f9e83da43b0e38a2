"""`register_move(dst, imm=c)`: the source is a register."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety
from nki_migrate.rules.arguments import is_device_call, keyword
from nki_migrate.rules.rule import Example, Rule, Site


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    given = keyword(call, "imm")
    instructions = site.index.alias_for("nisa")
    if given is None or instructions is None:
        return
    if is_device_call(call, site, "nisa.register_move"):
        text = f"{instructions}.register_alloc({site.source(given.value)})"
        yield site.finding(
            "NKI2009",
            given.value,
            "register_move copies a register; put the number into one first",
            edits=[site.replace(given, text if len(call.args) == 1 else f"src={text}")],
        )


_BAD = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def reset(x):
    register = nisa.register_alloc(0)
    nisa.register_move(register, imm=7)
"""

RULE = Rule(
    id="NKI2009",
    step=("0.2", "0.3"),
    klass="a",
    safety=Safety.SAFE,
    title="`register_move` takes a register, not `imm=`",
    page="""\
0.2: `(dst, imm)`; 0.3: `(dst, src)`. The migration guide forbids a number as `src`, the stub allows
it; a register is right under both readings.
""",
    examples=(Example.of(_BAD, _BAD.replace("imm=7", "nisa.register_alloc(7)")),),
    nodes=(ast.Call,),
    check=_check,
)
