"""tensor_copy_predicated, select_reduce and range_select against NumPy selection in float64."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.enums import ReduceCmd
from neuroncore.errors import DTypeError, UnsupportedError

FLOAT32_MIN = -(2.0**128) + 2.0**104
COMPARES = {
    "equal": np.equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}


# -- tensor_copy_predicated -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e5m2", "int32", "uint8"])
@pytest.mark.parametrize("predicate", ["uint8", "uint16", "uint32"])
@pytest.mark.parametrize("reverse", [False, True])
def test_chosen_elements_are_copied_and_the_others_stay(
    world, nisa, rng, values, dtype, predicate, reverse
):
    old, new = (world.tile(rng.integers(0, 100, (4, 6)), dtype) for _ in range(2))
    before, chosen = values(old), rng.integers(0, 3, (4, 6))

    nisa.tensor_copy_predicated(old, new, world.tile(chosen, predicate), reverse)

    where = (chosen == 0) if reverse else (chosen != 0)
    np.testing.assert_array_equal(values(old), np.where(where, values(new), before))


@pytest.mark.parametrize(
    ("dtype", "number", "stored"),
    [("float32", 0.1, np.float32(0.1)), ("int32", 2**31 - 1, 2**31 - 1), ("int8", 300, 127)],
)
def test_a_number_is_rounded_to_dst(world, nisa, values, dtype, number, stored):
    dst = world.tile([[1, 2]], dtype)

    nisa.tensor_copy_predicated(dst, number, world.tile([[0, 1]], "uint8"))

    assert values(dst)[0].tolist() == [1, stored]


def test_fresh_memory_keeps_its_poison_where_nothing_is_chosen(world, nisa, values):
    dst = world.new((1, 3))

    nisa.tensor_copy_predicated(dst, 5.0, world.tile([[1, 0, 1]], "uint8"))

    np.testing.assert_array_equal(values(dst), [[5, np.nan, 5]])


def test_nans_are_copied_bit_by_bit(world, nisa):
    bits = np.array([[0x7F812345, 0x7FC00001]], np.uint32)
    dst, src = world.tile([[0.0, 0.0]]), world.core.adopt(bits.view(np.float32))
    on_chip = world.new((1, 2))
    nisa.dma_copy(on_chip, src)

    nisa.tensor_copy_predicated(dst, on_chip, world.tile([[1, 1]], "uint8"))

    assert dst.array.view(np.uint32).tolist() == bits.tolist()


# -- select_reduce --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3", "int8"])
@pytest.mark.parametrize("predicate", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("form", ["number", "tile"])
def test_the_maximum_is_of_selected_values_before_rounding(
    world, nisa, rng, values, rounded, dtype, predicate, form
):
    on_true, chosen = world.tile(rng.normal(0, 9, (4, 6))), rng.integers(0, 2, (4, 6))
    on_false = -0.3 if form == "number" else world.tile(rng.normal(0, 9, (4, 1)))
    dst, top = world.new((4, 6), dtype), world.new((4, 1))

    nisa.select_reduce(
        dst, world.tile(chosen, predicate), on_true, on_false, top, ReduceCmd.reset_reduce
    )

    other = np.float64(np.float32(-0.3)) if form == "number" else values(on_false)
    exact = np.where(chosen != 0, values(on_true), other)
    np.testing.assert_array_equal(values(dst), rounded(exact, dtype))
    np.testing.assert_array_equal(values(top), exact.max(1, keepdims=True))


def test_a_maximum_continues_over_tiles_until_idle_leaves_it_undefined(world, nisa, values):
    ones, top = world.tile([[1, 1]], "uint8"), world.new((1, 1))

    def maximum(x, command):
        nisa.select_reduce(world.new((1, 2)), ones, world.tile([x]), 0.0, top, command)
        return values(top).item()

    assert maximum([1.0, 7.0], ReduceCmd.reset_reduce) == 7
    assert maximum([2.0, 3.0], ReduceCmd.reduce) == 7
    assert np.isnan(maximum([2.0, 3.0], ReduceCmd.idle))
    assert np.isnan(maximum([2.0, 3.0], ReduceCmd.reduce))
    assert maximum([2.0, 3.0], ReduceCmd.reset_reduce) == 3


@pytest.mark.parametrize("dtype", ["int32", "uint32", "tfloat32"])
def test_wide_integers_are_not_selected(world, nisa, dtype):
    tile = world.tile([[1, 2]], dtype)

    with pytest.raises(DTypeError, match=f"on_true is {dtype}"):
        nisa.select_reduce(world.new((1, 2)), world.tile([[1, 1]], "uint8"), tile, 0.0)


# -- range_select ---------------------------------------------------------------------------------


@pytest.mark.parametrize("first", COMPARES)
@pytest.mark.parametrize("second", COMPARES)
def test_places_are_compared_with_both_bounds(world, nisa, rng, values, first, second):
    tile, start = world.tile(rng.normal(0, 1, (4, 9))), 100
    low, high = (world.tile(rng.integers(98, 111, (4, 1))) for _ in range(2))
    dst, top = world.new((4, 9)), world.new((4, 1))

    nisa.range_select(dst, tile, first, second, low, high, reduce_res=top, range_start=start)

    k = start + np.arange(9)
    inside = COMPARES[first](k, values(low)) & COMPARES[second](k, values(high))
    exact = np.where(inside, values(tile), FLOAT32_MIN)
    np.testing.assert_array_equal(values(dst), exact)
    np.testing.assert_array_equal(values(top), exact.max(1, keepdims=True))


def test_places_run_over_flattened_free_dimensions(world, nisa, values):
    tile, dst = world.tile(np.arange(6.0).reshape(1, 2, 3)), world.new((1, 6))

    nisa.range_select(dst, tile, "greater", "less_equal", world.tile([[1.0]]), world.tile([[4.0]]))

    assert values(dst)[0, 2:5].tolist() == [2, 3, 4]
    assert (values(dst)[0, [0, 1, 5]] == FLOAT32_MIN).all()


def test_a_masked_row_is_minus_infinity_in_bfloat16_and_its_maximum_is_finite(world, nisa, values):
    dst, top, none = world.new((1, 2), "bfloat16"), world.new((1, 1)), world.tile([[9.0]])

    nisa.range_select(dst, world.tile([[1.0, 2.0]]), "greater", "less", none, none, reduce_res=top)

    assert values(dst)[0].tolist() == [-np.inf, -np.inf]
    assert values(top).item() == FLOAT32_MIN


def test_running_maxima_of_tiles_share_the_registers_of_select_reduce(world, nisa, values):
    low, high, top = world.tile([[0.0]]), world.tile([[9.0]]), world.new((1, 1))

    nisa.range_select(
        world.new((1, 2)), world.tile([[5.0, 1.0]]), "greater_equal", "less", low, high
    )
    nisa.select_reduce(
        world.new((1, 2)), world.tile([[1, 1]], "uint8"), world.tile([[2.0, 3.0]]), 0.0, top,
        ReduceCmd.reduce,
    )  # fmt: skip

    assert values(top).item() == 5


def test_02_ignored_the_command_so_it_is_rejected(world, nisa_02):
    tile, bound = world.tile([[1.0, 2.0]]), world.tile([[0.0]])

    nisa_02.range_select(tile, tile, "greater", "less", bound, bound)
    with pytest.raises(UnsupportedError, match=r"reduce_cmd idle in NKI 0\.2"):
        nisa_02.range_select(tile, tile, "greater", "less", bound, bound, ReduceCmd.idle)
