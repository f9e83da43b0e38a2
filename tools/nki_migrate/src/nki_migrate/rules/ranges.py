"""Loops that the compiler unrolls."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from neuroncore.findings import Finding, Severity
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_DEPRECATED = {"nl.affine_range", "nl.sequential_range"}


def _check(node: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI1250: ranges of 0.3 to 0.5."""
    language = site.index.alias_for("nl")
    asked = "0.3" <= site.request.target <= "0.5"  # 0.2 has all three, in 0.6 they are `range`
    if site.canonical(node.func) not in _DEPRECATED or not asked or language is None:
        return
    said = f"`{site.source(node.func)}` is deprecated: every loop is unrolled"
    edits = [site.replace(node.func, f"{language}.static_range")]
    yield site.finding("NKI1250", node, said, severity=Severity.WARNING, edits=edits)


_RANGES = {"nl.affine_range", "nl.sequential_range", "nl.static_range"}
_GONE = ("multi_buffer", "precise_schedule", "directives")


def _check_range_keywords(node: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI1251: scheduling keywords of ranges."""
    if site.canonical(node.func) not in _RANGES:
        return
    gone = [k.arg for k in node.keywords if k.arg in _GONE]
    if gone:
        message = f"ranges take no {', '.join(f'`{k}=`' for k in gone if k)}"
        yield site.finding("NKI1251", node, message, edits=[site.without_keyword(node, *_GONE)])


_ORDER = ("start", "stop", "step")


def _check_ranges(rule: str, call: ast.Call, site: Site) -> Iterator[Finding]:
    """`affine_range`, `sequential_range`, `static_range` are `range`."""
    name = site.canonical(call.func)
    if name not in _RANGES or site.function_of(call) is None:
        return
    if not call.keywords:
        edits = [site.replace(call.func, "range")]
    elif (arguments := _by_position(call, site)) is not None:
        edits = [site.replace(call, f"range({', '.join(arguments)})")]
    else:
        yield site.warn(rule, call, f"{name} is deprecated, and range has no such arguments")
        return
    yield site.finding(
        rule, call, f"{name} is deprecated: range", severity=Severity.WARNING, edits=edits
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


HOOKS = {
    "NKI1250": Hooks(nodes=(ast.Call,), check=_check),
    "NKI1251": Hooks(nodes=(ast.Call,), check=_check_range_keywords),
    "NKI5004": Hooks(nodes=(ast.Call,), check=partial(_check_ranges, "NKI5004")),
    "NKI6008": Hooks(nodes=(ast.Call,), check=partial(_check_ranges, "NKI6008")),
}
