"""From NumPy functions to naive kernel programs, where searches begin.

*Naive* means: nothing is shared, kept or overlapped that the function does not ask for.

- One tile per step: 128 partitions, or all of a shorter axis. Columns are 512 (moving columns of
  TensorE, one PSUM bank), else 128, or all of a shorter axis. Where a row is reduced, a tile has
  whole rows.
- One buffer per tile, allocated in the loop that uses it: nothing is rotated. An instruction writes
  over a tile that nothing needs any more.
- Every operand in HBM is loaded where it is used, in the innermost loop, each time; an operand that
  TensorE needs turned is turned there. No load, and no tile of a load, is hoisted or widened.
- Every result is stored tile by tile.
- What the function makes of 128 rows and needs again for these rows stays on chip; an intermediate
  array goes through HBM only where something needs it turned, or from the right. Where only a next
  product needs a product, and no row is reduced, it is made with its columns on partitions (up to
  512 rows at a time), as that product takes it.

Operations become instructions as in `nkigen_lite`, which also traces the function: tensor_scalar
takes two operations, activation its scale, bias and sum.
"""

from nkigym.naive.errors import NaiveError
from nkigym.naive.naive import naive

__all__ = ["NaiveError", "naive"]
