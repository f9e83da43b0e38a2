"""`for i in nl.dynamic_range(…)` becomes `nl.fori_loop`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Edit, Finding, Safety, Severity
from nki_migrate.rules.rule import Example, Rule, Site

_JUMPS = (ast.Break, ast.Continue, ast.Return, ast.Yield, ast.YieldFrom, ast.Nonlocal, ast.Global)


def _check(loop: ast.For, site: Site) -> Iterator[Finding]:
    if not _is_dynamic(loop, site) or site.function_of(loop) is None:
        return
    assert isinstance(loop.iter, ast.Call)
    bounds = [site.source(argument) for argument in loop.iter.args]
    rule = "NKI5003" if len(bounds) == 1 else "NKI5001"
    obstacle = _obstacle(loop, site)
    if obstacle is not None:
        yield site.finding(
            rule,
            loop.iter,
            f"nl.dynamic_range is deprecated: nl.fori_loop; {obstacle}",
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
    inside = [node for statement in loop.body for node in ast.walk(statement)]
    if any(isinstance(node, _JUMPS) for node in inside):
        return "the body leaves the loop or a name's scope"
    if any(_is_no_reorder(node, site) for node in site.index.ancestors(loop)):
        return "it stands inside no_reorder()"
    escaping = _assigned(inside) & _used_outside(loop, site)
    if escaping:
        return f"the body rebinds {', '.join(sorted(escaping))}, used outside"
    if any(_counts_with(node, loop.target.id) for node in inside):
        return f"the body calculates with {loop.target.id}, which becomes a register"
    return None


def _is_positive(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value > 0


def _is_no_reorder(node: ast.AST, site: Site) -> bool:
    return isinstance(node, ast.With) and any(
        isinstance(item.context_expr, ast.Call)
        and site.canonical(item.context_expr.func) == "nl.no_reorder"
        for item in node.items
    )


def _assigned(nodes: list[ast.AST]) -> set[str]:
    return {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}


def _used_outside(loop: ast.For, site: Site) -> set[str]:
    function = site.function_of(loop)
    assert function is not None
    inside = {id(node) for node in ast.walk(loop)}
    names = (n for n in ast.walk(function.node) if isinstance(n, ast.Name) and id(n) not in inside)
    return {n.id for n in names} | set(function.parameters)


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
    name = _name_of_body(loop, site)
    line, column, _, _ = source.span(loop)
    _, _, end_line, end_column = source.span(loop.iter)
    language = site.index.alias_for("nl")
    low, high = ("0", bounds[0]) if len(bounds) == 1 else bounds[:2]
    step = f", step={bounds[2]}" if len(bounds) == 3 else ""
    call = f"{language}.fori_loop({low}, {high}, {name}{step})"
    last = source.span(loop.body[-1])[2]
    text = source.lines[last - 1].rstrip("\r\n")
    after = Edit(last, len(text) + 1, last, len(text) + 1, _line(site, line, call))
    return [Edit(line, column, end_line, end_column, f"def {name}({loop.target.id})"), after]


def _line(site: Site, line: int, text: str) -> str:
    return f"{site.index.source.newline}{site.index.source.indentation(line)}{text}"


def _name_of_body(loop: ast.For, site: Site) -> str:
    """`body`, or `body_2` for the second such loop of the file, …; never a name in use."""
    nodes = [*ast.walk(site.index.source.tree)]
    loops = [n for n in nodes if isinstance(n, ast.For) and _is_dynamic(n, site)]
    number = sorted(n.lineno for n in loops).index(loop.lineno) + 1
    taken = {n.id for n in nodes if isinstance(n, ast.Name)}
    taken |= {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
    stem = "body" if number == 1 else f"body_{number}"
    return next(
        name for name in (stem + "_" * i for i in range(len(taken) + 1)) if name not in taken
    )


def _is_dynamic(loop: ast.For, site: Site) -> bool:
    call = loop.iter
    return isinstance(call, ast.Call) and site.canonical(call.func) == "nl.dynamic_range"


_HEAD = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def copy(x, first, last):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
"""
_BAD = (
    _HEAD
    + """\
    for i in nl.dynamic_range(first, last, 2):
        nisa.dma_copy(dst=out[nl.ds(i, 2)], src=x[nl.ds(i, 2)])
    return out
"""
)
_GOOD = (
    _HEAD
    + """\
    def body(i):
        nisa.dma_copy(dst=out[nl.ds(i, 2)], src=x[nl.ds(i, 2)])
    nl.fori_loop(first, last, body, step=2)
    return out
"""
)
_PAGE = """\
The body becomes a function of the index. It must not jump out, rebind names that are used outside,
or calculate with the index (a register); where it does, a TODO says so.
"""

RULES = (
    Rule(
        id="NKI5001",
        step=("0.5", "0.6"),
        klass="b",
        safety=Safety.SAFE,
        title="`nl.dynamic_range` loops become `nl.fori_loop`",
        page=_PAGE,
        examples=(Example.of(_BAD, _GOOD),),
        nodes=(ast.For,),
        check=_check,
    ),
    Rule(
        id="NKI5003",
        step=("0.5", "0.6"),
        klass="b",
        safety=Safety.SAFE,
        title="`nl.dynamic_range(n)` loops become `nl.fori_loop(0, n, body)`",
        page="The one-argument form starts at 0. " + _PAGE,
        examples=(
            Example.of(
                _BAD.replace("(first, last, 2)", "(last)"),
                _GOOD.replace("(first, last, body, step=2)", "(0, last, body)"),
            ),
        ),
    ),
)
