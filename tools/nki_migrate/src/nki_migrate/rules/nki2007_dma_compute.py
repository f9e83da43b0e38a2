"""`dma_compute`: `scales` moved behind `reduce_op`."""

from __future__ import annotations

import ast

from nki_migrate.findings import Safety
from nki_migrate.rules.arguments import Order, moved_arguments
from nki_migrate.rules.rule import Example, Rule, Site

_OLD = Order.of("dst srcs scales reduce_op name=")
_NEW = Order.of("dst srcs reduce_op scales= unique_indices= name=")


def _fits(bound: dict[str, ast.expr], site: Site) -> bool | None:
    name = site.canonical(bound["reduce_op"])
    if name is not None:
        return name.startswith("nl.")
    return False if isinstance(bound["reduce_op"], ast.List | ast.Tuple | ast.Constant) else None


_BAD = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def add(x, y):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_compute(out, [x, y], [1.0, 1.0], nl.add)
    return out
"""

RULE = Rule(
    id="NKI2007",
    step=("0.2", "0.3"),
    klass="a",
    safety=Safety.SAFE,
    title="`dma_compute` takes `reduce_op` before `scales`",
    page="0.2: `(dst, srcs, scales, reduce_op)`; 0.3: `(dst, srcs, reduce_op, scales=None, …)`.\n",
    examples=(
        Example.of(_BAD, _BAD.replace("[1.0, 1.0], nl.add", "scales=[1.0, 1.0], reduce_op=nl.add")),
    ),
    nodes=(ast.Call,),
    check=moved_arguments("NKI2007", "nisa.dma_compute", _OLD, _NEW, _fits),
)
