"""NKI1189: engines and modes are members of enums."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding
from nki_migrate.rules.enums import members_for_codes
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_ENGINES = ("tensor", "vector", "scalar", "gpsimd", "unknown", "dma")
_ALIASES = {f"nisa.{name}_engine": f"engine.{name}" for name in _ENGINES}


def _check(node: ast.expr, site: Site) -> Iterator[Finding]:
    if isinstance(node, ast.Call):
        yield from members_for_codes("NKI1189", node, site)
        return
    member = _ALIASES.get(site.canonical(node) or "")
    instructions = site.index.alias_for("nisa")
    if member is None or instructions is None or site.function_of(node) is None:
        return
    if isinstance(site.index.parent(node), ast.Attribute):
        return  # nisa.dma_engine.dma, as 0.3 has it
    text = f"{instructions}.{member}"
    said = f"engines are members of an enum: `{text}`"
    yield site.finding("NKI1189", node, said, edits=[site.replace(node, text)])


HOOKS = Hooks(nodes=(ast.Call, ast.Attribute, ast.Name), check=_check)
