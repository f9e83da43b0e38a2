"""`buffer="sbuf"`: buffers are objects of `nki.language`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding
from nki_migrate.rules.arguments import keyword
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_BUFFERS = ("sbuf", "psum", "hbm", "private_hbm", "shared_hbm")


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    name = site.canonical(call.func)
    given = keyword(call, "buffer")
    language = site.index.alias_for("nl")
    if name is None or not name.startswith("nl.") or given is None or language is None:
        return
    if site.function_of(call) is None or not isinstance(given.value, ast.Constant):
        return
    if given.value.value in _BUFFERS:
        buffer = f"{language}.{given.value.value}"
        yield site.finding(
            "NKI2013",
            given.value,
            f"buffers are objects, not strings: {buffer}",
            edits=[site.replace(given.value, buffer)],
        )


HOOKS = Hooks(nodes=(ast.Call,), check=_check)
