"""NKI1251: scheduling keywords of ranges."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_RANGES = {"nl.affine_range", "nl.sequential_range", "nl.static_range"}
_GONE = ("multi_buffer", "precise_schedule", "directives")


def _check(node: ast.Call, site: Site) -> Iterator[Finding]:
    if site.canonical(node.func) not in _RANGES:
        return
    gone = [k.arg for k in node.keywords if k.arg in _GONE]
    if gone:
        message = f"ranges take no {', '.join(f'`{k}=`' for k in gone if k)}"
        yield site.finding("NKI1251", node, message, edits=[site.without_keyword(node, *_GONE)])


HOOKS = Hooks(nodes=(ast.Call,), check=_check)
