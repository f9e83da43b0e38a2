"""Kernels of 0.2 and of 0.3 do not work in one model."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety, Severity
from nki_migrate.rules.rule import Example, Rule, Site


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    foreign = next((x for x in site.index.foreign_launches if x.call is call), None)
    if foreign is not None and site.index.functions:
        said = f"`{foreign.kernel}` has to move to 0.3 with the kernels of this file"
        yield site.finding("NKI2035", call, said, severity=Severity.NOTE, safety=Safety.MANUAL)


_BAD = """
import nki
import nki.language as nl
from others import scaled

@nki.jit
def doubled(x):
    return x

def model(x):
    return scaled[2](doubled(x))
"""

RULE = Rule(
    id="NKI2035",
    step=("0.2", "0.3"),
    klass="c",
    safety=Safety.MANUAL,
    title="kernels of 0.2 and of 0.3 do not work in one model",
    page="""\
Migrate all kernels of a model in one run. A file that has kernels and launches imported ones gets a
note for each of those; it asks for nothing where they are migrated as well.
""",
    examples=(Example.of(_BAD, _BAD),),
    nodes=(ast.Call,),
    check=_check,
)
