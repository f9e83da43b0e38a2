"""`tile_size.total_available_sbuf_size` has a new name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Edit, Finding
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_OLD, _NEW = "total_available_sbuf_size", "sbuf_fmax_bytes"


def _check(node: ast.Attribute, site: Site) -> Iterator[Finding]:
    if site.canonical(node) == f"nl.tile_size.{_OLD}":
        _, _, line, column = site.index.source.span(node)
        edit = Edit(line, column - len(_OLD), line, column, _NEW)
        yield site.finding("NKI3004", node, f"{_OLD} is called {_NEW}", edits=[edit])


HOOKS = Hooks(nodes=(ast.Attribute,), check=_check)
