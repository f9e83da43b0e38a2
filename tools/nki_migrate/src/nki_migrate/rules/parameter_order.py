"""Calls whose parameters changed places."""

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


_OLD_COMPUTE = Order.of("dst srcs scales reduce_op name=")
_NEW_COMPUTE = Order.of("dst srcs reduce_op scales= unique_indices= name=")


def _fits_compute(bound: dict[str, ast.expr], site: Site) -> bool | None:
    """NKI2007: `dma_compute`: `scales` moved behind `reduce_op`."""
    name = site.canonical(bound["reduce_op"])
    if name is not None:
        return name.startswith("nl.")
    return False if isinstance(bound["reduce_op"], ast.List | ast.Tuple | ast.Constant) else None


_FLAGS = "dst stationary moving is_stationary_onezero= is_moving_onezero= is_transpose="
_REST = "tile_position= tile_size= perf_mode= name="


def _fits_flags(bound: dict[str, ast.expr], site: Site) -> bool | None:
    """A place and a size are pairs, `accumulate` is a truth."""
    pairs = [bound[p] for p in ("tile_position", "tile_size") if p in bound]
    flag = bound.get("accumulate")
    if isinstance(flag, ast.Tuple | ast.List) or any(isinstance(p, ast.Constant) for p in pairs):
        return False
    certain = isinstance(flag, ast.Constant) or any(
        isinstance(p, ast.Tuple | ast.List) for p in pairs
    )
    return True if certain else None


HOOKS = {
    "NKI2005": Hooks(
        nodes=(ast.Call,), check=moved_arguments("NKI2005", "nisa.affine_select", _OLD, _NEW, _fits)
    ),
    "NKI2007": Hooks(
        nodes=(ast.Call,),
        check=moved_arguments(
            "NKI2007", "nisa.dma_compute", _OLD_COMPUTE, _NEW_COMPUTE, _fits_compute
        ),
    ),
    "NKI2020": Hooks(
        nodes=(ast.Call,),
        check=moved_arguments(
            "NKI2020",
            "nisa.nc_matmul",
            Order.of(f"{_FLAGS} {_REST}"),
            Order.of(f"{_FLAGS} accumulate= {_REST}"),
            _fits_flags,
            first=6,
        ),
    ),
}
