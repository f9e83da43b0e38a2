"""`register_move(dst, imm=c)`: the source is a register."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding
from nki_migrate.rules.arguments import is_device_call, keyword
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    given = keyword(call, "imm")
    instructions = site.index.alias_for("nisa")
    if given is None or instructions is None:
        return
    if is_device_call(call, site, "nisa.register_move"):
        text = f"{instructions}.register_alloc({site.source(given.value)})"
        yield site.finding(
            "NKI2009",
            given.value,
            "register_move copies a register; put the number into one first",
            edits=[site.replace(given, text if len(call.args) == 1 else f"src={text}")],
        )


HOOKS = Hooks(nodes=(ast.Call,), check=_check)
