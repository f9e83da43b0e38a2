"""Loops of the device, whose body becomes a function (`nl.fori_loop`, `nl.while_loop`)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety, Severity
from nki_migrate.rules.loop_bodies import Outcome, converted_loops
from nki_migrate.rules.loop_state import Kind
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site
from nki_migrate.rules.tiles import argument

_WRITERS = {"nisa.register_move", "nisa.register_load"}


def _check(loop: ast.For, site: Site) -> Iterator[Finding]:
    """NKI3006: The variable of `nl.dynamic_range` is not written to."""
    call, target = loop.iter, loop.target
    if not isinstance(call, ast.Call) or site.canonical(call.func) != "nl.dynamic_range":
        return
    if site.function_of(loop) is None or not isinstance(target, ast.Name):
        return
    body = (node for statement in loop.body for node in ast.walk(statement))
    if any(_writes(node, target.id, site) for node in body):
        said = f"`{target.id}` is written to, and counts the loop: an error from 0.4 on"
        yield site.manual("NKI3006", target, said)


def _writes(node: ast.AST, name: str, site: Site) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name and not isinstance(node.ctx, ast.Load)
    if not isinstance(node, ast.Call) or site.canonical(node.func) not in _WRITERS:
        return False
    dst = argument(node, "dst", 0)
    return isinstance(dst, ast.Name) and dst.id == name


_DEPRECATED = {
    ast.For: "nl.dynamic_range is deprecated: nl.fori_loop",
    ast.While: "a while loop over a register is deprecated: nl.while_loop",
}
_REMOVED = {
    ast.For: "nl.dynamic_range is removed: nl.fori_loop",
    ast.While: "a while loop over a register is removed: nl.while_loop",
}
_LAST_WITH_LOOPS = "0.6"
"""The last version that has these loops."""


def _check_deprecated(loop: ast.For | ast.While, site: Site) -> Iterator[Finding]:
    """NKI5001, NKI5002, NKI5003: device loops of 0.6 take a function.

    What cannot become one is still valid in 0.6: it is reported for that target, and otherwise by
    the step that removes it.
    """
    goes_on = site.request.target != _LAST_WITH_LOOPS
    outcome = converted_loops(site.index, goes_on).get(loop)
    if outcome is None or (outcome.reason and goes_on):
        return
    rule = "NKI5002" if isinstance(loop, ast.While) else "NKI5001"
    if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) and len(loop.iter.args) == 1:
        rule = "NKI5003"
    said = _REMOVED if goes_on else _DEPRECATED
    yield _finding(rule, loop, outcome, said[type(loop)], Severity.WARNING, site)


_REASONS = {Kind.STATE: "NKI6003", Kind.TENSOR: "NKI6004"}
_CHANGES = {Kind.TENSOR: "NKI6004", Kind.VARIABLE: "NKI6005"}


def _check_removed(loop: ast.For | ast.While, site: Site) -> Iterator[Finding]:
    """NKI6001 to NKI6005: device loops of 0.7 take a function."""
    outcome = converted_loops(site.index, True).get(loop)
    if outcome is None:
        return
    rule = "NKI6002" if isinstance(loop, ast.While) else "NKI6001"
    rule = _REASONS.get(outcome.kind, rule) if outcome.reason else rule
    yield _finding(rule, loop, outcome, _REMOVED[type(loop)], Severity.ERROR, site)
    for kind, said in outcome.changes:
        if kind in _CHANGES:
            yield site.finding(_CHANGES[kind], _head(loop), said, edits=outcome.edits)


def _head(loop: ast.For | ast.While) -> ast.expr:
    return loop.iter if isinstance(loop, ast.For) else loop.test


def _finding(
    rule: str,
    loop: ast.For | ast.While,
    outcome: Outcome,
    message: str,
    severity: Severity,
    site: Site,
) -> Finding:
    head = _head(loop)
    if outcome.reason:
        message, safety = f"{message}; {outcome.reason}", Safety.MANUAL
        return site.finding(rule, head, message, severity=severity, safety=safety)
    basis = tuple(said for kind, said in outcome.changes if kind is Kind.STATE)
    if isinstance(loop, ast.While):
        basis = (f"`{site.source(loop.test)}` is a register", *basis)
    return site.finding(rule, head, message, severity=severity, edits=outcome.edits, basis=basis)


HOOKS = {
    "NKI3006": Hooks(nodes=(ast.For,), check=_check),
    "NKI5001": Hooks(nodes=(ast.For,), check=_check_deprecated),
    "NKI5002": Hooks(nodes=(ast.While,), check=_check_deprecated),
    "NKI6001": Hooks(nodes=(ast.For, ast.While), check=_check_removed),
}
