"""range_select with the comparisons that a cases file cannot name."""

from __future__ import annotations

from typing import Any

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


def at_least_and_less(module: Any, on_true: Any, bound0: Any, bound1: Any, range_start: int) -> Any:
    """bound0 <= number < bound1, in float32.

    The kernel gives back a tile in SBUF, which only another kernel can take: it is stored here.
    """

    @nki.jit
    def caller(on_true: Any, bound0: Any, bound1: Any) -> Any:
        selected, reduced = module.nki_range_select_example(
            on_true, bound0, bound1, nl.greater_equal, nl.less, range_start, np.float32
        )
        out = nl.ndarray(on_true.shape, dtype=np.float32, buffer=nl.shared_hbm)
        nl.store(out, value=selected)
        return out, reduced

    return caller(on_true, bound0, bound1)


def at_least_and_less_chained(
    module: Any, on_true: Any, bound0: Any, bound1: Any, range_start: int
) -> Any:
    """The same three times, with one maximum over all."""
    comparisons = (nl.greater_equal, nl.less)
    return module.nki_range_select_chaining(on_true, bound0, bound1, *comparisons, range_start)
