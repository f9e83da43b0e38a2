"""`nc_matmul`: `accumulate` was inserted before the tile's place and size."""

from __future__ import annotations

import ast

from nki_migrate.findings import Safety
from nki_migrate.rules.arguments import Order, moved_arguments
from nki_migrate.rules.rule import Example, Rule, Site

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


_BAD = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def corner(a, b):
    acc = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(acc, a, b, False, False, False, (0, 0), (64, 64))
"""

RULE = Rule(
    id="NKI2020",
    step=("0.2", "0.3"),
    klass="a",
    safety=Safety.SAFE,
    title="`nc_matmul` has `accumulate` before `tile_position`",
    page="""\
0.3 inserted `accumulate` after `is_transpose`, so a tile position that was passed by position
becomes the flag. The migration guide does not mention it; the signatures show it.
""",
    examples=(
        Example.of(
            _BAD, _BAD.replace("(0, 0), (64, 64)", "tile_position=(0, 0), tile_size=(64, 64)")
        ),
    ),
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
