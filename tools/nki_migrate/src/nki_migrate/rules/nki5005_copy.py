"""`nl.copy` copies on the vector engine."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety, Severity
from nki_migrate.rules.arguments import is_device_call
from nki_migrate.rules.rule import Example, Rule, Site


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    if is_device_call(call, site, "nl.copy"):
        said = "nl.copy is bit exact from 0.6 on, where it went through float32 before"
        yield site.finding("NKI5005", call, said, severity=Severity.WARNING, safety=Safety.MANUAL)


_BAD = """
import nki
import nki.language as nl

@nki.jit
def twice(x):
    tile = nl.load(x)
    return nl.copy(tile)
"""

RULE = Rule(
    id="NKI5005",
    step=("0.5", "0.6"),
    klass="c",
    safety=Safety.MANUAL,
    title="`nl.copy` is bit exact",
    page="""\
Up to 0.5 the scalar engine copied through float32, from SBUF to SBUF only. From 0.6 on the vector
engine copies, exactly where both sides have one dtype, and reads PSUM. Integers beyond 2**24 were
rounded before.
""",
    examples=(Example.of(_BAD, _BAD),),
    nodes=(ast.Call,),
    check=_check,
)
