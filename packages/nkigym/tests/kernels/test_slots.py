"""Tiles with a place per iteration: accesses stay in their rows, however their offsets are written,
and are rejected where that is not known.
"""

import numpy as np
import pytest
from packages.nkigym.tests.loop_running import given

from neuroncore.program import check, execute_program, parse_program
from nkigym.checker import check_kernels, check_step
from nkigym.transforms import TransformError, TransformStep, apply, certify, opportunities
from nkigym.tuning.execution import run_program

TILES = """\
program("trn2", "0.6")
def f(x: float32[256, 64]):
    out = buffer(float32[256, 64], shared_hbm)
    for m in range(0, 2):
        for i in range(2):
            t = buffer(float32[64, 64], sbuf)
            dma_copy(dst=t[:, :], src=x[128*m + 64*i : 128*m + 64*i + 64, :])
            for j in range({range}):
                dma_copy(dst=out[128*m + 64*i + 32 : 128*m + 64*i + 64, {to}], src=t[32:64, {at}])
    return out
"""
PLACES = {  # the columns of an iteration, as the program writes them
    "from one": ("1, 5", "16*j - 16 : 16*j", "16*j - 16 : 16*j"),
    "down": ("4", "48 - 16*j : 64 - 16*j", "48 - 16*j : 64 - 16*j"),
    "down from a row": ("1, 5", "64 - 16*j : 80 - 16*j", "64 - 16*j : 80 - 16*j"),
    "far away": ("96, 100", "16*j - 1536 : 16*j - 1520", "16*j - 1536 : 16*j - 1520"),
    "by twos": ("2, 10, 2", "8*j - 16 : 8*j", "8*j - 16 : 8*j"),
    "of a loop outside": ("2", "16*j + 32*m : 16*j + 32*m + 16", "16*j + 32*m : 16*j + 32*m + 16"),
    "against each other": ("2", "16*j : 16*j + 16", "16*j - 32*m + 32 : 16*j - 32*m + 48"),
    "of the loop itself": ("2", "16*j : 16*j + 16", "16*j + 32*i : 16*j + 32*i + 16"),
}
STEPS = [
    TransformStep("expand", (1, 0), (("buffer", "t"),)),
    TransformStep("rotate", (1, 0), (("slots", 2), ("space", "sbuf"))),
    TransformStep("distribute", (1, 0), (("cut", 2),)),
    TransformStep("hoist", (1, 0, 1)),
    TransformStep("sink", (1, 0, 2)),
    TransformStep("pipeline", (1, 0), (("cuts", "2"), ("order", "0,1"))),
    TransformStep("split", (1, 0, 2), (("factor", 2),)),
    TransformStep("peel", (1, 0, 2)),
]


def expected(array, numbers, to, at):
    """By slices of Python, iteration by iteration."""
    out = np.full(array.shape, np.nan)
    for m in range(2):
        for i in range(2):
            for j in numbers:
                first = 128 * m + 64 * i
                names = {"m": m, "i": i, "j": j}
                into, source = (
                    slice(*(eval(end, names) for end in part.split(":"))) for part in (to, at)
                )
                rows = slice(first + 32, first + 64)
                out[rows, into] = array[rows, source]
    return out


def steps_of(program):
    offered = opportunities(program)
    return [step for step in STEPS if step in offered]


EXPANDING = [
    TransformStep("expand", (1,), (("buffer", "t"),)),
    TransformStep("rotate", (1,), (("slots", 2), ("space", "sbuf"))),
    TransformStep("distribute", (1,), (("cut", 2),)),
]


@pytest.mark.parametrize("place", PLACES)
def test_columns_stay_in_their_partitions(place):
    numbers, to, at = PLACES[place]
    start = parse_program(TILES.format(range=numbers, to=to, at=at))
    check(start)
    inputs = given(start, low=-999, high=999)
    wanted = expected(inputs[0].astype(np.float64), range(*map(int, numbers.split(","))), to, at)
    np.testing.assert_array_equal(run_program(start, inputs)[0], wanted)

    taken = set()
    for first in [None, *steps_of(start)]:
        program = start if first is None else apply(start, first)
        for step in steps_of(program):
            try:
                after = apply(program, step)
            except TransformError:
                assert first is not None
                continue
            taken.add(step.transform)
            check(after)
            assert check_step(certify(program, step).to_json()) == []
            assert check_kernels(start, after) == []
            np.testing.assert_array_equal(run_program(after, inputs)[0], wanted, f"{first}, {step}")
    assert taken >= {"expand", "rotate", "distribute", "hoist", "sink", "pipeline"}


