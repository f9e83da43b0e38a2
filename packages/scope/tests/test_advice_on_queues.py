"""Advice on transfers: their queues, their sizes, the generation of their descriptors."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

SMALL = "Transfers are small"
QUEUES = "Few queues issue the transfers"
DESCRIPTORS = "Descriptors are generated one after the other"
STORES = """
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def stores(x, several: int):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows = nl.ndarray((128, x.shape[0] // 128, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=rows, value=1.0)
    for i in range(x.shape[0] // (128 * several)):
STATEMENTS
    return out
"""
STORE = "nisa.dma_copy(dst=out[nl.ds(({at}) * 128, 128), :], src=rows[:, {at}, :])"


def stores(several: int) -> str:
    """A kernel whose loop stores several parts of one tile in an iteration."""
    lines = [STORE.format(at=f"i * {several} + {n}") for n in range(several)]
    return STORES.replace("STATEMENTS", "\n".join(f"        {line}" for line in lines))


def advice_of(document) -> tuple[float, dict[str, dict]]:
    kernel = document["kernels"][0]
    return kernel["totalNs"], {e["title"]: e for e in kernel["advice"] if e["part"] != "line"}


def test_a_loop_of_transfers_of_one_tile_gains_what_several_statements_gain(page_of, data_of):
    x = np.ones((4096, 512), ml_dtypes.bfloat16)
    (total, found), (followed, _) = (
        advice_of(data_of(page_of(stores(n), "stores", x, n, mode="as_written"))[0]) for n in (1, 4)
    )

    assert found[QUEUES]["gainNs"] == pytest.approx(total - followed)
    assert total - followed > 0.3 * total


JOINED = """
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def joined(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows = nl.ndarray((128, x.shape[0] // 128, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=rows, value=1.0)
    tiles = [[x.shape[1], 128], [128 * x.shape[1], x.shape[0] // 128], [1, x.shape[1]]]
    nisa.dma_copy(dst=out.ap(tiles), src=rows)
    return out
"""


@pytest.mark.parametrize("mode", ["device", "as_written"])
def test_a_loop_of_transfers_of_parts_of_a_tile_gains_what_one_transfer_gains(
    mode, page_of, data_of
):
    x = np.ones((4096, 64), ml_dtypes.bfloat16)
    total, found = advice_of(data_of(page_of(stores(1), "stores", x, 1, mode=mode))[0])
    followed, _ = advice_of(data_of(page_of(JOINED, "joined", x, mode=mode))[0])

    assert found[SMALL]["gainNs"] == pytest.approx(total - followed)
    assert total - followed > 0.2 * total


PARTS = """
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def parts(a, b, are_whole: int):
    out = nl.ndarray((128, 2048), dtype=a.dtype, buffer=nl.shared_hbm)
    for n in range(8):
        left = nl.ndarray((128, 128), dtype=a.dtype, buffer=nl.sbuf)
        right = nl.ndarray((128, 256), dtype=b.dtype, buffer=nl.sbuf)
        if are_whole:
            nisa.dma_copy(dst=left, src=a[:, nl.ds(n * 128, 128)])
            nisa.dma_copy(dst=right, src=b[:, nl.ds(n * 256, 256)])
        else:
            for c in range(4):
                at = nl.ds(n * 128 + c * 32, 32)
                nisa.dma_copy(dst=left[:, nl.ds(c * 32, 32)], src=a[:, at])
                at = nl.ds(n * 256 + c * 64, 64)
                nisa.dma_copy(dst=right[:, nl.ds(c * 64, 64)], src=b[:, at])
        total = nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=total, stationary=left, moving=right)
        result = nl.ndarray((128, 256), dtype=a.dtype, buffer=nl.sbuf)
        for c in range(4):
            part = nl.ds(c * 64, 64)
            nisa.tensor_scalar(dst=result[:, part], data=total[:, part], op0=nl.add, operand0=1.0)
            if not are_whole:
                nisa.dma_copy(dst=out[:, nl.ds(n * 256 + c * 64, 64)], src=result[:, part])
        if are_whole:
            nisa.dma_copy(dst=out[:, nl.ds(n * 256, 256)], src=result)
    return out
"""


@pytest.mark.parametrize("mode", ["device", "as_written"])
def test_parts_of_tiles_between_other_calls_gain_what_whole_tiles_gain(mode, page_of, data_of):
    a, b = (np.ones((128, columns), ml_dtypes.bfloat16) for columns in (1024, 2048))
    (total, found), (followed, further) = (
        advice_of(data_of(page_of(PARTS, "parts", a, b, whole, mode=mode))[0]) for whole in (0, 1)
    )

    gain = total - followed + max(0.0, further.get(SMALL, {"gainNs": 0.0})["gainNs"])
    assert found[SMALL]["gainNs"] == pytest.approx(gain)
    assert total - followed > 0.2 * total


BEFORE = """
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def before(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 16), dtype=x.dtype, buffer=nl.sbuf)
    for i in range(x.shape[1] // 16):
        nisa.dma_copy(dst=tile, src=x[:, nl.ds(i * 16, 16)])
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=out[:, nl.ds(i * 16, 16)], src=tile)
    return out
"""
ALLOCATION = "    tile = nl.ndarray((128, 16), dtype=x.dtype, buffer=nl.sbuf)\n"
LOOP = "    for i in range(x.shape[1] // 16):\n"
INSIDE = BEFORE.replace(ALLOCATION + LOOP, f"{LOOP}    {ALLOCATION}")


@pytest.mark.parametrize("mode", ["device", "as_written"])
def test_transfers_of_a_tile_from_before_the_loop_are_combined_as_those_of_its_own(
    mode, page_of, data_of
):
    x = np.ones((128, 1024), np.float32)
    (total, found), (own_total, own) = (
        advice_of(data_of(page_of(text, "before", x, mode=mode))[0]) for text in (BEFORE, INSIDE)
    )

    assert total - found[SMALL]["gainNs"] == pytest.approx(own_total - own[SMALL]["gainNs"])
    assert found[SMALL]["gainNs"] > 0.2 * total


IMBALANCED = """
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def imbalanced(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows = nl.ndarray((128, x.shape[0] // 128, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=rows[:, 0, :], src=x[0:128, :])
    nisa.dma_copy(dst=rows[:, 1, :], src=x[128:256, :])
    nisa.dma_copy(dst=rows[:, 2, :], src=x[256:384, :])
    nisa.dma_copy(dst=rows[:, 3, :], src=x[384:512, :])
    nisa.dma_copy(dst=rows[:, 4, :], src=x[512:640, :])
    for i in range(5, x.shape[0] // 128):
        nisa.dma_copy(dst=rows[:, i, :], src=x[nl.ds(i * 128, 128), :])
    for i in range(x.shape[0] // 128):
        nisa.dma_copy(dst=out[nl.ds(i * 128, 128), :], src=rows[:, i, :])
    return out
"""


def test_one_queue_of_many_that_issues_most_transfers_is_named(page_of, data_of):
    x = np.ones((4096, 64), ml_dtypes.bfloat16)
    page = page_of(IMBALANCED, "imbalanced", x, mode="as_written")
    total, found = advice_of(data_of(page)[0])

    assert "64 DMAs share 7 queues, up to 32 on one" in found[QUEUES]["text"]
    assert found[QUEUES]["gainNs"] > 0.3 * total


GENERATED = """
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def generated(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(x.shape[0] // 128):
        rows = nl.ds(i * 128, 128)
        tile = nl.ndarray((128, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[rows, :], MODE)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=3.0)
        nisa.dma_copy(dst=out[rows, :], src=tile, MODE)
    return out
"""
HWDGE = "dge_mode=nisa.dge_mode.hwdge, engine=nisa.scalar_engine"


@pytest.mark.parametrize("mode", ["device", "as_written"])
def test_descriptors_of_known_addresses_gain_what_the_kernel_without_a_mode_gains(
    mode, page_of, data_of
):
    x = np.ones((2048, 512), ml_dtypes.bfloat16)
    (total, found), (followed, _) = (
        advice_of(data_of(page_of(GENERATED.replace("MODE", text), "generated", x, mode=mode))[0])
        for text in (HWDGE, "")
    )

    assert not found[DESCRIPTORS]["isBound"]
    assert found[DESCRIPTORS]["gainNs"] == pytest.approx(max(total - followed, 0))
    assert mode == "as_written" or found[DESCRIPTORS]["gainNs"] > 0.3 * total
