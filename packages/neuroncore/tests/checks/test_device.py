"""device: what runs here and a device rejects or leaves undefined."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.activations import ACTIVATIONS
from neuroncore.checks import Report
from neuroncore.checks.device import Device
from neuroncore.options import Options


@pytest.fixture
def watched(make_world):
    """A world that the device check watches, and its report."""
    report = Report()
    return make_world(options=Options(start_partition="ignore"), watchers=[Device(report)]), report


@pytest.mark.parametrize(
    ("start", "count", "legal"),
    [(0, 32, True), (32, 32, True), (16, 32, False), (64, 64, True), (32, 64, False)],
)
def test_start_partitions_are_those_that_hardware_addresses(watched, nisa, start, count, legal):
    world, report = watched
    t = world.tile(np.ones((128, 4)))

    nisa.tensor_copy(world.new((count, 4)), t[start : start + count])

    assert [f.operand for f in report] == ([] if legal else ["src"])


@pytest.mark.filterwarnings("ignore:.*tiles columns")
@pytest.mark.parametrize(("columns", "legal"), [(128, True), (64, False)])
def test_tiles_of_columns_are_an_error_as_the_parameters_say(watched, nisa, columns, legal):
    world, report = watched
    x = world.tile(np.ones((8, 2)))

    nisa.nc_matmul(
        world.new((2, 2), space="psum"), x, x, tile_position=(0, 0), tile_size=(128, columns)
    )

    assert [f.operand for f in report] == ([] if legal else ["tile_position"])


def test_an_assumption_that_an_option_overrides_is_not_reported(make_world, nisa):
    report = Report()
    world = make_world(options=Options(column_tiling="ignore"), watchers=[Device(report)])
    x = world.tile(np.ones((8, 2)))

    nisa.nc_matmul(world.new((2, 2), space="psum"), x, x, tile_position=(0, 0), tile_size=(128, 64))

    assert not list(report)


RANGES = [
    # function, largest and smallest that the documents allow
    ("sin", -np.pi, np.pi),
    ("arctan", -np.pi / 2, np.pi / 2),
    ("log", 2.0**-64, 2.0**64),
    ("sqrt", 2.0**-116, 2.0**118),
    ("rsqrt", 2.0**-87, 2.0**97),
]


@pytest.mark.parametrize(("function", "low", "high"), RANGES, ids=[r[0] for r in RANGES])
def test_values_that_reach_a_table_stay_in_its_range(watched, nisa, function, low, high):
    world, report = watched
    ends = [np.nextafter(np.float32(end), np.float32(1)) for end in (low, high)]
    inside = world.tile(np.array([[*ends, 1.0]]))
    nisa.activation(dst=world.new((1, 3)), op=ACTIVATIONS[function], data=inside)
    assert list(report) == []

    nisa.activation(
        dst=world.new((1, 2)), op=ACTIVATIONS[function], data=world.tile([[1.0, high * 1.01]])
    )
    (found,) = report
    assert found.code == "range"
    assert found.message == f"{function} of 1 of 2 elements outside its valid range"
    assert found.got.startswith(f"outside: {np.float32(high * 1.01):g} to ")


def test_the_range_is_of_scaled_and_biased_data(watched, nisa):
    world, report = watched
    data, dst = world.tile([[1.0, 2.0]]), world.new((1, 2))

    nisa.activation(dst=dst, op=ACTIVATIONS["sin"], data=data, scale=-1.0, bias=4.0)
    assert list(report) == []
    nisa.activation(dst=dst, op=ACTIVATIONS["sin"], data=data, scale=-1.0, bias=4.5)
    (found,) = report
    assert found.got == "outside: 3.5 to 3.5; all: 2.5 to 3.5"


def test_the_range_of_activate2_is_of_what_its_operations_give(make_world, nisa):
    report = Report()
    world = make_world("trn3", watchers=(Device(report),))
    data, dst = world.tile([[1.0, 2.0]]), world.new((1, 2))

    nisa.activate2(dst, "sin", data, 1.0, 5.0, "multiply", "subtract", reverse1=True)
    (found,) = report
    assert found.got == "outside: 4 to 4; all: 3 to 4"
    assert found.expected is not None
    assert "op1(op0(data))" in found.expected


@pytest.mark.parametrize(("value", "legal"), [(2.0**-42, True), (-(2.0**-43), False)])
def test_reciprocal_bounds_the_magnitude(watched, nisa, value, legal):
    world, report = watched

    nisa.activation(dst=world.new((1, 1)), op=ACTIVATIONS["reciprocal"], data=world.tile([[value]]))

    assert (len(report) == 0) is legal


def test_a_nan_is_not_a_value_out_of_range(watched, nisa):
    world, report = watched

    nisa.activation(dst=world.new((1, 1)), op=ACTIVATIONS["log"], data=world.tile([[np.nan]]))

    assert list(report) == []


@pytest.mark.parametrize(("width", "legal"), [(32_767, True), (32_768, False)])
def test_strides_are_sixteen_bits(watched, nisa, width, legal):
    world, report = watched
    t = world.tile(np.ones((1, 2, width)))

    nisa.tensor_copy(world.new((1, 2)), t[0:1, 0:2, 0:1].reshape((1, 2)))

    assert (len(report) == 0) is legal


def test_four_free_dimensions_are_addressed(watched, nisa):
    world, report = watched
    permuted = world.tile(np.ones((2, 2, 3, 4, 5))).permute((0, 4, 2, 1, 3))

    nisa.tensor_copy(world.new(permuted.shape), permuted)

    assert list(report) == []


def test_five_scattered_free_dimensions_are_too_many(watched, nisa):
    world, report = watched
    t = world.tile(np.ones((2, 4, 4, 4, 4, 4)))

    view = t[0:2, 0:3, 0:3, 0:3, 0:3, 0:3]
    nisa.tensor_copy(world.new((2, 243)), view)

    assert [f.message for f in report] == [
        "src is a view of 6 dimensions",
        "src takes 5 free dimensions to address",
    ]


def test_dimensions_that_run_on_are_one(watched, nisa):
    world, report = watched
    t = world.tile(np.ones((2, 4, 4, 4, 4, 4)))

    nisa.tensor_copy(world.new((2, 1024)), t)

    assert [f.code for f in report] == ["rank"]
