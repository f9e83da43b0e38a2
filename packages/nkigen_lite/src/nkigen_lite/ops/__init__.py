"""The tensor operations: one record each, with everything that is known of it."""

from nkigen_lite.ops._formula import Expr, choose
from nkigen_lite.ops._record import Attr, Engine, EngineOp, ErrorBound, Kind, Meaning, Op
from nkigen_lite.ops._registry import OPS
from nkigen_lite.ops.loops import Body

__all__ = [
    "OPS",
    "Attr",
    "Body",
    "Engine",
    "EngineOp",
    "ErrorBound",
    "Expr",
    "Kind",
    "Meaning",
    "Op",
    "choose",
]
