"""The bracket of a launch is the number of cores."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety, Severity
from nki_migrate.rules.rule import Example, Rule, Site

_CORES = (1, 2)  # logical cores of one launch on current devices (NKI migration guide)


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    launch = next((x for x in site.index.launches if x.call is call), None)
    if launch is None or not launch.grid:
        return
    sizes = [s.value if isinstance(s, ast.Constant) else None for s in launch.grid]
    if len(sizes) > 1 or (sizes[0] is not None and sizes[0] not in _CORES):
        said = "a grid that is not the number of cores (1 or 2) becomes an error"
        yield site.finding("NKI4003", call, said, severity=Severity.WARNING, safety=Safety.MANUAL)


_BAD = """
import nki
import nki.language as nl

@nki.jit
def kernel(x):
    return x

def model(x):
    return kernel[4, 2](x)
"""

RULE = Rule(
    id="NKI4003",
    step=("0.4", "0.5"),
    klass="c",
    safety=Safety.MANUAL,
    title="the grid of a launch is the number of cores",
    page="""\
0.5 announces that other grids will be refused. Further axes become loops in the kernel, as NKI1118
does for kernels of 0.1. A grid that is a name is not reported.
""",
    examples=(Example.of(_BAD, _BAD),),
    nodes=(ast.Call,),
    check=_check,
)
