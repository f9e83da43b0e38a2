"""Enum arguments: members for integers and strings."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding
from nki_migrate.rules.site import Site

# keyword → members by integer code (NKI API stubs of SDK 2.32)
_CODES = {
    "engine": ("unknown", "tensor", "scalar", "gpsimd", "dma", "vector", "sync"),
    "dge_mode": ("unknown", "swdge", "hwdge", "none"),
    "oob_mode": ("error", "skip"),
    "reduce_cmd": ("idle", "reset", "reduce", "reset_reduce", "load_reduce"),
}


def members_for_codes(rule: str, call: ast.Call, site: Site) -> Iterator[Finding]:
    """Findings of a rule for enum arguments of device calls that are given as 2 or "hwdge"."""
    name = site.canonical(call.func)
    instructions = site.index.alias_for("nisa")
    if name is None or not name.startswith("nisa.") or instructions is None:
        return
    if site.function_of(call) is None:
        return
    for given in call.keywords:
        member = _member(given)
        if member is not None:
            text = f"{instructions}.{given.arg}.{member}"
            kind = "string" if isinstance(given.value.value, str) else "number"  # type: ignore[attr-defined]
            said = f"{given.arg} is an enum, not a {kind}: {text}"
            yield site.finding(rule, given.value, said, edits=[site.replace(given.value, text)])


def _member(given: ast.keyword) -> str | None:
    members = _CODES.get(given.arg or "")
    if members is None or not isinstance(given.value, ast.Constant):
        return None
    code = given.value.value
    if isinstance(code, str):
        return code if code in members else None
    return members[code] if type(code) is int and 0 <= code < len(members) else None
