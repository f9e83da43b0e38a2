"""Tile programs become kernel programs that the machine takes and that compute the same."""

import random

import numpy as np
import pytest

from neuroncore.program import calls, check, execute_program, print_program, reroll
from nkigym import exhaust, matmul_root, rewrite_graph
from nkigym.tiles import parse_tiles
from nkigym.tiles.lowering import LoweringError, live, lower

SPACES = [(2, 1, 2), (1, 2, 2), (2, 2, 2), (1, 1, 4)]

ROOT_AS_LOOPS = """\
program("trn2", "0.7")
def f(A: float32[256, 256], B: float32[256, 256]):
    output = buffer(float32[256, 256], shared_hbm)
    for i in range(2):
        for j in range(2):
            t2 = buffer(float32[128, 128], psum)
            for k in range(2):
                t0 = buffer(float32[128, 128], sbuf)
                dma_copy(dst=t0[:, :], src=A[128*k : 128*k + 128, 128*i : 128*i + 128])
                t1 = buffer(float32[128, 128], sbuf)
                dma_copy(dst=t1[:, :], src=B[128*k : 128*k + 128, 128*j : 128*j + 128])
                nc_matmul(dst=t2[:, :], stationary=t0[:, :], moving=t1[:, :])
            s5 = buffer(float32[128, 128], sbuf)
            tensor_copy(dst=s5[:, :], src=t2[:, :])
            dma_copy(dst=output[128*i : 128*i + 128, 128*j : 128*j + 128], src=s5[:, :])
    return output
"""


def some_programs(tiles, number):
    contraction, rows, columns = tiles
    space = rewrite_graph(matmul_root(rows=rows, columns=columns, contraction=contraction))
    nodes = list(exhaust(space).depths)
    chosen = random.Random(11).sample(nodes, min(number, len(nodes)))
    return [space.tile_program(node) for node in (*chosen, nodes[-1])]


def given(program):
    """Integers whose products and sums are exact in float32."""
    random_numbers = np.random.default_rng(2)
    return [
        random_numbers.integers(-64, 64, buffer.shape).astype(buffer.dtype.storage)
        for buffer in program.parameters
    ]


def assert_multiplies(program):
    left, right = given(program)
    (output,) = execute_program(program, [left, right])
    wanted = left.astype(np.int64).T @ right.astype(np.int64)
    assert (output.astype(np.float64) == wanted).all()


@pytest.mark.parametrize("tiles", SPACES)
def test_programs_are_legal_and_compute_the_product_rolled_or_not(tiles):
    for program in some_programs(tiles, 12):
        straight = lower(program)
        check(straight)
        assert_multiplies(straight)
        rolled = reroll(straight)
        check(rolled)
        assert_multiplies(rolled)


def test_the_root_rolls_into_three_loops():
    assert print_program(reroll(lower(matmul_root(2, 2, 2)))) == ROOT_AS_LOOPS


def test_a_root_of_1601_statements_rolls_into_the_same_loops():
    rolled = print_program(reroll(lower(matmul_root(8, 8, 8))))

    as_eight = ROOT_AS_LOOPS.replace("range(2)", "range(8)").replace("256]", "1024]")
    assert rolled == as_eight.replace("[256", "[1024").replace("s5", "s23")


def test_loads_without_readers_are_not_lowered():
    programs = some_programs((2, 2, 2), 200)
    dead = [program for program in programs if live(program) != program]

    assert dead
    for program in dead:
        less = live(program)
        loads = [s for s in less.statements if s.operator == "load"]
        stores = [s for s in less.statements if s.operator == "store"]
        copies = [c for c in calls(lower(program).body) if c.instruction == "dma_copy"]
        assert len(copies) == len(loads) + len(stores)
        assert live(less) == less


def test_bfloat16_tiles_add_up_in_float32():
    program = lower(matmul_root(rows=1, columns=1, contraction=2, dtype="bfloat16"))

    check(program)
    assert "t2 = buffer(float32[128, 128], psum)" in print_program(program)
    assert "t0 = buffer(bfloat16[128, 128], sbuf)" in print_program(program)


def test_a_sum_that_is_read_after_more_was_added_is_rejected():
    program = parse_tiles("""\
def f(A: float32[256, 128], B: float32[256, 256]):
    output = allocate(128, 256)
    t0 = A[0:128, 0:128]
    t1 = B[0:128, 0:128]
    t2 = nc_matmul(stationary=t0, moving=t1)
    t5 = nc_matmul(stationary=t0, moving=t1, accumulator=t2)
    output[0:128, 0:128] = t5
    output[0:128, 128:256] = t2
    return output
""")

    with pytest.raises(LoweringError, match="t2 is read after t5 has added to it"):
        lower(program)
