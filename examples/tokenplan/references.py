"""What the kernels of this folder mean, in plain NumPy, computed in float64 and rounded once."""

import numpy as np
from numpy.typing import NDArray


def gemm(lhs_t: NDArray, rhs: NDArray, tile_n: int = 512) -> NDArray:
    """lhs_tᵀ @ rhs: lhs_t [K, M], rhs [K, N], in lhs_t's dtype, whatever the tiles."""
    del tile_n
    return (lhs_t.astype(np.float64).T @ rhs.astype(np.float64)).astype(lhs_t.dtype)
