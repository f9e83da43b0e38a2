"""`affine_select`: `offset` moved from third place to a keyword."""

from __future__ import annotations

import ast

from nki_migrate.findings import Safety
from nki_migrate.rules.arguments import Order, moved_arguments
from nki_migrate.rules.rule import Example, Rule, Site

_OLD = Order.of("dst pattern offset channel_multiplier on_true_tile on_false_value cmp_op= name=")
_NEW = Order.of("dst pattern channel_multiplier on_true_tile on_false_value cmp_op= offset= name=")


def _fits(bound: dict[str, ast.expr], site: Site) -> bool | None:
    """A comparison is a comparison, and a tile is no number."""
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


_BAD = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def causal(x, offset):
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.affine_select(tile, [[-1, 64]], offset, 1, tile, -1e30, nl.greater_equal)
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""
_GOOD = _BAD.replace(
    "offset, 1, tile, -1e30, nl.greater_equal",
    "offset=offset, channel_multiplier=1, on_true_tile=tile, on_false_value=-1e30, "
    "cmp_op=nl.greater_equal",
)

RULE = Rule(
    id="NKI2005",
    step=("0.2", "0.3"),
    klass="a",
    safety=Safety.SAFE,
    title="`affine_select` takes `offset` as a keyword after the other parameters",
    page="""\
0.2: `(dst, pattern, offset, channel_multiplier, on_true_tile, on_false_value, cmp_op, name)`;
0.3: `(dst, pattern, channel_multiplier, on_true_tile, on_false_value, cmp_op, offset, name)`.

**Trap.** Six positional arguments are legal in both orders and mean different things. The rule
looks at what the arguments are (a comparison such as `nl.greater`, a number where a tile should
be); where that does not decide it asks you.
""",
    examples=(Example.of(_BAD, _GOOD),),
    nodes=(ast.Call,),
    check=moved_arguments("NKI2005", "nisa.affine_select", _OLD, _NEW, _fits),
)
