"""Elements at known places, picked in SBUF: masks and lists of indices."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nkigen_lite.codegen.movement.gather import stretches_of
from nkigen_lite.compiler.compile import compile

DTYPES = [np.float32, ml_dtypes.bfloat16, np.int32, np.int8, np.uint16, np.bool_]


def mask_of(*shape: int, share: float = 0.5, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).random(shape) < share


def is_picked(kernel: Any) -> bool:
    return "nc_n_gather" in kernel.source


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_a_mask_picks_every_dtype_bit_for_bit(moves, normal, dtype):
    mask = mask_of(40, 50)

    kernel = moves(lambda x: x[mask], (normal(40, 50) * 4).astype(dtype))

    assert is_picked(kernel)


@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("size", [129, 513, 6400])
def test_a_line_of_any_length(moves, normal, share, size):
    mask = mask_of(size, share=share)

    moves(lambda x: x[mask], normal(size))


@pytest.mark.parametrize("shape", [(300, 130), (3, 50, 100)])
def test_columns_of_all_rows(moves, normal, shape):
    mask = mask_of(shape[-1])

    kernel = moves(lambda x: x[..., mask] if x.ndim < 3 else x[:, :, mask], normal(*shape))

    assert is_picked(kernel)


def test_indices_in_any_order_and_again(moves, normal):
    places = np.random.default_rng(3).integers(0, 130, 500)

    moves(lambda x: (x[places], np.take(x, places[::-1])), normal(130))
    moves(lambda x: np.take(x, places, axis=1), normal(140, 130))


def test_places_at_a_great_distance(moves, normal):
    places = np.random.default_rng(3).permutation(60000)[:40]

    moves(lambda x: x[places], normal(60000))


def test_picks_of_what_the_kernel_makes(assert_lowers_right, normal):
    mask = mask_of(64, 50)

    assert_lowers_right(lambda x: np.exp(x)[mask] * 2, normal(64, 50))
    assert_lowers_right(lambda x: np.concatenate([x[mask], x[~mask]]), normal(64, 50))


@pytest.mark.parametrize("nki", ["0.2", "0.6"])
@pytest.mark.parametrize("target", ["trn1", "trn3"])
def test_every_device_and_version(normal, nki, target):
    mask, x = mask_of(64, 50), normal(64, 50)

    kernel = compile(lambda x: x[mask], x, target=target, nki=nki)

    assert kernel(x).tobytes() == x[mask].tobytes()


def test_a_mask_takes_a_handful_of_dmas():
    """1,243 DMAs and 68 us for a DMA of each run of elements."""
    mask = mask_of(64, 100)

    kernel = compile(lambda x: x[mask], "f32[64, 100]")

    assert kernel.stats.dmas <= 9
    assert kernel.stats.predicted_us < 8
    assert kernel.source.count("\n") < 120


def test_stretches_hold_their_places():
    places = np.flatnonzero(mask_of(6400))[: 24 * 128].reshape(128, 24)

    found = stretches_of(places, 6400)

    assert found is not None
    starts = found.first + found.step * np.arange(128)
    assert starts.min() >= 0 and starts.max() + found.width <= 6400
    assert (places >= starts[:, None]).all()
    assert (places < starts[:, None] + found.width).all()
    assert found.width < 1000
