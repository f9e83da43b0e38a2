"""`nki.jit(platform_target=…)` and `nki.jit(mode=…)`: options that went away."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety
from nki_migrate.rules.arguments import keyword
from nki_migrate.rules.rule import Example, Rule, Site

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

RULES = (
    Rule(
        id="NKI2017",
        step=("0.2", "0.3"),
        klass="a",
        safety=Safety.SAFE,
        title="`nki.jit(platform_target=…)` is gone",
        page="""\
The target is no longer part of the kernel: set `NEURON_PLATFORM_TARGET_OVERRIDE=trn2`. Left in
place the keyword is an error.
""",
        examples=(
            Example.of(
                """
                import nki

                @nki.jit(platform_target="trn2", mode="jax")
                def identity(x):
                    return x
                """,
                """
                import nki

                @nki.jit
                def identity(x):
                    return x
                """,
            ),
        ),
        nodes=(ast.Call,),
        check=lambda call, site: _without("platform_target", _PLATFORM, call, site),
    ),
    Rule(
        id="NKI2018",
        step=("0.2", "0.3"),
        klass="a",
        safety=Safety.SAFE,
        title="`nki.jit(mode=…)` is gone",
        page="A kernel is called from PyTorch, JAX or NumPy the same way.\n",
        examples=(
            Example.of(
                """
                import nki

                @nki.jit(mode="jax")
                def identity(x):
                    return x
                """,
                """
                import nki

                @nki.jit
                def identity(x):
                    return x
                """,
            ),
        ),
        nodes=(ast.Call,),
        check=lambda call, site: _without("mode", _MODE, call, site),
    ),
)
