"""topk against sorting in float64."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.errors import (
    AttributeValueError,
    DTypeError,
    MemorySpaceError,
    PartitionError,
    ShapeError,
)
from neuroncore.options import Options


def run(world, nisa, exact, n, k):
    partitions = len(exact)
    val_dst, idx_dst = world.new((partitions, k), "bfloat16"), world.new((partitions, k), "uint32")
    nisa.topk(val_dst, idx_dst, world.tile(exact, "bfloat16"), n)
    return val_dst.array.astype(float), idx_dst.array.astype(int)


def distinct(rng, partitions, columns):
    """Distinct numbers that bfloat16 holds exactly."""
    numbers = np.arange(-128, 128)
    whole = np.concatenate([numbers, numbers[128:] * 512.0])
    return rng.permutation(whole)[: partitions * columns].reshape(partitions, columns)


@pytest.mark.parametrize(("n", "k"), [(8, 1), (42, 8), (48, 48), (33, 33)])
@pytest.mark.parametrize("groups", [1, 3])
def test_the_largest_of_a_snake_come_ascending_with_their_numbers(world, nisa, rng, n, k, groups):
    exact = np.concatenate([distinct(rng, 16, 4) for _ in range(groups)])

    values, places = run(world, nisa, exact, n, k)

    for p in range(16 * groups):
        group = exact[p // 16 * 16 : p // 16 * 16 + 16]
        snake = [group[e % 16, e // 16] for e in range(n)]
        wanted = sorted(range(n), key=lambda e: snake[e])[-k:]
        assert places[p].tolist() == wanted
        assert values[p].tolist() == [snake[e] for e in wanted]


def test_an_option_ranks_the_elements_of_each_partition(make_world, nisa, rng):
    world = make_world(options=Options(topk_ranks="row"))
    exact = distinct(rng, 16, 4)

    values, places = run(world, nisa, exact, 56, 3)

    for p, row in enumerate(exact):
        own = row[: 4 if p < 8 else 3]  # 56 elements: three columns and a half
        wanted = sorted(range(len(own)), key=lambda i: own[i])[-3:]
        assert places[p].tolist() == [16 * i + p for i in wanted]
        assert values[p].tolist() == [own[i] for i in wanted]


def test_of_equal_values_the_first_are_taken(world, nisa):
    values, places = run(world, nisa, np.ones((16, 1)), 16, 2)

    assert places[5].tolist() == [1, 0]
    assert values[5].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("columns", "n", "k", "error", "message"),
    [
        (1, 8, 8, None, ""),
        (1, 7, 2, AttributeValueError, "n 7"),
        (1, 8, 9, ShapeError, "val_dst takes 9 of 8 elements"),
        (1, 16, 2, None, ""),
        (1, 17, 2, ShapeError, "src has 1 elements per partition"),
        (4096, 65535, 1, None, ""),
        (4096, 65536, 1, AttributeValueError, "n 65536"),
        (2048, 32768, 32767, None, ""),
        (2048, 32768, 32768, ShapeError, "val_dst takes 32768 of 32768"),
    ],
)
def test_n_and_k_have_documented_limits(make_world, nisa, columns, n, k, error, message):
    world = make_world("trn3")
    exact = np.zeros((16, columns))
    if error is None:
        assert run(world, nisa, exact, n, k)[0].shape == (16, k)
        return
    with pytest.raises(error, match=message):
        run(world, nisa, exact, n, k)


def test_a_row_has_fewer_elements_than_the_snake(make_world, nisa):
    world = make_world(options=Options(topk_ranks="row"))

    assert run(world, nisa, np.zeros((16, 2)), 32, 2)[0].shape == (16, 2)
    with pytest.raises(ShapeError, match="val_dst takes 2 of 1 elements"):
        run(world, nisa, np.zeros((16, 2)), 31, 2)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"src": ((24, 1), "bfloat16")}, PartitionError),
        ({"src": ((16, 1), "float32")}, DTypeError),
        ({"val_dst": ((16, 2), "float32")}, DTypeError),
        ({"idx_dst": ((16, 2), "int32")}, DTypeError),
        ({"idx_dst": ((16, 3), "uint32")}, ShapeError),
        ({"val_dst": ((16, 2), "bfloat16", "psum")}, MemorySpaceError),
    ],
)
def test_what_stands_just_outside_is_rejected(world, nisa, changes, error):
    given = {"val_dst": ((16, 2), "bfloat16"), "idx_dst": ((16, 2), "uint32"),
             "src": ((16, 1), "bfloat16")}  # fmt: skip

    with pytest.raises(error):
        nisa.topk(**{n: world.new(*t) for n, t in (given | changes).items()}, n=16)
