"""Baseline kernels of NumPy functions, where searches begin.

A baseline kernel shares, keeps and overlaps nothing beyond what the function requires:

- One tile per step: 128 partitions, or all of a shorter axis. Columns are 512 (moving columns of
  TensorE, one PSUM bank), else 128, or all of a shorter axis. Where a row is reduced, a tile has
  whole rows.
- One buffer per tile, allocated in the loop that uses it, without double buffering. An instruction
  overwrites a tile that is not needed any more.
- Every operand in HBM is loaded where it is used, in the innermost loop, each time; an operand that
  TensorE needs transposed is transposed there. Loads are neither hoisted nor widened.
- Every result is stored tile by tile.
- Values computed from 128 rows and needed again for these rows stay on chip; an intermediate array
  goes through HBM only where it is needed transposed, or as a right operand. A product that only a
  next product needs, without a reduced row, is made with its columns on partitions (up to 512 rows
  at a time), as that product takes it.

Operations become instructions as in `nkigen_lite`, which also traces the function: tensor_scalar
takes two operations, activation its scale, bias and sum.
"""

from nkigym.baseline.errors import BaselineError
from nkigym.baseline.kernel import baseline_graph, baseline_kernel, kernel_of

__all__ = [
    "BaselineError",
    "baseline_graph",
    "baseline_kernel",
    "kernel_of",
]
