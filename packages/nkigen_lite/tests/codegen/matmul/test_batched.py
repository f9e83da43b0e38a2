"""Products of many small matrices: blocks of batches by few transfers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from nkigen_lite.compiler.compile import compile


def product(a, b):
    return a @ b


def transposed(r, p):
    return r[:, None] @ p[None, :, :, None]


def scores(q, k):
    return np.einsum("bhd,bhkd->bhk", q, k)


def mixed(p, v):
    return np.einsum("bhk,bhkd->bhd", p, v)


def left_transposed(a, b):
    return np.swapaxes(a, -1, -2) @ b


def right_transposed(a, b):
    return a @ np.swapaxes(b, -1, -2)


FEW = [
    (product, ((513, 3, 3), (1, 3, 3)), 6, 4.5),
    (product, ((129, 1, 4, 4), (3, 4, 4)), 6, 5),
    (transposed, ((65, 3, 3), (33, 3)), 3, 5),
    (product, ((256, 8, 8), (256, 8, 8)), 3, 9),
    (product, ((256, 9, 9), (256, 9, 9)), 6, 11),
    (product, ((256, 16, 16), (256, 16, 16)), 6, 37),
    (product, ((16, 16), (256, 16, 16)), 12, 23),
    (product, ((128, 32, 8), (128, 8, 32)), 12, 37),
    (product, ((16, 64, 64), (16, 64, 64)), 12, 10),
    (scores, ((4, 8, 64), (4, 8, 129, 64)), 12, 16),
    (mixed, ((4, 8, 129), (4, 8, 129, 64)), 20, 15),
    (left_transposed, ((256, 12, 12), (256, 12, 12)), 6, 18),
    (right_transposed, ((256, 12, 12), (256, 12, 12)), 6, 18),
]


@pytest.mark.parametrize(("function", "shapes", "dmas", "most_us"), FEW)
def test_many_products_are_a_few_transfers(
    assert_lowers_right, normal, function, shapes, dmas, most_us
):
    arrays = [normal(*shape, seed=n) for n, shape in enumerate(shapes)]

    made = assert_lowers_right(function, *arrays)

    assert made.stats.dmas <= dmas
    assert made.stats.predicted_us <= most_us


def test_code_does_not_grow_with_the_batches():
    lines = [
        compile(product, f"f32[{n},5,5]", f"f32[{n},5,5]").source.count("\n")
        for n in (1024, 65536)
    ]  # fmt: skip
    assert lines[1] <= lines[0] + 4


@pytest.mark.parametrize(
    ("left", "right", "dmas"),
    [((16, 2, 2), (16, 2, 3), 70), ((1, 4, 2, 2), (4, 1, 2, 3), 70), ((65, 9, 9), (65, 9, 9), 70)],
    ids=str,
)
def test_products_of_integers_are_as_many_transfers(exactly, left, right, dmas):
    rng = np.random.default_rng(3)
    limit = np.iinfo(np.int32)
    a, b = (rng.integers(limit.min, limit.max, s, np.int32) for s in (left, right))

    assert exactly(product, a, b).stats.dmas <= dmas


def test_products_of_bytes_that_are_widened_first_are_no_strip(exactly):
    rng = np.random.default_rng(4)
    a, b = (rng.integers(0, 255, (257, 9, 9)).astype(np.uint8) for _ in range(2))

    assert exactly(product, a, b).stats.dmas <= 20


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((2, 3, 4), (5, 1, 4, 1)),
        ((7, 1, 1, 6), (3, 6, 5)),
        ((3, 1, 2, 1, 3), (1, 4, 2, 3, 2)),
        ((130, 1, 1), (130, 1, 1)),
        ((5, 20, 40), (5, 40, 20)),
        ((4, 1, 16, 24), (3, 24, 33)),
        ((3, 1, 200), (3, 200, 7)),
        ((40, 16, 1), (40, 1, 16)),
        ((2, 64, 700), (2, 700, 1)),
        ((3, 1, 9000), (3, 9000, 2)),
    ],
    ids=str,
)
def test_batches_that_broadcast(assert_lowers_right, normal, dtype, left, right):
    assert_lowers_right(product, normal(*left, dtype=dtype), normal(*right, seed=1, dtype=dtype))


def test_matrices_that_lie_otherwise(assert_lowers_right, normal):
    """Axes in another order, other steps, backwards, the same matrix again."""
    a, b = normal(6, 70, 5), normal(6, 5, 70, seed=1)

    def f(a, b):
        left, right = a.transpose(1, 2, 0), b.transpose(2, 0, 1)
        again = np.broadcast_to(a[0, :5], (4, 5, 5))
        return left @ right, left[::2] @ right[1::2], left[::-1] @ right, again @ again

    assert_lowers_right(f, a, b)


@pytest.mark.parametrize("target", ["trn1", "trn3"])
@pytest.mark.parametrize("nki", ["0.2", "0.6"])
def test_every_machine_and_version(normal, target, nki):
    a, b = normal(40, 6, 6), normal(3, 1, 6, 6, seed=1)
    made = compile(product, a, b, target=target, nki=nki)
    exact = a.astype(np.float64) @ b
    assert np.allclose(made(a, b), exact, rtol=0, atol=6 * 2.0**-24 * (abs(a) @ abs(b)).max())


def test_numbers_that_are_none_stay_in_their_matrix():
    a = np.ones((150, 3, 3), np.float32)
    b = np.ones((150, 3, 3), np.float32)
    a[7, 0, 1], b[9, 2, 2] = np.nan, np.inf

    found = compile(product, a, b)(a, b)

    with np.errstate(invalid="ignore"):
        assert np.array_equal(found, a @ b, equal_nan=True)
