"""Choosing by bits is np.where, for every width, shape and special value."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.instructions._numerics import choose
from nki_dtypes import resolve


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e5m2", "int32", "uint16", "int8"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (128, 33), (64, 3, 40)])
@pytest.mark.parametrize("form", ["tile", "strided", "column", "number"])
def test_every_element_comes_from_one_side_bit_by_bit(rng, dtype, shape, form):
    kind = resolve(dtype).storage
    chosen, other = (
        rng.integers(0, 256, (*shape, kind.itemsize), np.uint8).view(kind)[..., 0] for _ in range(2)
    )
    other = {
        "tile": other,
        "strided": other[..., ::-1],
        "column": other.reshape(shape[0], -1)[:, :1].reshape((-1,) + (1,) * (len(shape) - 1)),
        "number": kind.type(3),
    }[form]
    mask = rng.integers(0, 2, shape).astype(np.bool_)

    picked = choose(mask, chosen, other)

    expected = np.where(mask, chosen, np.broadcast_to(other, shape))
    assert picked.tobytes() == expected.tobytes()


def test_a_mask_may_be_wider_than_the_tiles():
    mask = np.arange(4096).reshape(4, 1024) % 3 == 0

    picked = choose(mask, np.float32([[1]]), np.float32([[2]]))  # pyrefly: ignore

    assert (picked == np.where(mask, 1, 2)).all()
