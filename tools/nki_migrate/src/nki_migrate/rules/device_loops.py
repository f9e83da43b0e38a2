"""Loops of the device, whose body becomes a function (`nl.fori_loop`, `nl.while_loop`)."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from neuroncore.findings import Edit, Finding, Severity
from nki_migrate.index import bound_names, walk
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site
from nki_migrate.rules.tiles import argument

_JUMPS = (ast.Break, ast.Continue, ast.Return, ast.Yield, ast.YieldFrom, ast.Nonlocal, ast.Global)


def inside(loop: ast.For | ast.While) -> list[ast.AST]:
    """Every node of the body."""
    return [node for statement in loop.body for node in walk(statement)]


def obstacle(loop: ast.For | ast.While, site: Site) -> str | None:
    """Why the body cannot become a function, or None when it can."""
    nodes = inside(loop)
    if any(isinstance(node, _JUMPS) for node in nodes):
        return "the body leaves the loop or a name's scope"
    if any(_is_no_reorder(node, site) for node in site.index.ancestors(loop)):
        return "it stands inside no_reorder()"
    escaping = _assigned(nodes) & _used_outside(loop, site)
    if escaping:
        return f"the body rebinds {', '.join(sorted(escaping))}, used outside"
    return None


def _is_no_reorder(node: ast.AST, site: Site) -> bool:
    return isinstance(node, ast.With) and any(
        isinstance(item.context_expr, ast.Call)
        and site.canonical(item.context_expr.func) == "nl.no_reorder"
        for item in node.items
    )


def _assigned(nodes: Iterable[ast.AST]) -> set[str]:
    return {n.id for n in bound_names(nodes)}


def _used_outside(loop: ast.For | ast.While, site: Site) -> set[str]:
    function = site.function_of(loop)
    assert function is not None
    own = {id(node) for node in walk(loop)}
    names = (n for n in walk(function.node) if isinstance(n, ast.Name) and id(n) not in own)
    return {n.id for n in names} | set(function.parameters)


def call_after(loop: ast.For | ast.While, call: str, site: Site) -> Edit:
    """The call of the loop function, below the last line of the body."""
    source = site.index.source
    last = source.span(loop.body[-1])[2]
    text = source.lines[last - 1].rstrip("\r\n")
    below = f"{source.newline}{source.indentation(loop.lineno)}{call}"
    return Edit(last, len(text) + 1, last, len(text) + 1, below)


def name_of_body(loop: ast.For | ast.While, site: Site) -> str:
    """`body`, or `body_2` for the second such loop of the file, …; never a name in use."""
    nodes = site.index.nodes
    loops = sorted(
        n.lineno for n in nodes if isinstance(n, ast.For | ast.While) and is_device_loop(n, site)
    )
    number = loops.index(loop.lineno) + 1
    taken = {n.id for n in nodes if isinstance(n, ast.Name)}
    taken |= {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
    stem = "body" if number == 1 else f"body_{number}"
    return next(
        name for name in (stem + "_" * i for i in range(len(taken) + 1)) if name not in taken
    )


def is_device_loop(loop: ast.For | ast.While, site: Site) -> bool:
    """Whether the device counts: `for … in nl.dynamic_range(…)`, `while register`."""
    if isinstance(loop, ast.While):
        return register_of(loop, site) is not None
    return isinstance(loop.iter, ast.Call) and site.canonical(loop.iter.func) == "nl.dynamic_range"


def register_of(loop: ast.While, site: Site) -> str | None:
    """The register that a `while` tests, if the name is bound to nothing but registers."""
    function = site.function_of(loop)
    if function is None or not isinstance(loop.test, ast.Name):
        return None
    name = loop.test.id
    bound = [site.index.parent(n) for n in bound_names(walk(function.node)) if n.id == name]
    return name if bound and all(_is_register(b, site) for b in bound) else None


def _is_register(statement: ast.AST | None, site: Site) -> bool:
    value = getattr(statement, "value", None) if isinstance(statement, ast.Assign) else None
    return isinstance(value, ast.Call) and site.canonical(value.func) == "nisa.register_alloc"


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


def _check_fori_loop(loop: ast.For, site: Site) -> Iterator[Finding]:
    """NKI5001: `for i in nl.dynamic_range(…)` becomes `nl.fori_loop`."""
    if not is_device_loop(loop, site) or site.function_of(loop) is None:
        return
    assert isinstance(loop.iter, ast.Call)
    bounds = [site.source(argument) for argument in loop.iter.args]
    rule = "NKI5003" if len(bounds) == 1 else "NKI5001"
    why = _obstacle(loop, site)
    if why is not None:
        yield site.warn(rule, loop.iter, f"nl.dynamic_range is deprecated: nl.fori_loop; {why}")
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


def _check_while_loop(loop: ast.While, site: Site) -> Iterator[Finding]:
    """NKI5002: `while register:` becomes `nl.while_loop`."""
    register = register_of(loop, site)
    if register is None:
        return
    said = "a while loop over a register is deprecated: nl.while_loop"
    why = "it has an else part" if loop.orelse else obstacle(loop, site)
    language = site.index.alias_for("nl")
    if why is None and language is None:
        why = "`nki.language` is not imported"
    if why is not None:
        said = f"{said}; {why}"
        yield site.warn("NKI5002", loop.test, said)
        return
    source = site.index.source
    name = name_of_body(loop, site)
    line, column, _, _ = source.span(loop)
    _, _, end_line, end_column = source.span(loop.test)
    pad = source.indentation(loop.body[-1].lineno)[len(source.indentation(line)) :]
    after = call_after(
        loop,
        f"{pad}return {register}{source.newline}{source.indentation(line)}"
        f"{language}.while_loop({register}, {name})",
        site,
    )
    edits = [Edit(line, column, end_line, end_column, f"def {name}({register})"), after]
    basis = (f"`{register}` comes from register_alloc",)
    yield site.finding(
        "NKI5002", loop.test, said, severity=Severity.WARNING, edits=edits, basis=basis
    )


HOOKS = {
    "NKI3006": Hooks(nodes=(ast.For,), check=_check),
    "NKI5001": Hooks(nodes=(ast.For,), check=_check_fori_loop),
    "NKI5002": Hooks(nodes=(ast.While,), check=_check_while_loop),
}
