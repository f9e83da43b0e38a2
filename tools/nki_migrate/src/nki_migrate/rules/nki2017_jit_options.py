"""`nki.jit(platform_target=…)` and `nki.jit(mode=…)`: options that went away."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding
from nki_migrate.rules.arguments import keyword
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_RULE_OF = {"platform_target": "NKI2017", "mode": "NKI2018"}


def _without(name: str, said: str, call: ast.Call, site: Site) -> Iterator[Finding]:
    if site.canonical(call.func) != "nki.jit" or keyword(call, name) is None:
        return
    # Both options may be there at once: their findings share one edit, of what is selected.
    gone = [n for n, rule in _RULE_OF.items() if keyword(call, n) and site.request.selects(rule)]
    is_last = len(call.keywords) == len(gone) and not call.args
    edit = (
        site.replace(call, site.source(call.func)) if is_last else site.without_keyword(call, *gone)
    )
    yield site.finding(_RULE_OF[name], call, said, edits=[edit])


_PLATFORM = (
    "nki.jit has no platform_target; choose the device with the environment variable "
    "NEURON_PLATFORM_TARGET_OVERRIDE"
)
_MODE = "nki.jit has no mode; it finds the framework by itself"


HOOKS = {
    "NKI2017": Hooks(
        nodes=(ast.Call,),
        check=lambda call, site: _without("platform_target", _PLATFORM, call, site),
    ),
    "NKI2018": Hooks(
        nodes=(ast.Call,), check=lambda call, site: _without("mode", _MODE, call, site)
    ),
}
