"""`affine_range`, `sequential_range`, `static_range` are `range`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety, Severity
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_RANGES = {"nl.affine_range", "nl.sequential_range", "nl.static_range"}
_ORDER = ("start", "stop", "step")


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    name = site.canonical(call.func)
    if name not in _RANGES or site.function_of(call) is None:
        return
    if not call.keywords:
        edits = [site.replace(call.func, "range")]
    elif (arguments := _by_position(call, site)) is not None:
        edits = [site.replace(call, f"range({', '.join(arguments)})")]
    else:
        yield site.finding(
            "NKI5004",
            call,
            f"{name} is deprecated, and range has no such arguments",
            severity=Severity.WARNING,
            safety=Safety.MANUAL,
        )
        return
    yield site.finding(
        "NKI5004", call, f"{name} is deprecated: range", severity=Severity.WARNING, edits=edits
    )


def _by_position(call: ast.Call, site: Site) -> list[str] | None:
    """start, stop, step as texts in that order; None when the keywords are others."""
    given = dict(zip(_ORDER, call.args, strict=False))
    for entry in call.keywords:
        if entry.arg not in _ORDER or entry.arg in given:
            return None
        given[entry.arg] = entry.value
    if "start" in given and "stop" not in given:
        return [site.source(given["start"])] if "step" not in given else None
    start = [site.source(given["start"])] if "start" in given else ["0"]
    step = [site.source(given["step"])] if "step" in given else []
    return [*start, site.source(given["stop"]), *step] if "stop" in given else None


HOOKS = Hooks(nodes=(ast.Call,), check=_check)
