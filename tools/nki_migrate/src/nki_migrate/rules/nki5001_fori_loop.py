"""`for i in nl.dynamic_range(…)` becomes `nl.fori_loop`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Edit, Finding, Safety, Severity
from nki_migrate.rules.loop_bodies import call_after, inside, is_device_loop, name_of_body, obstacle
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site


def _check(loop: ast.For, site: Site) -> Iterator[Finding]:
    if not is_device_loop(loop, site) or site.function_of(loop) is None:
        return
    assert isinstance(loop.iter, ast.Call)
    bounds = [site.source(argument) for argument in loop.iter.args]
    rule = "NKI5003" if len(bounds) == 1 else "NKI5001"
    why = _obstacle(loop, site)
    if why is not None:
        yield site.finding(
            rule,
            loop.iter,
            f"nl.dynamic_range is deprecated: nl.fori_loop; {why}",
            severity=Severity.WARNING,
            safety=Safety.MANUAL,
        )
        return
    yield site.finding(
        rule,
        loop.iter,
        "nl.dynamic_range is deprecated: nl.fori_loop",
        severity=Severity.WARNING,
        edits=_edits(loop, bounds, site),
    )


def _obstacle(loop: ast.For, site: Site) -> str | None:
    """Why the body cannot become a function, or None when it can."""
    call = loop.iter
    assert isinstance(call, ast.Call)
    if call.keywords or not 1 <= len(call.args) <= 3:
        return "its bounds are not plain positional arguments"
    if len(call.args) == 3 and not _is_positive(call.args[2]):
        return "the step has to be a positive number"
    if not isinstance(loop.target, ast.Name) or loop.orelse:
        return "the loop has an else part or several targets"
    if any(_counts_with(node, loop.target.id) for node in inside(loop)):
        return f"the body calculates with {loop.target.id}, which becomes a register"
    return obstacle(loop, site)


def _is_positive(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value > 0


def _counts_with(node: ast.AST, name: str) -> bool:
    match node:
        case ast.BinOp(left=left, right=right):
            operands = [left, right]
        case ast.UnaryOp(operand=operand):
            operands = [operand]
        case ast.AugAssign(value=value):
            operands = [value]
        case _:
            operands = []
    return any(isinstance(part, ast.Name) and part.id == name for part in operands)


def _edits(loop: ast.For, bounds: list[str], site: Site) -> list[Edit]:
    """The header becomes a `def`; the call follows the last line of the body."""
    source = site.index.source
    assert isinstance(loop.target, ast.Name) and isinstance(loop.iter, ast.Call)
    name = name_of_body(loop, site)
    line, column, _, _ = source.span(loop)
    _, _, end_line, end_column = source.span(loop.iter)
    language = site.index.alias_for("nl")
    low, high = ("0", bounds[0]) if len(bounds) == 1 else bounds[:2]
    step = f", step={bounds[2]}" if len(bounds) == 3 else ""
    after = call_after(loop, f"{language}.fori_loop({low}, {high}, {name}{step})", site)
    return [Edit(line, column, end_line, end_column, f"def {name}({loop.target.id})"), after]


HOOKS = Hooks(nodes=(ast.For,), check=_check)
