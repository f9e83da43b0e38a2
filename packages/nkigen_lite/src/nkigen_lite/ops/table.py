"""All operations by name."""

from __future__ import annotations

from nkigen_lite.ops.composite import COMPOSITES
from nkigen_lite.ops.create import CREATORS
from nkigen_lite.ops.elementwise import ELEMENTWISE
from nkigen_lite.ops.move import LAYOUTS, VIEWS
from nkigen_lite.ops.record import Op
from nkigen_lite.ops.reduce import MATMUL, REDUCTIONS

OPS: dict[str, Op] = {
    op.name: op
    for op in (*ELEMENTWISE, *REDUCTIONS, MATMUL, *VIEWS, *LAYOUTS, *CREATORS, *COMPOSITES)
}
