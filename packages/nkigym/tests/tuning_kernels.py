"""Functions and kernels that tests tune; small, so that a search of some candidates takes long
neither to find something nor to prove it.
"""

import numpy as np


def product(left, right):
    return left.T @ right


def softmax(x):
    raised = np.exp(x - x.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def two(x, y):
    return x + y, x * y


PRODUCT = ("bf16[256,256]", "bf16[256,1024]")
SOFTMAX = ("f32[512,256]",)
TWO = ("f32[512,256]", "f32[512,256]")

KERNEL = """
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def doubled(x):
    rows, columns = x.shape
    out = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, rows, 128):
        tile = nl.ndarray((128, columns), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[start : start + 128, :])
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=out[start : start + 128, :], src=tile)
    return out
"""
