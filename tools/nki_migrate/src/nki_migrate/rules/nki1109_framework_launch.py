"""NKI1109: launchers of the frameworks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_LAUNCHERS = {"torch_neuronx.nki_jit", "jax_neuronx.nki_call"}


def _check(node: ast.expr, site: Site) -> Iterator[Finding]:
    name = site.canonical(node)
    if name in _LAUNCHERS:
        message = (
            f"`{name}` is gone: decorate with `nki.jit`, call the kernel, take what it returns"
        )
        yield site.finding("NKI1109", node, message, safety=Safety.MANUAL)


HOOKS = Hooks(nodes=(ast.Attribute, ast.Name), check=_check)
