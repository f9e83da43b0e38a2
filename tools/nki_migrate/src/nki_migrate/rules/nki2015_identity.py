"""`is None` and its kind: kernel code compares with `==`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from neuroncore.findings import Edit, Finding
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_OPERATOR = re.compile(r"\bis\s+not\b|\bis\b")


def _check(node: ast.Compare, site: Site) -> Iterator[Finding]:
    if site.function_of(node) is None:
        return
    sides = [node.left, *node.comparators]
    edits = [
        _operator(sides[i], sides[i + 1], site)
        for i, operator in enumerate(node.ops)
        if isinstance(operator, ast.Is | ast.IsNot) and _is_singleton(sides[i], sides[i + 1])
    ]
    if edits:
        yield site.finding(
            "NKI2015", node, "kernel code has no `is`; compare with == or !=", edits=edits
        )


def _is_singleton(*sides: ast.expr) -> bool:
    return any(
        isinstance(side, ast.Constant) and (side.value is None or isinstance(side.value, bool))
        for side in sides
    )


def _operator(left: ast.expr, right: ast.expr, site: Site) -> Edit:
    """Replace the words between two operands, keeping the space (and parentheses) around them."""
    source = site.index.source
    _, _, line, column = source.span(left)
    end_line, end_column, _, _ = source.span(right)
    between = source.text[source.offset(line, column) : source.offset(end_line, end_column)]
    replaced = _OPERATOR.sub(lambda m: "!=" if "not" in m[0] else "==", between, count=1)
    return Edit(line, column, end_line, end_column, replaced)


HOOKS = Hooks(nodes=(ast.Compare,), check=_check)
