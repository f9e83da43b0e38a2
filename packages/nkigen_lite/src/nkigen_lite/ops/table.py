"""All operations by name."""

from __future__ import annotations

from nkigen_lite.ops.composite import COMPOSITES
from nkigen_lite.ops.create import CREATORS
from nkigen_lite.ops.elementwise import ELEMENTWISE
from nkigen_lite.ops.move import LAYOUTS, VIEWS
from nkigen_lite.ops.record import Op
from nkigen_lite.ops.reduce import MATMUL, REDUCTIONS
from nkigen_lite.ops.scan import SCANS

_FAMILIES = (ELEMENTWISE, REDUCTIONS, SCANS, (MATMUL,), VIEWS, LAYOUTS, CREATORS, COMPOSITES)

OPS: dict[str, Op] = {op.name: op for family in _FAMILIES for op in family}
