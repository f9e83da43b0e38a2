"""Lists as kernel arguments and defaults become tuples."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Edit, Finding, Safety, Severity
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_MUTATORS = {"append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse"}


def _check(node: ast.FunctionDef | ast.Call, site: Site) -> Iterator[Finding]:
    if isinstance(node, ast.FunctionDef):
        yield from _defaults(node, site)
    else:
        yield from _launch(node, site)


def _defaults(node: ast.FunctionDef, site: Site) -> Iterator[Finding]:
    function = site.function_of(node)
    if function is None or function.node is not node:
        return
    arguments = node.args
    positional = (*arguments.posonlyargs, *arguments.args)[::-1]
    pairs = [*zip(positional, arguments.defaults[::-1], strict=False)]
    pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)  # type: ignore[arg-type]
    for parameter, default in pairs:
        if isinstance(default, ast.List):
            yield _default(parameter.arg, default, node, site)


def _default(name: str, default: ast.List, node: ast.FunctionDef, site: Site) -> Finding:
    if _is_mutated(name, node):
        return site.finding(
            "NKI2016",
            default,
            f"the default of {name} must be a tuple, but the kernel changes it; "
            f"copy it inside: {name} = list({name})",
            severity=Severity.ERROR,
            safety=Safety.MANUAL,
        )
    return site.finding(
        "NKI2016",
        default,
        f"the default of {name} is a list; kernel arguments are tuples",
        edits=_as_tuple(default, site),
    )


def _is_mutated(name: str, function: ast.AST) -> bool:
    return any(_mutates(node, name) for node in ast.walk(function))


def _mutates(node: ast.AST, name: str) -> bool:
    """`name.append(…)` and its kind, `name[…] = …`, `del name[…]`."""
    if isinstance(node, ast.Attribute):
        return node.attr in _MUTATORS and _is_name(node.value, name)
    is_written = isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)
    return is_written and _is_name(node.value, name)  # type: ignore[attr-defined]


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _launch(call: ast.Call, site: Site) -> Iterator[Finding]:
    launch = next((x for x in site.index.launches if x.call is call), None)
    if launch is None:
        return
    for argument in (*launch.arguments, *(k.value for k in launch.keywords)):
        if isinstance(argument, ast.List):
            yield site.finding(
                "NKI2016",
                argument,
                f"{launch.kernel} is launched with a list; kernel arguments are tuples",
                edits=_as_tuple(argument, site),
            )


def _as_tuple(node: ast.List, site: Site) -> list[Edit]:
    """Change only the brackets: what is between them may have edits of its own."""
    line, column, end_line, end_column = site.index.source.span(node)
    closing = ",)" if len(node.elts) == 1 else ")"
    return [
        Edit(line, column, line, column + 1, "("),
        Edit(end_line, end_column - 1, end_line, end_column, closing),
    ]


HOOKS = Hooks(nodes=(ast.FunctionDef, ast.Call), check=_check)
