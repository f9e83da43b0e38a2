"""nl.rand, nl.dropout and nl.random_seed: the random generator of VectorE.

The streams are reproducible (nl.random_seed, Options.random_seed) and not hardware's, whose order
no document prints.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.errors import DTypeError
from neuroncore.spec import as_dtype
from nki_beta1.call import elementwise
from nki_beta1.call.apply import apply, cut, on_chip_shape
from nki_beta1.execution.core import core_of
from nki_beta1.execution.emission import run
from nki_beta1.index.mask import region_of
from nki_beta1.values.attributes import nl_function
from nki_dtypes import DType, finfo, uint32


@nl_function
def rand(shape: Any, dtype: Any = np.float32) -> Any:
    """A new tile of uniform numbers in [0, 1): multiples of 2^-p, for dtype's p bits of precision.

    With the precision's own grid no number rounds up to 1. Raises DTypeError for integers.
    """
    kind = as_dtype(dtype)
    precision = _precision(kind)
    sizes = tuple(int(n) for n in (shape if isinstance(shape, (tuple, list)) else (shape,)))
    core = core_of("rand")
    core.flush()
    words = core.allocate(on_chip_shape(sizes), uint32, MemorySpace.sbuf)
    run("rng", {"dst": words}, {})
    whole = elementwise.scalar_op(words, "right_shift", 32 - precision, uint32)
    return elementwise.scalar_op(whole, "multiply", 2.0**-precision, kind)


def _precision(kind: DType) -> int:
    """Bits of the significand, the leading one included."""
    if not kind.is_float or kind.lanes > 1:
        raise DTypeError(
            f"nl.rand gives no {kind}",
            expected="a floating-point dtype",
            operand="dtype",
            rule="NKI 0.1: nl.rand",
        )
    return 1 - round(np.log2(float(finfo(kind).eps)))


@nl_function
def dropout(x: Any, rate: Any, *, dtype: Any = None, mask: Any = None) -> Any:
    """x with random elements set to 0, each with probability `rate`; nothing is rescaled.

    `rate` is a number or a tile with one per partition.
    """
    kept = apply("dropout", {"data": x, "prob": rate}, {}, over="data", mask=mask)
    return kept if dtype is None else elementwise.copy(kept, dtype, mask)


@nl_function
def random_seed(seed: Any, *, mask: Any = None) -> None:
    """Start the random generator anew: the same seed gives the same numbers.

    `seed` is an int or a (1, 1) tile of a 32-bit dtype.
    """
    core = core_of("random_seed")
    core.flush()
    tile = cut(seed, None)
    if isinstance(seed, (int, np.integer)):
        tile = core.allocate((1, 1), uint32, MemorySpace.sbuf)
        run("memset", {"dst": tile, "value": int(seed)}, {})
    region = region_of(mask, tile.shape)
    if region is None or not region.is_empty:
        run("set_rng_seed", {"src_seeds": tile}, {})
