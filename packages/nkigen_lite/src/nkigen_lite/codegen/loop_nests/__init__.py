"""Loop nests of element-wise operations, row reductions, outer reductions and time steps."""

from nkigen_lite.codegen.loop_nests.time_loops import TimeLoop

__all__ = ["TimeLoop"]
