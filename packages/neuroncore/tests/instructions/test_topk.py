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
    UnsupportedError,
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


# -- from 0.7 on ----------------------------------------------------------------------------------

BEFORE = 7.0


def run_snakes(world, nisa, exact, n, k, **more):
    """val_dst and idx_dst after topk, which were filled with BEFORE."""
    filled = np.full((len(exact), k), BEFORE)
    val_dst, idx_dst = world.tile(filled, "bfloat16"), world.tile(filled, "uint32")
    nisa.topk(val_dst, idx_dst, world.tile(exact, "bfloat16"), n, **more)
    return val_dst.array.astype(float), idx_dst.array.astype(int)


@pytest.mark.parametrize(("n", "k"), [(8, 1), (42, 15), (42, 16), (42, 17), (48, 48)])
@pytest.mark.parametrize("groups", [1, 3])
def test_results_are_a_snake_over_the_partitions_of_a_group(world, nisa_07, rng, n, k, groups):
    exact = np.concatenate([distinct(rng, 16, 4) for _ in range(groups)])

    values, places = run_snakes(world, nisa_07, exact, n, k)

    written = np.zeros((16 * groups, k), bool)
    for first in range(0, 16 * groups, 16):
        snake = [exact[first + e % 16, e // 16] for e in range(n)]
        largest = sorted(range(n), key=lambda e: snake[e])[-k:]
        for j, e in enumerate(sorted(largest)):  # unsorted: in the order of the elements
            written[first + j % 16, j // 16] = True
            assert values[first + j % 16, j // 16] == snake[e]
            assert places[first + j % 16, j // 16] == e
    assert (values[~written] == BEFORE).all() and (places[~written] == BEFORE).all()


@pytest.mark.parametrize("order", ["ascending", "descending"])
@pytest.mark.parametrize("option", ["topk_order", "topk_sorted"])
def test_an_option_orders_the_results(make_world, nisa_07, rng, order, option):
    world, exact = make_world(options=Options(**{option: order})), distinct(rng, 16, 2)

    values, _ = run_snakes(world, nisa_07, exact, 32, 16, sorted=option == "topk_sorted")

    wanted = np.sort(exact.reshape(-1))[-16:]
    assert values[:, 0].tolist() == list(wanted if order == "ascending" else wanted[::-1])


def test_what_sorted_gives_is_not_guessed(world, nisa_07):
    with pytest.raises(UnsupportedError, match=r"sorted=True from 0\.7 on"):
        run_snakes(world, nisa_07, np.zeros((16, 1)), 16, 2, sorted=True)


def test_columns_behind_the_results_stay_poison(world, nisa_07, values):
    val_dst, idx_dst = world.new((16, 20), "bfloat16"), world.new((16, 20), "uint32")

    nisa_07.topk(val_dst, idx_dst, world.tile(np.zeros((16, 2)), "bfloat16"), 32)

    assert not np.isnan(values(val_dst)[:, 0]).any()
    assert np.isnan(values(val_dst)[:, 2:]).all()
