"""What a page says of the results of instructions is what NumPy says of them."""

from __future__ import annotations

import numpy as np

SCALE = """
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def scale(x):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    doubled = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=doubled, data=tile, op0=nl.multiply, operand0=2.0)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=doubled)
    return out
"""


def results(page_of, data_of, x: np.ndarray):
    document, columns = data_of(page_of(SCALE, "scale", x))
    tensors = document["kernels"][0]["tensors"]
    return tensors, columns[tensors["pictures"]["column"]]


def test_results_come_in_order_with_their_counts(page_of, data_of):
    x = np.random.default_rng(1).standard_normal((128, 64)).astype(np.float32)
    x[3, 5], x[7, 9] = np.nan, np.inf
    tensors, _ = results(page_of, data_of, x)
    first, second, third = tensors["results"]
    finite = 2 * x[np.isfinite(x)].astype(np.float64)

    assert [r["tensor"] for r in (first, second, third)] == ["tile", "doubled", "out"]
    assert [r["step"] for r in tensors["results"]] == [0, 1, 2]
    assert (second["nans"], second["infinite"]) == (1, 1)
    assert (second["least"], second["greatest"]) == (finite.min(), finite.max())
    assert abs(second["mean"] - finite.mean()) <= 1e-12
    assert sum(second["histogram"]) == finite.size


def test_a_picture_shows_evenly_spaced_elements(page_of, data_of):
    x = np.arange(32 * 8, dtype=np.float32).reshape(32, 8)
    tensors, pictures = results(page_of, data_of, x)
    first = tensors["results"][0]
    levels = pictures[: first["rows"] * first["columns"]].reshape(first["rows"], first["columns"])

    assert levels.shape == x.shape
    assert np.array_equal(levels, np.rint(x / x.max() * tensors["levels"]))
