"""`dma_compute`: `scales` moved behind `reduce_op`."""

from __future__ import annotations

import ast

from nki_migrate.rules.arguments import Order, moved_arguments
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_OLD = Order.of("dst srcs scales reduce_op name=")
_NEW = Order.of("dst srcs reduce_op scales= unique_indices= name=")


def _fits(bound: dict[str, ast.expr], site: Site) -> bool | None:
    name = site.canonical(bound["reduce_op"])
    if name is not None:
        return name.startswith("nl.")
    return False if isinstance(bound["reduce_op"], ast.List | ast.Tuple | ast.Constant) else None


HOOKS = Hooks(
    nodes=(ast.Call,), check=moved_arguments("NKI2007", "nisa.dma_compute", _OLD, _NEW, _fits)
)
