"""Legal steps compose: random schedules compute what the baseline kernel computes."""

import json
import random

import numpy as np
import pytest
from packages.nkigym.tests.loop_functions import SMALL
from packages.nkigym.tests.loop_running import outputs

from neuroncore.errors import CapacityError, ProgramError
from neuroncore.program import check, parse_program, print_program
from nkigym.baseline import baseline_kernel
from nkigym.checker import check_step
from nkigym.transforms import TransformError, TransformStep, certify, opportunities, replay, take

QUICK, THOROUGH = 6, 75


def random_schedule(program, seed, length=10):
    """Steps that are legal and leave the program within SBUF and PSUM, with their claims tried."""
    chance, steps = random.Random(seed), []
    for _ in range(4 * length):
        kinds = {}
        for step in opportunities(program):
            kinds.setdefault(step.transform, []).append(step)
        step = chance.choice(kinds[chance.choice(sorted(kinds))])
        try:
            taken = take(program, step).program
        except TransformError:
            continue
        if fits(taken):
            assert check_step(json.loads(json.dumps(certify(program, step).to_json()))) == [], step
            program, steps = taken, [*steps, step]
        if len(steps) == length:
            break
    return program, steps


def fits(program):
    """Whether it is within SBUF and PSUM; it must be legal in every other way."""
    try:
        check(program)
    except ProgramError as wrong:
        assert all(isinstance(e, CapacityError) for e in wrong.errors), wrong
        return False
    return True


def assert_schedules_compute_the_same(function, seeds):
    start = baseline_kernel(function, *SMALL[function])
    wanted = outputs(start)
    for seed in seeds:
        program, steps = random_schedule(start, seed)

        for got, want in zip(outputs(program), wanted, strict=True):
            assert not np.isnan(want).any()
            np.testing.assert_array_equal(got, want, f"seed {seed}: {[str(s) for s in steps]}")
        text = json.dumps([step.to_json() for step in steps])
        again = replay(start, [TransformStep.from_json(data) for data in json.loads(text)])
        assert print_program(again) == print_program(program)
        assert parse_program(print_program(program)) == program


@pytest.mark.parametrize("function", SMALL, ids=lambda f: f.__name__)
def test_random_schedules_compute_the_same(function):
    assert_schedules_compute_the_same(function, range(QUICK))


@pytest.mark.thorough
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("function", SMALL, ids=lambda f: f.__name__)
def test_many_random_schedules_compute_the_same(function):
    assert_schedules_compute_the_same(function, range(QUICK, QUICK + THOROUGH))
