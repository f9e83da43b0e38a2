"""`nl.rsqrt` does not read PSUM from 0.5 on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety
from nki_migrate.rules.arguments import is_device_call
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site
from nki_migrate.rules.tiles import allocation_of, base_of, lines_of


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    if not is_device_call(call, site, "nl.rsqrt") or not call.args:
        return
    made = allocation_of(call.args[0], site)
    if made is None or made.buffer != "nl.psum":
        return
    said = "nl.rsqrt does not read PSUM from 0.5 on: an activation does"
    text = _activation(call, site)
    edits = [site.replace(site.index.parent(call), text)] if text is not None else []  # type: ignore[arg-type]
    safety = Safety.SAFE if edits else Safety.MANUAL
    yield site.finding("NKI4001", call, said, edits=edits, safety=safety)


def _activation(call: ast.Call, site: Site) -> str | None:
    """Allocation and activation for `y = nl.rsqrt(x)` of a whole tile; None for other forms."""
    statement, source = site.index.parent(call), call.args[0]
    language, instructions = site.index.alias_for("nl"), site.index.alias_for("nisa")
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or call.keywords:
        return None
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or not isinstance(source, ast.Name) or len(call.args) > 1:
        return None
    if target.id == getattr(base_of(source), "id", None) or not (language and instructions):
        return None
    line, column, end_line, _ = site.index.source.span(statement)
    if line != end_line or site.index.source.lines[line - 1][: column - 1].strip():
        return None
    x, y = source.id, target.id
    return lines_of(
        site,
        statement,
        f"{y} = {language}.ndarray({x}.shape, dtype={x}.dtype, buffer={language}.sbuf)",
        f"{instructions}.activation(dst={y}, op={language}.rsqrt, data={x})",
    )


HOOKS = Hooks(nodes=(ast.Call,), check=_check)
