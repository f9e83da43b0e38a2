"""`tile_size.total_available_sbuf_size` has a new name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Edit, Finding, Safety
from nki_migrate.rules.rule import Example, Rule, Site

_OLD, _NEW = "total_available_sbuf_size", "sbuf_fmax_bytes"


def _check(node: ast.Attribute, site: Site) -> Iterator[Finding]:
    if site.canonical(node) == f"nl.tile_size.{_OLD}":
        _, _, line, column = site.index.source.span(node)
        edit = Edit(line, column - len(_OLD), line, column, _NEW)
        yield site.finding("NKI3004", node, f"{_OLD} is called {_NEW}", edits=[edit])


_BAD = """
import nki
import nki.language as nl

@nki.jit
def widest(x):
    return nl.tile_size.total_available_sbuf_size // 4
"""

RULE = Rule(
    id="NKI3004",
    step=("0.3", "0.4"),
    klass="a",
    safety=Safety.SAFE,
    title="`tile_size.total_available_sbuf_size` is `tile_size.sbuf_fmax_bytes`",
    page="""\
Same value, usable bytes of one partition.

**Trap.** `tile_size.sbuf_size_bytes` sounds alike and is the whole SBUF.
""",
    examples=(Example.of(_BAD, _BAD.replace(_OLD, _NEW)),),
    nodes=(ast.Attribute,),
    check=_check,
)
