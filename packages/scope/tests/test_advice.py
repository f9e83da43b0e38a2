"""Advice names planted causes, and its gains come from the model."""

from __future__ import annotations

import numpy as np
import pytest

PLANTED = """
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def slow(x, w):
    weights = nl.ndarray((128, 128), dtype=w.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=weights, src=w)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(x.shape[1] // 16):
        tile = nl.ndarray((128, 16), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[:, nl.ds(i * 16, 16)])
        product = nl.ndarray((128, 16), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=product, stationary=weights, moving=tile)
        result = nl.ndarray((128, 16), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(dst=result, src=product, engine=nisa.vector_engine)
        nisa.dma_copy(dst=out[:, nl.ds(i * 16, 16)], src=result)
    return out
"""


def advice(page_of, data_of, columns: int) -> list[dict]:
    x, w = np.ones((128, columns), np.float32), np.ones((128, 128), np.float32)
    document, _ = data_of(page_of(PLANTED, "slow", x, w))
    return document["kernels"][0]["advice"]


def test_tiny_transfers_one_queue_and_one_evacuating_engine_are_named(page_of, data_of):
    titles = [entry["title"] for entry in advice(page_of, data_of, 256)]

    assert {
        "Transfers are small", "Few queues issue the transfers", "One engine evacuates PSUM",
    } <= set(titles)  # fmt: skip


def test_small_transfers_gain_their_fixed_costs(page_of, data_of):
    gains = {entry["title"]: entry["gainNs"] for entry in advice(page_of, data_of, 256)}

    assert gains["Transfers are small"] > 0


def test_the_largest_gain_comes_first_and_no_gain_exceeds_the_total(page_of, data_of):
    found = advice(page_of, data_of, 128)
    causes, lines = (
        [entry["gainNs"] for entry in found if (entry["nextNs"] is None) == is_line]
        for is_line in (False, True)
    )

    assert [entry["gainNs"] for entry in found] == causes + lines
    assert causes == sorted(causes, reverse=True) and lines == sorted(lines, reverse=True)
    assert causes[0] > 0
    assert sum(entry["nextNs"] or 0 for entry in found if (entry["nextNs"] or 0) > 0) > 0


def test_advice_on_a_cause_lists_its_lines(page_of, data_of):
    (entry,) = [
        e for e in advice(page_of, data_of, 128) if e["title"] == "One engine evacuates PSUM"
    ]
    file, line = entry["lines"][0]

    assert "tensor_copy" in PLANTED.splitlines()[line - 1]
    assert file == 0


BLOCKS = """
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def slow(x, w):
    out = nl.ndarray((w.shape[1], x.shape[1]), dtype=x.dtype, buffer=nl.shared_hbm)
    columns = 8
    for block in range(x.shape[1] // columns):
        total = nl.ndarray((w.shape[1], columns), dtype=nl.float32, buffer=nl.psum)
        for k in range(2):
            left = nl.ndarray((64, w.shape[1]), dtype=w.dtype, buffer=nl.sbuf)
            right = nl.ndarray((64, columns), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=left, src=w[k * 64 : k * 64 + 64, :])
            nisa.dma_copy(dst=right, src=x[k * 64 : k * 64 + 64, nl.ds(block * columns, columns)])
            nisa.nc_matmul(dst=total, stationary=left, moving=right, accumulate=k > 0)
        kept = nl.ndarray((w.shape[1], columns), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=kept, data=total, op0=nl.multiply, operand0=0.5,
                           engine=nisa.vector_engine)
        nisa.dma_copy(dst=out[:, nl.ds(block * columns, columns)], src=kept)
    return out
"""
ROWS = """
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def slow(x, w):
    weights = nl.ndarray((128, 128), dtype=w.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=weights, src=w)
    out = nl.ndarray((x.shape[1], 128), dtype=x.dtype, buffer=nl.shared_hbm)
    for row in range(x.shape[1] // 4):
        left = nl.ndarray((128, 4), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=left, src=x[:, row * 4 : row * 4 + 4])
        product = nl.ndarray((4, 128), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=product, stationary=left, moving=weights)
        half = nl.ndarray((4, 128), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=half, data=product, op0=nl.multiply, operand0=0.5,
                           engine=nisa.scalar_engine)
        nisa.dma_copy(dst=out[row * 4 : row * 4 + 4, :], src=half)
    return out
"""


GATED = """
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def slow(x, w):
    weights = nl.ndarray((128, 128), dtype=w.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=weights, src=w)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for j in range(x.shape[1] // 8):
        strip = nl.ndarray((128, 8), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=strip, src=x[:, nl.ds(j * 8, 8)])
        product = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=product, stationary=weights, moving=strip)
        gate = nl.ndarray((128, 8), dtype=x.dtype, buffer=nl.sbuf)
        nisa.activation(dst=gate, op=nl.sigmoid, data=product)
        nisa.dma_copy(dst=out[:, nl.ds(j * 8, 8)], src=gate)
    return out
"""
"""What evacuates PSUM runs on one engine alone."""


@pytest.mark.parametrize("mode", ["device", "as_written"])
@pytest.mark.parametrize("text", [BLOCKS, ROWS, GATED], ids=["blocks", "rows", "gated"])
def test_three_causes_of_a_slow_kernel_are_named_with_their_gains(text, mode, page_of, data_of):
    x, w = np.ones((128, 128), np.float32), np.ones((128, 128), np.float32)
    document, _ = data_of(page_of(text, "slow", x, w, mode=mode))
    shown = document["kernels"][0]
    gains = {entry["title"]: entry["gainNs"] for entry in shown["advice"]}

    assert shown["mode"] == mode
    assert gains["Transfers are small"] > 0.1 * shown["totalNs"]
    assert gains["Few queues issue the transfers"] >= 0
    assert "One engine evacuates PSUM" in gains
