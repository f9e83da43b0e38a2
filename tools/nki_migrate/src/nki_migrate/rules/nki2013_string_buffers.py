"""`buffer="sbuf"`: buffers are objects of `nki.language`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety
from nki_migrate.rules.arguments import keyword
from nki_migrate.rules.rule import Example, Rule, Site

_BUFFERS = ("sbuf", "psum", "hbm", "private_hbm", "shared_hbm")


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    name = site.canonical(call.func)
    given = keyword(call, "buffer")
    language = site.index.alias_for("nl")
    if name is None or not name.startswith("nl.") or given is None or language is None:
        return
    if site.function_of(call) is None or not isinstance(given.value, ast.Constant):
        return
    if given.value.value in _BUFFERS:
        buffer = f"{language}.{given.value.value}"
        yield site.finding(
            "NKI2013",
            given.value,
            f"buffers are objects, not strings: {buffer}",
            edits=[site.replace(given.value, buffer)],
        )


_BAD = """
import nki
import nki.language as nl

@nki.jit
def empty(x):
    return nl.ndarray(x.shape, dtype=x.dtype, buffer="shared_hbm")
"""

RULE = Rule(
    id="NKI2013",
    step=("0.2", "0.3"),
    klass="a",
    safety=Safety.SAFE,
    title="string buffers become `nl.sbuf`, `nl.psum`, `nl.hbm`, …",
    page="From 0.3 a string is refused as a buffer.\n",
    examples=(Example.of(_BAD, _BAD.replace('"shared_hbm"', "nl.shared_hbm")),),
    nodes=(ast.Call,),
    check=_check,
)
