"""NKI1145: the dtype of shared constants."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety
from nki_migrate.rules.rule import Example, Rule, Site

__all__ = ["RULE"]


def _check(node: ast.Call, site: Site) -> Iterator[Finding]:
    if site.canonical(node.func) != "nl.shared_constant" or site.request.target < "0.3":
        return
    given = len(node.args) > 1 or any(k.arg == "dtype" for k in node.keywords)
    if given and site.function_of(node) is not None:
        message = "`nl.shared_constant` takes no dtype from 0.3 on: cast the array on the host"
        yield site.finding("NKI1145", node, message, safety=Safety.MANUAL)


_BAD = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np

@nki.jit
def kernel(x):
    identity = nl.shared_constant(np.identity(128), dtype=nl.bfloat16)
"""
_GOOD = """
import nki
import nki.language as nl
import numpy as np

@nki.jit
def kernel(x):
    # TODO(nki-migrate NKI1145): `nl.shared_constant` takes no dtype from 0.3 on: cast the array on the host
    identity = nl.shared_constant(np.identity(128), dtype=nl.bfloat16)
"""  # noqa: E501

RULE = Rule(
    id="NKI1145",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.MANUAL,
    title="`nl.shared_constant` takes no dtype from 0.3 on",
    page="""\
Old: `nl.shared_constant(array, dtype=nl.bfloat16)`

New: `nl.shared_constant(array)` with an array of that dtype; by hand
""",
    examples=(Example.of(_BAD, _GOOD, target="0.3"),),
    nodes=(ast.Call,),
    check=_check,
)
