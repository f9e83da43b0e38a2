"""NKI1260: parameters of `nl.device_print`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Edit, Finding, Safety
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_RENAMED = {"prefix": "print_prefix", "x": "tensor"}


def _check(node: ast.Call, site: Site) -> Iterator[Finding]:
    if site.canonical(node.func) != "nl.device_print":
        return
    if any(k.arg == "mask" for k in node.keywords):
        message = "`nl.device_print` takes no mask: print a slice"
        yield site.finding("NKI1260", node, message, safety=Safety.MANUAL)
        return
    edits = [_renamed(k, site) for k in node.keywords if k.arg in _RENAMED]
    if edits:
        message = "parameters of `nl.device_print` are `print_prefix` and `tensor`"
        yield site.finding("NKI1260", node, message, edits=edits)


def _renamed(keyword: ast.keyword, site: Site) -> Edit:
    assert keyword.arg is not None
    return site.replace(keyword, f"{_RENAMED[keyword.arg]}={site.source(keyword.value)}")


HOOKS = Hooks(nodes=(ast.Call,), check=_check)
