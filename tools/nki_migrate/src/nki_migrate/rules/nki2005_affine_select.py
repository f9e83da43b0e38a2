"""`affine_select`: `offset` moved from third place to a keyword."""

from __future__ import annotations

import ast

from nki_migrate.rules.arguments import Order, moved_arguments
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_OLD = Order.of("dst pattern offset channel_multiplier on_true_tile on_false_value cmp_op= name=")
_NEW = Order.of("dst pattern channel_multiplier on_true_tile on_false_value cmp_op= offset= name=")


def _fits(bound: dict[str, ast.expr], site: Site) -> bool | None:
    """The comparison is a comparison, and the tile is not a number."""
    if "cmp_op" in bound:
        name = site.canonical(bound["cmp_op"])
        if name is None and not isinstance(bound["cmp_op"], ast.Constant):
            return None
        return name is not None and name.startswith("nl.")
    if _is_number(bound["on_true_tile"]):
        return False
    return None


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


HOOKS = Hooks(
    nodes=(ast.Call,), check=moved_arguments("NKI2005", "nisa.affine_select", _OLD, _NEW, _fits)
)
