"""tensor_tensor_scan against a loop that rounds float64 results to float32 at every step."""

from __future__ import annotations

import numpy as np
import pytest

OPS = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "maximum": np.maximum,
    "greater": lambda x, y: (x > y) * 1.0,
}


def scanned(rounded, data0, data1, initial, op0, op1, reverse0=False, reverse1=False):
    """Every step in float64, rounded to float32: double rounding of + - × is innocuous here."""
    state = np.broadcast_to(np.asarray(initial, np.float64).reshape(-1), data0.shape[:1])
    columns = []
    for x, y in zip(data0.T, data1.T, strict=True):
        pair = (state, x) if reverse0 else (x, state)
        between = rounded(OPS[op0](*pair), "float32")
        pair = (y, between) if reverse1 else (between, y)
        state = rounded(OPS[op1](*pair), "float32")
        columns.append(state)
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("op0", OPS)
@pytest.mark.parametrize("op1", OPS)
@pytest.mark.parametrize("reverse0", [False, True])
@pytest.mark.parametrize("reverse1", [False, True])
def test_each_step_is_two_float32_operations(
    world, nisa, rng, values, rounded, op0, op1, reverse0, reverse1
):
    data0, data1 = (world.tile(rng.normal(0, 1, (3, 7))) for _ in range(2))
    initial, dst = world.tile(rng.normal(0, 1, (3, 1))), world.new((3, 7))

    nisa.tensor_tensor_scan(dst, data0, data1, initial, op0, op1, reverse0, reverse1)

    expected = scanned(
        rounded, values(data0), values(data1), values(initial), op0, op1, reverse0, reverse1
    )
    np.testing.assert_array_equal(values(dst), expected)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e5m2", "int8", "uint16"])
def test_the_state_stays_float32_and_only_results_are_rounded(
    world, nisa, rng, values, rounded, dtype
):
    data0 = world.tile(rng.uniform(0, 1.2, (4, 33)))
    data1 = world.tile(rng.integers(0, 5, (4, 33)), dtype)
    dst = world.new((4, 33), dtype)

    nisa.tensor_tensor_scan(dst, data0, data1, 0.25, "multiply", "add")

    exact = scanned(rounded, values(data0), values(data1), 0.25, "multiply", "add")
    np.testing.assert_array_equal(values(dst), rounded(exact, dtype))


def test_a_running_sum_of_bfloat16_ones_does_not_stop_at_256(world, nisa, values):
    ones, dst = world.tile(np.ones((1, 512)), "bfloat16"), world.new((1, 512))

    nisa.tensor_tensor_scan(dst, ones, ones, 0.0, "multiply", "add")

    assert values(dst)[0, -1] == 512


def test_the_scan_runs_over_flattened_free_dimensions_and_may_overwrite_its_input(world, nisa):
    t, ones = world.tile(np.arange(1.0, 7.0).reshape(1, 2, 3)), world.tile(np.ones((1, 6)))

    nisa.tensor_tensor_scan(t, ones, t, 0.0, "multiply", "add")

    assert t.array.ravel().tolist() == [1, 3, 6, 10, 15, 21]


@pytest.mark.parametrize("partitions", [1, 127, 128])
def test_every_partition_has_its_own_state(world, nisa, values, partitions):
    data = world.tile(np.ones((partitions, 3)))
    start, dst = world.tile(np.arange(float(partitions))[:, None]), world.new((partitions, 3))

    nisa.tensor_tensor_scan(dst, data, data, start, "multiply", "add")

    expected = np.arange(partitions)[:, None] + np.array([1, 2, 3])
    np.testing.assert_array_equal(values(dst), expected)


@pytest.mark.parametrize("steps", [1, 63, 64, 65, 128, 150])
def test_a_scan_of_any_length_takes_every_step_once(world, nisa, rng, values, rounded, steps):
    data0, data1 = (world.tile(rng.normal(0, 1, (128, steps))) for _ in range(2))
    dst = world.new((128, steps))

    nisa.tensor_tensor_scan(dst, data0, data1, 0.5, "multiply", "add")

    expected = scanned(rounded, values(data0), values(data1), 0.5, "multiply", "add")
    np.testing.assert_array_equal(values(dst), expected)


def test_a_scan_may_write_over_what_it_reads(world, nisa, rng, values, rounded):
    data0, data1 = (world.tile(rng.normal(0, 1, (128, 150))) for _ in range(2))
    expected = scanned(rounded, values(data0), values(data1), 0.5, "multiply", "add")

    nisa.tensor_tensor_scan(data1, data0, data1, 0.5, "multiply", "add")

    np.testing.assert_array_equal(values(data1), expected)
