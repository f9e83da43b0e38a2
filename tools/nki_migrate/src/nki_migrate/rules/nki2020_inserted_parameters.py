"""`nc_matmul`: `accumulate` was inserted before the tile's place and size."""

from __future__ import annotations

import ast

from nki_migrate.rules.arguments import Order, moved_arguments
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_FLAGS = "dst stationary moving is_stationary_onezero= is_moving_onezero= is_transpose="
_REST = "tile_position= tile_size= perf_mode= name="


def _fits(bound: dict[str, ast.expr], site: Site) -> bool | None:
    """A place and a size are pairs, `accumulate` is a truth."""
    pairs = [bound[p] for p in ("tile_position", "tile_size") if p in bound]
    flag = bound.get("accumulate")
    if isinstance(flag, ast.Tuple | ast.List) or any(isinstance(p, ast.Constant) for p in pairs):
        return False
    certain = isinstance(flag, ast.Constant) or any(
        isinstance(p, ast.Tuple | ast.List) for p in pairs
    )
    return True if certain else None


HOOKS = Hooks(
    nodes=(ast.Call,),
    check=moved_arguments(
        "NKI2020",
        "nisa.nc_matmul",
        Order.of(f"{_FLAGS} {_REST}"),
        Order.of(f"{_FLAGS} accumulate= {_REST}"),
        _fits,
        first=6,
    ),
)
