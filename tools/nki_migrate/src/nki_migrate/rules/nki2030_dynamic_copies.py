"""`tensor_copy_dynamic_src` and `_dst`: deprecated in 0.3, gone in 0.4."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from neuroncore.findings import Finding, Safety, Severity
from nki_migrate.rules.arguments import is_device_call
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_OLD = ("nisa.tensor_copy_dynamic_src", "nisa.tensor_copy_dynamic_dst")
_INSTEAD = "tensor_copy with `.ap(pattern, offset, scalar_offset=index, indirect_dim=d)`"


def _says(
    rule: str, what: str, severity: Severity
) -> Callable[[ast.Call, Site], Iterator[Finding]]:
    def check(call: ast.Call, site: Site) -> Iterator[Finding]:
        if is_device_call(call, site, *_OLD):
            name = site.canonical(call.func)
            said = f"`{name}` {what}: {_INSTEAD}"
            yield site.finding(rule, call, said, severity=severity, safety=Safety.MANUAL)

    return check


HOOKS = {
    "NKI2030": Hooks(nodes=(ast.Call,), check=_says("NKI2030", "is deprecated", Severity.WARNING)),
    "NKI3003": Hooks(nodes=(ast.Call,), check=_says("NKI3003", "is gone", Severity.ERROR)),
}
