"""nonzero_with_count against a loop over the elements."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.checks import Report
from neuroncore.checks.memory import Memory
from neuroncore.errors import (
    AttributeValueError,
    DTypeError,
    ShapeError,
    UnsupportedError,
)
from neuroncore.options import Options
from neuroncore.program import parse_program, verify
from neuroncore.timeline import estimate


def expected_row(row, offset, padding):
    places = [i + offset for i, value in enumerate(row) if value != 0]
    return [*places, *[padding] * (len(row) - len(places)), len(places)]


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("partitions", [1, 16, 17, 33, 128])
@pytest.mark.parametrize(("offset", "padding"), [(0, -1), (1000, 7), (-3, 0)])
def test_every_sixteenth_partition_is_searched(
    world, nisa, rng, dtype, partitions, offset, padding
):
    exact = rng.integers(-1, 2, (partitions, 5, 4)) * (0.25 if dtype == "float32" else 3)
    src = world.tile(exact.astype(int) if dtype == "int32" else exact, dtype)
    dst = world.tile(np.full((partitions, 21), 99), "int32")

    nisa.nonzero_with_count(dst, src, offset, padding)

    for p, row in enumerate(src.array.reshape(partitions, 20)):
        wanted = expected_row(row, offset, padding) if p % 16 == 0 else [99] * 21
        assert dst.array[p].tolist() == wanted


def test_minus_zero_is_zero_and_nan_is_not(world, nisa):
    dst = world.new((1, 4), "int32")

    nisa.nonzero_with_count(dst, world.tile([[-0.0, np.nan, np.inf]]))

    assert dst.array.tolist() == [[1, 2, -1, 2]]


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [
        ("index_offset", 2**31 - 3, 2**31 - 2),
        ("index_offset", -(2**31), -(2**31) - 1),
        ("padding_val", 2**31 - 1, 2**31),
    ],
)
def test_all_numbers_fit_int32(world, nisa, name, inside, outside):
    dst, src = world.new((1, 4), "int32"), world.tile([[0.0, 0.0, 1.0]])

    nisa.nonzero_with_count(dst, src, **{name: inside})
    with pytest.raises(AttributeValueError, match="beyond int32"):
        nisa.nonzero_with_count(dst, src, **{name: outside})


@pytest.mark.parametrize(
    ("dst", "src", "error"),
    [
        (((1, 4), "int32"), ((1, 4), "float32"), ShapeError),
        (((1, 5), "float32"), ((1, 4), "float32"), DTypeError),
        (((1, 5), "int32"), ((1, 4), "bfloat16"), DTypeError),
    ],
)
def test_what_stands_just_outside_is_rejected(world, nisa, dst, src, error):
    with pytest.raises(error):
        nisa.nonzero_with_count(world.new(*dst), world.new(*src))


def test_it_came_with_gen3(make_world, nisa):
    old = make_world("trn1")

    with pytest.raises(UnsupportedError, match="trn1 has no nonzero_with_count"):
        nisa.nonzero_with_count(old.new((1, 2), "int32"), old.tile([[1.0]]))


# -- what is not touched --------------------------------------------------------------------------


def test_memory_looks_at_the_partitions_that_are_read(make_world, nisa):
    report = Report()
    world = make_world(watchers=[Memory(report)])
    src, dst = world.new((16, 4), "int32"), world.new((16, 5), "int32")

    nisa.memset(src[0:1, :], 1)
    nisa.nonzero_with_count(dst, src)
    nisa.tensor_copy(world.new((1, 5), "int32"), dst[0:1, :])
    assert list(report) == []

    nisa.tensor_copy(world.new((2, 5), "int32"), dst[0:2, :])
    (found,) = report
    assert found.message.startswith("src reads 5 of 10 elements")


PROGRAM = """\
program("trn2", "0.6")
def p(x: float32[16, 4]):
    src = buffer(float32[16, 4], sbuf)
    dst = buffer(int32[16, 5], sbuf)
    out = buffer(int32[2, 5], shared_hbm)
    dma_copy(dst=src[0:1, :], src=x[0:1, :])
    nonzero_with_count(dst=dst[:, :], src=src[:, :])
    dma_copy(dst=out[0:1, :], src=dst[0:1, :])
    dma_copy(dst=out[1:2, :], src=dst[ROW, :])
    return out
"""


@pytest.mark.parametrize(("row", "findings"), [("0:1", 0), ("1:2", 1)])
def test_a_program_reads_and_writes_the_same_partitions(row, findings):
    text = PROGRAM.replace("ROW", row)

    found = verify(parse_program(text), Options(start_partition="ignore"))

    assert len(found) == findings


def test_its_time_is_a_guess_and_the_estimate_says_so():
    timeline = estimate(parse_program(PROGRAM.replace("ROW", "0:1")), mode="as_written")

    assert timeline.uncertainty.domain["unknown cost"] == ["nonzero_with_count"]
