"""Value numbers of kernel programs say what running them says, of schedules and of mutants."""

import random
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from packages.nkigym.tests.loop_functions import SMALL
from packages.nkigym.tests.loop_running import outputs
from packages.nkigym.tests.transforms.test_composition import random_schedule

from neuroncore.errors import KernelError
from neuroncore.program import Access, Call, Loop, parse_program
from nki_dtypes import bfloat16
from nkigym.baseline import baseline_kernel
from nkigym.checker import check_kernels

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
def test_schedules_have_the_numbers_of_the_baseline_kernel(function):
    start = baseline_kernel(function, *SMALL[function])
    program, steps = random_schedule(start, 100)

    assert check_kernels(start, program) == [], [str(s) for s in steps]


def assert_verdicts_agree(function, count):
    start = baseline_kernel(function, *SMALL[function])
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
    start = baseline_kernel(function, *SMALL[function])
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


HEAD = """program("trn2", "0.6")
def f(x: float32[128, 128], y: int32[128, 128]):
    out = buffer(float32[128, 128], shared_hbm)
    whole = buffer(int32[128, 128], shared_hbm)
    a = buffer(float32[128, 128], sbuf)
    b = buffer(float32[128, 128], sbuf)
    n = buffer(int32[128, 128], sbuf)
    h = buffer(bfloat16[128, 128], sbuf)
    p = buffer(float32[128, 128], psum)
    dma_copy(dst=a[:, :], src=x[:, :])
    dma_copy(dst=b[:, :], src=x[:, :])
    dma_copy(dst=n[:, :], src=y[:, :])
    memset(dst=h[:, :], value=1.0)
    nc_matmul(dst=p[:, :], stationary=a[:, :], moving=b[:, :])
    {}
    tensor_copy(dst=h[:, :], src=b[:, :])
    dma_copy(dst=out[:, :], src=b[:, :])
    dma_copy(dst=whole[:, :], src=n[:, :])
    return out, whole
"""
ADD_N = "tensor_tensor(dst=n[:, :], data1=n[:, :], data2=n[:, :], op=add"
LESS = (
    "tensor_reduce(dst=b[:, 0:1], data=b[:, 1:3], op=subtract, axis=(1,)); "
    "memset(dst=b[:, 1:128], value=0.0)"
)
DIFFERENT = {
    "a DMA that adds": (
        "dma_copy(dst=b[:, :], src=x[:, :])", "dma_copy(dst=b[:, :], src=x[:, :], dst_rmw_op=add)",
    ),
    "exact and rounded sums": (f"{ADD_N}, engine=gpsimd)", f"{ADD_N}, engine=vector)"),
    "a rounded constant": (
        "memset(dst=b[:, :], value=0.1)",
        "memset(dst=h[:, :], value=0.1); tensor_copy(dst=b[:, :], src=h[:, :])",
    ),
    "the first less the others": (
        "tensor_copy(dst=b[:, 1:3], src=a[:, 0:2]); " + LESS,
        "tensor_copy(dst=b[:, 1:2], src=a[:, 1:2]); tensor_copy(dst=b[:, 2:3], src=a[:, 0:1]); "
        + LESS,
    ),
    "what a predicate leaves": (
        "memset(dst=b[:, :], value=1.0); "
        "tensor_copy_predicated(dst=b[:, :], src=a[:, :], predicate=n[:, :])",
        "memset(dst=b[:, :], value=2.0); "
        "tensor_copy_predicated(dst=b[:, :], src=a[:, :], predicate=n[:, :])",
    ),
}  # fmt: skip


def around(lines):
    return parse_program(HEAD.format(lines.replace("; ", "\n    ")))


@pytest.mark.parametrize("one, other", DIFFERENT.values(), ids=list(DIFFERENT))
def test_programs_that_differ_in_what_an_attribute_says_differ(one, other):
    (finding, *_) = check_kernels(around(one), around(other))
    assert check_kernels(around(one), around(one)) == []
    assert "differ" in finding.what


def test_a_sum_by_dma_is_the_sum_by_vector():
    one = around("dma_copy(dst=b[:, :], src=x[:, :], dst_rmw_op=add)")
    other = around("tensor_tensor(dst=b[:, :], data1=a[:, :], data2=b[:, :], op=add)")
    assert check_kernels(one, other) == []


def test_a_buffer_outside_of_its_loop_is_a_finding():
    inside = around(
        "for i in range(1):;     late = buffer(float32[128, 128], sbuf);"
        "     tensor_copy(dst=late[:, :], src=a[:, :])"
    )
    loop = next(s for s in inside.body if isinstance(s, Loop))
    n = inside.body.index(loop)
    late, copy = loop.body
    orders = [
        (replace(loop, body=(copy, late)),),
        (replace(loop, body=(late,)), copy),
    ]
    for made in orders:
        wrong = replace(inside, body=(*inside.body[:n], *made, *inside.body[n + 1 :]))
        (finding,) = check_kernels(inside, wrong)
        assert finding.what == "late is used outside its block"


def test_a_loop_variable_outside_of_its_loop_is_a_finding():
    inside = around(
        "for i in range(2):;     tensor_copy(dst=b[:, 64*i : 64*i + 64], src=a[:, 0:64])"
    )
    loop = next(s for s in inside.body if isinstance(s, Loop))
    n = inside.body.index(loop)
    wrong = replace(inside, body=(*inside.body[:n], *loop.body, *inside.body[n + 1 :]))

    (finding,) = check_kernels(inside, wrong)
    assert finding.what == "b is accessed by a variable without a loop"


def test_a_program_with_other_parameters_is_another():
    one = around("memset(dst=b[:, :], value=0.0)")
    first, *others = one.parameters
    (finding,) = check_kernels(
        one, replace(one, parameters=(replace(first, dtype=bfloat16), *others))
    )
    assert "its parameter 0: bfloat16[128, 128], not float32[128, 128]" in finding.what


def test_every_attribute_is_known_or_rejected():
    one = around("nc_matmul(dst=p[:, :], stationary=a[:, :], moving=b[:, :], perf_mode=double_row)")
    (finding,) = check_kernels(one, one)
    assert "nc_matmul with perf_mode=" in finding.what
