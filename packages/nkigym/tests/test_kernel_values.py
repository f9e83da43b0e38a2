"""Value numbers of kernel programs say what running them says, of schedules and of mutants."""

import random
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from packages.nkigym.tests.loop_functions import SMALL
from packages.nkigym.tests.loop_running import outputs
from packages.nkigym.tests.test_loops_compose import random_schedule

from neuroncore.errors import KernelError
from neuroncore.program import Access, Call, Loop, parse_program
from nkigym.checker import check_kernels
from nkigym.naive import naive

MUTANTS, MANY = 4, 40
FUNCTIONS = pytest.mark.parametrize("function", SMALL, ids=lambda f: f.__name__)


def runs_equal(before, program):
    """Whether it runs, writes everything and gives what `before` gave."""
    try:
        found = outputs(program)
    except KernelError:
        return False
    return all((a == b).all() for a, b in zip(before, found, strict=True))


def sites(body, at=()):
    """Every call with its place."""
    for n, statement in enumerate(body):
        if isinstance(statement, Loop):
            yield from sites(statement.body, (*at, n))
        elif isinstance(statement, Call):
            yield (*at, n), statement


def put(body, at, new):
    n, *rest = at
    inner = new if not rest else (replace(body[n], body=put(body[n].body, rest, new)),)
    return (*body[:n], *inner, *body[n + 1 :])


def mutants(program, chance):
    """A call left out; a tile taken from elsewhere in its buffer."""
    places = list(sites(program.body))
    for at, call in chance.sample(places, len(places)):
        yield replace(program, body=put(program.body, at, ()))
        for name, value in call.operands.items():
            if isinstance(value, Access) and not value.offset.is_constant:
                moved = replace(value.offset, terms=value.offset.terms[1:])
                wrong = replace(
                    call, operands={**call.operands, name: replace(value, offset=moved)}
                )
                yield replace(program, body=put(program.body, at, (wrong,)))


@FUNCTIONS
def test_schedules_have_the_numbers_of_the_naive_kernel(function):
    start = naive(function, *SMALL[function])
    program, steps = random_schedule(start, 100)

    assert check_kernels(start, program) == [], [str(s) for s in steps]


def assert_verdicts_agree(function, count):
    start = naive(function, *SMALL[function])
    before, program = outputs(start), random_schedule(start, 7, 5)[0]

    rejected = 0
    for mutant in islice(mutants(program, random.Random(1)), count):
        says_equal = check_kernels(start, mutant) == []
        assert says_equal == runs_equal(before, mutant), str(mutant)
        rejected += not says_equal
    assert rejected > 1


@FUNCTIONS
def test_numbers_and_runs_agree_on_mutants(function):
    assert_verdicts_agree(function, MUTANTS)


@pytest.mark.thorough
@pytest.mark.timeout(1800)
@FUNCTIONS
def test_numbers_and_runs_agree_on_many_mutants(function):
    assert_verdicts_agree(function, MANY)


@FUNCTIONS
def test_a_kernel_without_its_last_store_is_rejected(function):
    start = naive(function, *SMALL[function])
    at, call = list(sites(start.body))[-1]
    assert call.instruction == "dma_copy"

    (finding, *_) = check_kernels(start, replace(start, body=put(start.body, at, ())))

    assert f"elements of {start.results[-1]} differ" in finding.what


def test_rounding_twice_is_not_rounding_once():
    text = """program("trn2", "0.6")
def f(x: float32[128, 64]):
    out = buffer(float32[128, 64], shared_hbm)
    t = buffer({}[128, 64], sbuf)
    dma_copy(dst=t[:, :], src=x[:, :])
    dma_copy(dst=out[:, :], src=t[:, :])
    return out
"""
    exact, rounded = (parse_program(text.format(name)) for name in ("float32", "bfloat16"))

    assert np.isclose(outputs(exact)[0], outputs(rounded)[0]).all()  # small integers are exact
    assert check_kernels(exact, exact) == []
    assert "8192 elements of out differ" in check_kernels(exact, rounded)[0].what


CANNOT = {
    "out.ap([[64, 128], [1, 64]], dtype=uint16), src=t[:, :]": "not accessed by its elements",
    "out[:, :], src=t[:, :])\n    rng(dst=t[:, :]": "takes what comes next of a random",
}


@pytest.mark.parametrize("store, why", CANNOT.items(), ids=["bits", "random"])
def test_what_cannot_be_numbered_is_said(store, why):
    program = parse_program(f"""program("trn2", "0.6")
def f(x: uint32[128, 32]):
    out = buffer(uint32[128, 32], shared_hbm)
    t = buffer(uint32[128, 32], sbuf)
    dma_copy(dst=t[:, :], src=x[:, :])
    dma_copy(dst={store})
    return out
""")

    (finding,) = check_kernels(program, program)
    assert why in finding.what