UNCLEAR = """\
program("trn2", "0.6")
def f(x: float32[128, 64]):
    out = buffer(float32[128, 64], shared_hbm)
    for i in range(2):
        t = buffer(float32[64, 64], sbuf)
        dma_copy(dst=t[:, :], src=x[64*i : 64*i + 64, :])
        for j in range({}):
            dma_copy(dst=out[64*i : 64*i + 32, 0:16], src=t.ap([[64, 32], [1, 16]], {}))
    return out
"""
REJECTED = {
    "over the end of a row": ("4", "32*j", "one partition"),
    "from the row before": ("4", "-16*j + 16", "one partition"),
    "at the wrong values": ("96, 98", "16*j - 1560", "one partition"),
    "in the middle of what is copied": ("2", "16*j + 40", "one partition"),
    "columns and partitions at once": ("2", "80*j", "at once"),
}


@pytest.mark.parametrize("numbers, offset, why", REJECTED.values(), ids=list(REJECTED))
def test_what_may_be_in_two_partitions_is_rejected(numbers, offset, why):
    program = parse_program(UNCLEAR.format(numbers, offset))

    for step in EXPANDING:
        with pytest.raises(TransformError, match=why):
            apply(program, step)


NAMES = """\
program("trn2", "0.6")
def f(x: float32[128, 64]):
    out = buffer(float32[128, 64], shared_hbm)
    for i in range(2):
        t = buffer(float32[64, 64], sbuf)
        dma_copy(dst=t[:, :], src=x[64*i : 64*i + 64, :])
        for j in range(2):
            for k in range(8, 10):
                dma_copy(dst=out[64*i : 64*i + 64, 16*k - 128 : 16*k - 112],
                         src=t[:, 16*k - 128 : 16*k - 112])
            for k in range(2, 4):
                dma_copy(dst=out[64*i : 64*i + 64, 16*k : 16*k + 16], src=t[:, 16*k : 16*k + 16])
    return out
"""


def test_a_variable_has_the_values_of_the_loop_around():
    start = parse_program(NAMES)
    x = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)

    for program in (start, *(apply(start, step) for step in EXPANDING)):
        (found,) = execute_program(program, [x.copy()])
        np.testing.assert_array_equal(found, x)


GATHERED = """\
program("trn2", "0.6")
def f(x: float32[256, 64], rows: int32[128, 1]):
    out = buffer(float32[256, 64], shared_hbm)
    at = buffer(int32[128, 1], sbuf)
    dma_copy(dst=at[:, :], src=rows[:, :])
    for i in range(2):
        t = buffer(float32[128, 64], private_hbm)
        a = buffer(float32[128, 64], sbuf)
        dma_copy(dst=a[:, :], src=x[128*i : 128*i + 128, :])
        dma_copy(dst=t[:, :], src=a[:, :])
        b = buffer(float32[128, 64], sbuf)
        dma_copy(dst=b[:, :], src=t.ap([[64, 128], [1, 64]], vector_offset=at[:, :], dim=0))
        dma_copy(dst=out[128*i : 128*i + 128, :], src=b[:, :])
    return out
"""


def test_an_index_along_a_dimension_that_moves_is_rejected():
    start = parse_program(GATHERED)
    check(start)
    x = np.arange(256 * 64, dtype=np.float32).reshape(256, 64)
    rows = np.random.default_rng(1).integers(0, 128, (128, 1)).astype(np.int32)

    (found,) = execute_program(start, [x.copy(), rows])

    wanted = x.reshape(2, 128, 64)[:, rows[:, 0]].reshape(256, 64)
    np.testing.assert_array_equal(found, wanted)
    with pytest.raises(
        TransformError, match="an index that is read on the device moves an access to t"
    ):
        apply(start, TransformStep("expand", (3,), (("buffer", "t"),)))
