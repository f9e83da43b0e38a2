"""Sums of few elements, and products of each batch with a vector of its own."""

from __future__ import annotations

import numpy as np
import pytest

from nkigen_lite.compiler.compile import compile


def squared_distances(a, b):
    return ((a[:, None] - b[None]) ** 2).sum(-1)


def overlap(a, b):
    low, high = np.maximum(a[:, None, :2], b[None, :, :2]), np.minimum(a[:, None, 2:], b[:, 2:])
    return np.maximum(high - low, 0).prod(-1)


def experts(x, w, p):
    return np.einsum("etd,te->td", np.einsum("td,edf->etf", x, w), p)


def rows(x, w):
    return np.einsum("nd,nd->n", x, w)


KERNELS = [
    (squared_distances, ((129, 3), (127, 3)), 11, 7.3),
    (overlap, ((129, 4), (33, 4)), 30, 20),
    (experts, ((130, 64), (4, 64, 64), (130, 4)), 45, 14.5),
    (rows, ((513, 4), (513, 4)), 6, 3.7),
    (rows, ((512, 1024), (512, 1024)), 6, 23.2),
    (np.matmul, ((513, 3, 3), (513, 3, 3)), 18, 5.8),
    (np.matmul, ((64, 8, 8), (64, 8, 8)), 24, 8.5),
    (lambda a, b: np.einsum("bij,bj->bi", a, b), ((64, 16, 16), (64, 16)), 48, 6.9),
    (lambda a, b: np.einsum("bij,bi->bj", a, b), ((64, 16, 16), (64, 16)), 48, 7.0),
]


@pytest.mark.parametrize(("function", "shapes", "dmas", "most_us"), KERNELS)
def test_short_sums_are_a_few_transfers(
    assert_lowers_right, normal, function, shapes, dmas, most_us
):
    made = compile(function, *(f"f32[{','.join(map(str, shape))}]" for shape in shapes))
    assert made.stats.dmas <= dmas
    assert made.stats.predicted_us <= most_us
    assert_lowers_right(function, *(normal(*shape) for shape in shapes))


@pytest.mark.parametrize("op", ["sum", "max", "min", "prod", "mean"])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("count", [2, 5, 16, 17])
def test_every_reduction_of_few_elements(assert_lowers_right, normal, op, keepdims, count):
    def f(a, b):
        return getattr(a[:, None] * 2 - b[None], op)(-1, keepdims=keepdims)

    assert_lowers_right(f, normal(40, count), normal(33, count))


def test_operands_without_the_axis(assert_lowers_right, normal):
    assert_lowers_right(
        lambda a, b, c: (np.abs(a[:, None] - b) * c[:, None]).sum(-1),
        normal(129, 3), normal(3), normal(64, 129, 1),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((17, 5, 1), (17, 1, 4)),
        ((2, 9, 3, 5), (2, 9, 5, 2)),
        ((5, 1, 7), (5, 7, 1)),
        ((2, 3, 4, 7), (2, 3, 7, 1)),
        ((6, 1, 9), (6, 9, 5)),
    ],
    ids=str,
)
def test_products_of_each_batch_with_a_vector(assert_lowers_right, normal, dtype, left, right):
    a, b = (normal(*shape).astype(np.float32) for shape in (left, right))
    if dtype == "bfloat16":
        import ml_dtypes

        a, b = a.astype(ml_dtypes.bfloat16), b.astype(ml_dtypes.bfloat16)
    else:
        a, b = a.astype(dtype), b.astype(dtype)
    assert_lowers_right(lambda a, b: a @ b, a, b)
