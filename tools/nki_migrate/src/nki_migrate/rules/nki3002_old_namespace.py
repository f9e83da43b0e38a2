"""`neuronxcc.nki` inside a kernel is a compile error from 0.4 on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety
from nki_migrate.rules.rule import Example, Rule, Site


def _check(node: ast.Attribute | ast.Name, site: Site) -> Iterator[Finding]:
    path = site.index.path(node) or ""
    if not path.startswith("neuronxcc.") or isinstance(site.index.parent(node), ast.Attribute):
        return
    if site.function_of(node) is not None:
        said = f"`{path}` in a kernel is a compile error: migrate it with --from 0.1"
        yield site.finding("NKI3002", node, said, safety=Safety.MANUAL)


_BAD = """
import nki
import neuronxcc.nki.language as old

@nki.jit
def kernel(x):
    return x.astype(old.float32)
"""
_TODO = """\
    # TODO(nki-migrate NKI3002): `neuronxcc.nki.language.float32` in a kernel is a compile error: \
migrate it with --from 0.1
"""

RULE = Rule(
    id="NKI3002",
    step=("0.3", "0.4"),
    klass="a",
    safety=Safety.MANUAL,
    title="`neuronxcc.nki` in a kernel is a compile error",
    page="""\
0.2 and 0.3 warned. Without `--from` the tool sees the old namespace and begins with the step
0.1 → 0.2, which rewrites imports and calls; this rule speaks where `--from` left that step out.
""",
    examples=(Example.of(_BAD, _BAD.replace("    return", f"{_TODO}    return")),),
    nodes=(ast.Attribute, ast.Name),
    check=_check,
)
