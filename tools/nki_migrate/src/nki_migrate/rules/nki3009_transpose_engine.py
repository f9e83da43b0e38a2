"""`nc_transpose(engine=…)` is honoured."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety, Severity
from nki_migrate.rules.arguments import is_device_call
from nki_migrate.rules.rule import Example, Rule, Site
from nki_migrate.rules.tiles import argument

_HARMLESS = {"nisa.engine.tensor", "nisa.engine.unknown"}


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    engine = argument(call, "engine", 2)
    if engine is None or not is_device_call(call, site, "nisa.nc_transpose"):
        return
    if site.canonical(engine) not in _HARMLESS:
        said = "nc_transpose heeds engine= from 0.4 on: the vector engine transposes 32x32 blocks"
        yield site.finding("NKI3009", call, said, severity=Severity.WARNING, safety=Safety.MANUAL)


_BAD = """
import nki
import nki.isa as nisa

@nki.jit
def turn(dst, tile):
    nisa.nc_transpose(dst, tile, engine=nisa.engine.vector)
"""

RULE = Rule(
    id="NKI3009",
    step=("0.3", "0.4"),
    klass="c",
    safety=Safety.MANUAL,
    title="`nc_transpose(engine=…)` is honoured",
    page="""\
Before 0.4 the compiler chose by the shape. Now the engine is the one given, with its limits: the
vector engine transposes blocks of at most 32 by 32, and writes to SBUF as well as PSUM. Code that
this tool wrote from 0.1, where the engine counted, is not reported.
""",
    examples=(Example.of(_BAD, _BAD),),
    nodes=(ast.Call,),
    check=_check,
    native=True,
)
