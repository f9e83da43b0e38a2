"""What cannot be lowered yet, said with the operation and the user's line."""

from __future__ import annotations

from nkigen_lite.errors import TraceError
from nkigen_lite.ir import Node


class LoweringError(TraceError):
    """An operation, shape or dtype for which no kernel is written yet."""


def cannot(node: Node, why: str, hint: str | None = None) -> LoweringError:
    """The error for one operation of the graph."""
    return LoweringError(
        f"{node.op} cannot be lowered: {why}",
        got=f"{node.name} = {node.op}({', '.join(node.operands)}): {node.spec}",
        hint=hint,
        place=node.origin,
    )
