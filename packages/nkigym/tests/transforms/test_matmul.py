"""The baseline matmul, step by step, to one that keeps TensorE busy."""

import json

import numpy as np
import pytest
from packages.nkigym.tests.loop_kernels import matmul
from packages.nkigym.tests.loop_running import given, scheduled

from neuroncore.program import check, execute_program, print_program
from neuroncore.timeline import estimate
from nkigym.checker import check_step
from nkigym.transforms import TransformStep, certify, replay

BY_HAND = """
hoist m n k dma_copy
hoist m n k:1 dma_copy
split m factor=2
split m m1 n factor=2
reorder m m1
reorder m
hoist n m m1 n1 k
hoist n m m1 k
hoist n m m1:1 n1 k
hoist n m m1:1 n1
reorder n m m1
widen n m k m1
reorder n m n1
widen n m k:1 n1
hoist n m k:1
distribute n m m1 n1 before=tensor_copy
distribute n m m1 before=n1:1
reorder n m m1 n1
reorder n m m1
sink n m m1 n1 dma_copy
widen n m m1 n1:1
rotate n m slots=2 space=chip
peel n m
unroll n m2
join n k
rotate n slots=2 space=sbuf
"""
"""Blocks of 256 by 1024 in half of PSUM; half of the right operand stays in SBUF."""

SMALL = {"m": 8, "n": 4, "k": 2, "rows": 16, "columns": 32, "depth": 32}


@pytest.fixture(scope="module")
def small():
    return matmul(**SMALL)


def test_every_step_keeps_the_product(small):
    left, right = given(small)
    wanted = left.astype(np.float64).T @ right.astype(np.float64)
    _, steps = scheduled(small, BY_HAND)

    program = small
    for step in steps:
        program = replay(program, [step])
        check(program)
        (got,) = execute_program(program, [left, right])
        np.testing.assert_array_equal(got.astype(np.float64), wanted)


def test_a_schedule_replays_from_json_to_the_same_text(small):
    program, steps = scheduled(small, BY_HAND)

    text = json.dumps([step.to_json() for step in steps])
    again = replay(matmul(**SMALL), [TransformStep.from_json(data) for data in json.loads(text)])

    assert print_program(again) == print_program(program)


def test_every_certificate_holds(small):
    program, claims = small, 0
    for step in scheduled(small, BY_HAND)[1]:
        certificate = json.loads(json.dumps(certify(program, step).to_json()))
        assert check_step(certificate) == []
        claims += len(certificate["claims"])
        program = replay(program, [step])
    assert claims > 5


def test_the_schedule_keeps_tensor_engine_busy_at_full_size():
    """The target is 90 % of TensorE's peak at 2048³, bfloat16, as written."""
    program, _ = scheduled(matmul(m=16, n=4, k=16), BY_HAND)

    check(program)
    assert estimate(program, mode="as_written").mfu >= 0.9
