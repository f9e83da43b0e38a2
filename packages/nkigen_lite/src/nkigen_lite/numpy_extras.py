"""Functions that NumPy lacks, on traced arrays and on NumPy's own alike."""

from nkigen_lite.frontend.functions.convolution import avg_pool, conv1d, conv2d, conv3d, max_pool
from nkigen_lite.frontend.functions.ordering import topk
from nkigen_lite.frontend.functions.special import erf, gelu, rsqrt, sigmoid, silu

__all__ = [
    "avg_pool",
    "conv1d",
    "conv2d",
    "conv3d",
    "erf",
    "gelu",
    "max_pool",
    "rsqrt",
    "sigmoid",
    "silu",
    "topk",
]
