"""Each transform by its text before and after, and what it rejects, with the reason."""

from pathlib import Path

import pytest
from packages.nkigym.tests.loop_functions import SMALL, matmul
from packages.nkigym.tests.loop_running import outputs, scheduled

from neuroncore.program import Loop, check, parse_program, print_program
from nkigym.baseline import baseline_kernel
from nkigym.checker import CertificateFileError, check_step
from nkigym.transforms import (
    TRANSFORMS,
    TransformError,
    TransformStep,
    apply,
    certify,
    opportunities,
    take,
)
from nkigym.transforms.reuse import Match

HEAD = """\
program("trn2", "0.6")
def f(x: float32[256, 64], y: float32[256, 64]):
    out = buffer(float32[256, 64], shared_hbm)
"""
TILE = "128*i : 128*i + 128, :"


def program(body):
    lines = [f"    {line}" for line in body.strip("\n").splitlines()]
    return parse_program(HEAD + "\n".join([*lines, "    return out", ""]))


COPY = """
for i in range(2):
    t = buffer(float32[128, 64], sbuf)
    dma_copy(dst=t[:, :], src=x[128*i : 128*i + 128, :])
    dma_copy(dst=out[128*i : 128*i + 128, :], src=t[:, :])
"""

EXPANDED = """
t = buffer(float32[128, 2, 64], sbuf)
for i in range(2):
    dma_copy(dst=t[:, i, :], src=x[128*i : 128*i + 128, :])
    dma_copy(dst=out[128*i : 128*i + 128, :], src=t[:, i, :])
"""

CUT = """
t = buffer(float32[128, 2, 64], sbuf)
for i in range(2):
    dma_copy(dst=t[:, i, :], src=x[128*i : 128*i + 128, :])
for i in range(2):
    dma_copy(dst=out[128*i : 128*i + 128, :], src=t[:, i, :])
"""

WIDE = """
t = buffer(float32[128, 2, 64], sbuf)
dma_copy(dst=t[:, :, :], src=x.ap([[64, 128], [8192, 2], [1, 64]]))
for i in range(2):
    dma_copy(dst=out[128*i : 128*i + 128, :], src=t[:, i, :])
"""

WRITTEN_OUT = """
t = buffer(float32[128, 64], sbuf)
dma_copy(dst=t[:, :], src=x[0:128, :])
dma_copy(dst=out[0:128, :], src=t[:, :])
t1 = buffer(float32[128, 64], sbuf)
dma_copy(dst=t1[:, :], src=x[128:256, :])
dma_copy(dst=out[128:256, :], src=t1[:, :])
"""

PEELED = """
t = buffer(float32[128, 64], sbuf)
dma_copy(dst=t[:, :], src=x[0:128, :])
dma_copy(dst=out[0:128, :], src=t[:, :])
for i in range(1, 2):
    t1 = buffer(float32[128, 64], sbuf)
    dma_copy(dst=t1[:, :], src=x[128*i : 128*i + 128, :])
    dma_copy(dst=out[128*i : 128*i + 128, :], src=t1[:, :])
"""

OVERLAPPED = """
t = buffer(float32[128, 2, 64], sbuf)
dma_copy(dst=t[:, 0, :], src=x[0:128, :])
dma_copy(dst=t[:, 1, :], src=x[128:256, :])
dma_copy(dst=out[0:128, :], src=t[:, 0, :])
dma_copy(dst=out[128:256, :], src=t[:, 1, :])
"""

TWICE = """
for i in range(2):
    a = buffer(float32[128, 64], sbuf)
    dma_copy(dst=a[:, :], src=y[0:128, :])
    b = buffer(float32[128, 64], sbuf)
    dma_copy(dst=b[:, :], src=y[0:128, :])
    tensor_tensor(dst=b[:, :], data1=a[:, :], data2=b[:, :], op=add)
    dma_copy(dst=out[128*i : 128*i + 128, :], src=b[:, :])
"""

ONCE_READ = (
    TWICE.replace("dst=b[:, :], data1", "dst=c[:, :], data1")
    .replace("    tensor_tensor", "    c = buffer(float32[128, 64], sbuf)\n    tensor_tensor")
    .replace("src=b", "src=c")
)

REUSED = """
for i in range(2):
    a = buffer(float32[128, 64], sbuf)
    dma_copy(dst=a[:, :], src=y[0:128, :])
    c = buffer(float32[128, 64], sbuf)
    tensor_tensor(dst=c[:, :], data1=a[:, :], data2=a[:, :], op=add)
    dma_copy(dst=out[128*i : 128*i + 128, :], src=c[:, :])
"""

HOISTED = """
a = buffer(float32[128, 64], sbuf)
dma_copy(dst=a[:, :], src=y[0:128, :])
for i in range(2):
    c = buffer(float32[128, 64], sbuf)
    tensor_tensor(dst=c[:, :], data1=a[:, :], data2=a[:, :], op=add)
    dma_copy(dst=out[128*i : 128*i + 128, :], src=c[:, :])
"""

COPIED = """
for i in range(2):
    a = buffer(float32[128, 64], sbuf)
    dma_copy(dst=a[:, :], src=x[128*i : 128*i + 128, :])
    e = buffer(float32[128, 64], sbuf)
    activation(dst=e[:, :], data=a[:, :], scale=1.0, op=exp)
    b = buffer(float32[128, 64], sbuf)
    tensor_copy(dst=b[:, :], src=e[:, :])
    dma_copy(dst=out[128*i : 128*i + 128, :], src=b[:, :])
"""

BYPASSED = """
for i in range(2):
    a = buffer(float32[128, 64], sbuf)
    dma_copy(dst=a[:, :], src=x[128*i : 128*i + 128, :])
    e = buffer(float32[128, 64], sbuf)
    activation(dst=e[:, :], data=a[:, :], scale=1.0, op=exp)
    dma_copy(dst=out[128*i : 128*i + 128, :], src=e[:, :])
"""

HALVES = """
t = buffer(float32[128, 64], sbuf)
dma_copy(dst=t[:, 0:32], src=x[0:128, 0:32])
dma_copy(dst=t[:, 32:64], src=x[0:128, 32:64])
dma_copy(dst=out[0:128, :], src=t[:, :])
dma_copy(dst=out[128:256, :], src=t[:, :])
"""

WHOLE = """
t = buffer(float32[128, 64], sbuf)
dma_copy(dst=t[:, :], src=x[0:128, :])
dma_copy(dst=out[0:128, :], src=t[:, :])
dma_copy(dst=out[128:256, :], src=t[:, :])
"""

CUT_AGAIN = CUT.replace(
    "i in range(2):\n    dma_copy(dst=t", "part1 in range(2):\n    dma_copy(dst=t"
)
CUT_AGAIN = CUT_AGAIN.replace(
    "t[:, i, :], src=x[128*i : 128*i + 128, :]",
    "t[:, part1, :], src=x[128*part1 : 128*part1 + 128, :]",
)

HALVES_IN_A_LOOP = """
t = buffer(float32[128, 64], sbuf)
for part1 in range(2):
    dma_copy(dst=t[:, 32*part1 : 32*part1 + 32], src=x[0:128, 32*part1 : 32*part1 + 32])
dma_copy(dst=out[0:128, :], src=t[:, :])
dma_copy(dst=out[128:256, :], src=t[:, :])
"""

NESTED = """
t = buffer(float32[128, 64], sbuf)
dma_copy(dst=t[:, :], src=x[0:128, :])
for i in range(2):
    for j in range(4):
        dma_copy(dst=out[128*i : 128*i + 128, 16*j : 16*j + 16], src=t[:, 16*j : 16*j + 16])
"""

TRANSPOSED = """
t = buffer(float32[128, 64], sbuf)
dma_copy(dst=t[:, :], src=x[0:128, :])
for j in range(4):
    for i in range(2):
        dma_copy(dst=out[128*i : 128*i + 128, 16*j : 16*j + 16], src=t[:, 16*j : 16*j + 16])
"""

HALVED = (
    TRANSPOSED.replace("for j in range(4):", "for j in range(2):\n    for j1 in range(2):")
    .replace("    for i in", "        for i in")
    .replace("        dma_copy(dst=out", "            dma_copy(dst=out")
    .replace("16*j", "32*j + 16*j1")
)

SHARED = """
t = buffer(float32[128, 64], sbuf)
dma_copy(dst=t[:, :], src=y[0:128, :])
u = buffer(float32[128, 2, 64], sbuf)
dma_copy(dst=u[:, :, :], src=x.ap([[64, 128], [8192, 2], [1, 64]]))
for i in range(2):
    tensor_tensor(dst=u[:, i, :], data1=u[:, i, :], data2=t[:, :], op=add)
dma_copy(dst=out.ap([[64, 128], [8192, 2], [1, 64]]), src=u[:, :, :])
"""

REPEATED = """
t = buffer(float32[128, 64], sbuf)
dma_copy(dst=t[:, :], src=y[0:128, :])
u = buffer(float32[128, 2, 64], sbuf)
dma_copy(dst=u[:, :, :], src=x.ap([[64, 128], [8192, 2], [1, 64]]))
tensor_tensor(dst=u[:, :, :], data1=u[:, :, :], data2=t.ap([[64, 128], [0, 2], [1, 64]]), op=add)
dma_copy(dst=out.ap([[64, 128], [8192, 2], [1, 64]]), src=u[:, :, :])
"""

BY_TEXT = [
    (SHARED, TransformStep("widen", (5,)), REPEATED),
    (COPY, TransformStep("expand", (1,), (("buffer", "t"),)), EXPANDED),
    (COPY, TransformStep("rotate", (1,), (("slots", 2), ("space", "sbuf"))), EXPANDED),
    (COPY, TransformStep("distribute", (1,), (("cut", 2),)), CUT),
    (COPY, TransformStep("hoist", (1, 1)), CUT),
    (COPY, TransformStep("sink", (1, 2)), CUT),
    (CUT, TransformStep("join", (2,)), EXPANDED),
    (CUT, TransformStep("widen", (2,)), WIDE),
    (WIDE, TransformStep("narrow", (2,), (("trips", 2),)), CUT_AGAIN),
    (WHOLE, TransformStep("narrow", (2,), (("trips", 2),)), HALVES_IN_A_LOOP),
    (COPY, TransformStep("unroll", (1,)), WRITTEN_OUT),
    (COPY, TransformStep("peel", (1,)), PEELED),
    (COPY, TransformStep("pipeline", (1,), (("cuts", "2"), ("order", "0,1"))), OVERLAPPED),
    (ONCE_READ, TransformStep("reuse", (1, 1), (("other", 3),)), REUSED),
    (REUSED, TransformStep("hoist", (1, 1)), HOISTED),
    (COPIED, TransformStep("bypass", (1, 5)), BYPASSED),
    (
        COPIED,
        TransformStep("direct", (1, 5)),
        BYPASSED.replace("e[", "b[").replace("e = b", "b = b"),
    ),
    (HALVES, TransformStep("merge", (2,)), WHOLE),
    (NESTED, TransformStep("reorder", (3,)), TRANSPOSED),
    (TRANSPOSED, TransformStep("split", (3,), (("factor", 2),)), HALVED),
    (HALVED, TransformStep("fuse", (3,)), TRANSPOSED),
    (
        HALVES,
        TransformStep("swap", (4,)),
        "\n".join(HALVES.splitlines()[k] for k in (0, 1, 2, 3, 5, 4)),
    ),
    (
        COPIED,
        TransformStep("engine", (1, 5), (("engine", "gpsimd"),)),
        COPIED.replace("src=e[:, :])", "src=e[:, :], engine=gpsimd)"),
    ),
]


@pytest.mark.parametrize("before, step, after", BY_TEXT, ids=[str(c[1]) for c in BY_TEXT])
def test_a_step_makes_this_text(before, step, after):
    made = apply(program(before), step)

    assert print_program(made) == print_program(program(after))
    check(made)


@pytest.mark.parametrize("before, step, after", BY_TEXT, ids=[str(c[1]) for c in BY_TEXT])
def test_what_a_step_makes_computes_the_same(before, step, after):
    for wanted, got in zip(outputs(program(before)), outputs(program(after)), strict=True):
        assert (wanted == got).all()


def test_every_transform_but_one_has_its_text_here_or_a_test_file_of_its_own():
    here = {step.transform for _, step, _ in BY_TEXT}
    elsewhere = {
        name for name in TRANSFORMS if Path(__file__).with_name(f"test_{name}.py").exists()
    }

    assert set(TRANSFORMS) - here - elsewhere == {"rfactor"}


def test_a_sum_in_two_stages_is_the_same_sum():
    start = baseline_kernel(matmul, "bf16[512, 128]", "bf16[512, 512]")

    made, _ = scheduled(start, "split k factor=2\nrfactor k buffer=product")

    check(made)
    assert "tensor_tensor" in print_program(made)
    assert (outputs(made)[0] == outputs(start)[0]).all()


def test_the_accumulator_of_a_part_is_folded_into_that_of_all_by_one_instruction():
    """Out of PSUM, without a copy in between."""
    start = baseline_kernel(matmul, "bf16[512, 128]", "bf16[512, 512]")

    made, _ = scheduled(start, "split k factor=2\nrfactor k buffer=product")

    lines = [line.strip() for line in print_program(made).splitlines()]
    assert [line for line in lines if "product" in line] == [
        "product_sums1 = buffer(float32[128, 512], sbuf)",
        "memset(dst=product_sums1[:, :], value=-0.0)",
        "product = buffer(float32[128, 512], psum)",
        "nc_matmul(dst=product[:, :], stationary=x0_tile[:, :], moving=x1_tile[:, :])",
        "tensor_tensor(dst=product_sums1[:, :], data1=product_sums1[:, :], data2=product[:, :], "
        "op=add)",
        "tensor_copy(dst=tensor_copy_tile[:, :], src=product_sums1[:, :])",
    ]


CARRIED = """
t = buffer(float32[128, 64], sbuf)
dma_copy(dst=t[:, :], src=x[0:128, :])
for i in range(2):
    tensor_tensor(dst=t[:, :], data1=t[:, :], data2=t[:, :], op=add)
    dma_copy(dst=out[128*i : 128*i + 128, :], src=t[:, :])
"""

SHIFTED = """
t = buffer(float32[128, 64], sbuf)
dma_copy(dst=t[:, :], src=x[0:128, :])
for i in range(2):
    for j in range(2):
        dma_copy(dst=y[64*i + 64*j : 64*i + 64*j + 64, :], src=t[0:64, :])
        dma_copy(dst=t[64:128, :], src=y[64*i + 64*j + 64 : 64*i + 64*j + 128, :])
dma_copy(dst=out[0:128, :], src=t[:, :])
dma_copy(dst=out[128:256, :], src=t[:, :])
"""

ACCUMULATED = """
t = buffer(float32[128, 64], sbuf)
dma_copy(dst=t[:, :], src=x[0:128, :])
s = buffer(float32[128, 1], sbuf)
e = buffer(float32[128, 64], sbuf)
f = buffer(float32[128, 64], sbuf)
activation(dst=e[:, :], data=t[:, :], op=exp, reduce_op=add, reduce_cmd=reset_reduce)
activation(dst=f[:, :], data=t[:, :], op=square, reduce_op=add, reduce_cmd=reset_reduce)
activation(dst=t[:, :], data=t[:, :], reduce_res=s[:, :], op=exp, reduce_op=add, reduce_cmd=reduce)
dma_copy(dst=out[0:128, :], src=t[:, :])
"""

RUNNING = """
p = buffer(float32[64, 64], psum)
for k in range(2):
    a = buffer(float32[128, 64], sbuf)
    dma_copy(dst=a[:, :], src=x[128*k : 128*k + 128, :])
    nc_matmul(dst=p[:, :], stationary=a[:, :], moving=a[:, :])
    c = buffer(float32[64, 64], sbuf)
    tensor_copy(dst=c[:, :], src=p[:, :])
    dma_copy(dst=out[64*k : 64*k + 64, :], src=c[:, :])
"""

INNER = """
p = buffer(float32[64, 64], psum)
for k in range(2):
    a = buffer(float32[128, 64], sbuf)
    dma_copy(dst=a[:, :], src=x[128*k : 128*k + 128, :])
    for i in range(2):
        nc_matmul(dst=p[:, :], stationary=a[64*i : 64*i + 64, :], moving=a[64*i : 64*i + 64, :])
    c = buffer(float32[64, 64], sbuf)
    tensor_copy(dst=c[:, :], src=p[:, :])
    dma_copy(dst=out[64*k : 64*k + 64, :], src=c[:, :])
"""

GOING_ON = """
a = buffer(float32[128, 64], sbuf)
dma_copy(dst=a[:, :], src=x[0:128, :])
p = buffer(float32[64, 64], psum)
b = buffer(float32[64, 64], sbuf)
c = buffer(float32[64, 64], sbuf)
for i in range(2):
    nc_matmul(dst=p[:, :], stationary=a[64*i : 64*i + 64, :], moving=a[64*i : 64*i + 64, :])
    tensor_copy(dst=b[:, :], src=p[:, :])
for i in range(2):
    nc_matmul(dst=p[:, :], stationary=a[64*i : 64*i + 64, :], moving=a[64*i : 64*i + 64, :])
    tensor_copy(dst=c[:, :], src=p[:, :])
dma_copy(dst=out[0:64, :], src=b[:, :])
dma_copy(dst=out[64:128, :], src=c[:, :])
"""

WHOLE_NUMBERS = """
t = buffer(int32[128, 64], sbuf)
tensor_tensor(dst=t[:, :], data1=t[:, :], data2=t[:, :], op=add)
"""

DRAWN_IN_A_LOOP = """
for i in range(2):
    t = buffer(uint32[128, 64], sbuf)
    rng(dst=t[:, :])
    dma_copy(dst=out[128*i : 128*i + 128, :], src=t[:, :])
"""

DRAWN_TWICE = """
t = buffer(uint32[128, 64], sbuf)
u = buffer(uint32[128, 64], sbuf)
rng(dst=t[:, :])
rng(dst=u[:, :])
dma_copy(dst=out[0:128, :], src=t[:, :])
dma_copy(dst=out[128:256, :], src=u[:, :])
"""

DRAWN = """
t = buffer(uint32[128, 64], sbuf)
u = buffer(uint32[128, 64], sbuf)
rng(dst=t[:, :])
rng(dst=u[:, :])
"""

MOVED = """
t = buffer(float32[128, 3, 64], sbuf)
dma_copy(dst=t[:, 0, :], src=x[0:128, :])
tensor_copy(dst=t[:, 1, :], src=t[:, 0, :])
tensor_copy(dst=t[:, 1:3, :], src=t[:, 0:2, :])
dma_copy(dst=out[0:128, :], src=t[:, 1, :])
dma_copy(dst=out[128:256, :], src=t[:, 2, :])
"""

BEFORE_IT_IS_COMPLETE = [
    (TransformStep("distribute", (2,), (("cut", 3),)), "a sum and a read of p may overlap"),
    (TransformStep("sink", (2, 2)), "a sum and a read of p may overlap"),
    (TransformStep("sink", (2, 4)), "a write and a read of c may overlap"),
    (TransformStep("hoist", (2, 2)), "a write and a read of a may overlap"),
    (TransformStep("hoist", (2, 4)), "a sum and a read of p may overlap"),
    (TransformStep("swap", (2, 2)), "a sum and a read of p may overlap"),
    (
        TransformStep("pipeline", (2,), (("cuts", "3"), ("order", "0,1"))),
        "a sum and a read of p may overlap",
    ),
]
"""Steps that would add to a running sum before, or read it after, the kernel does."""

COLUMNS = """
m = buffer(float32[96, 2], sbuf)
dma_copy(dst=m[:, :], src=x[0:96, 0:2])
row = buffer(float32[1, 192], sbuf)
"""
COLUMNS_IN_A_ROW = (
    COLUMNS
    + """
for i in range(2):
    dma_copy(dst=row[:, 96*i : 96*i + 96], src=m[:, i])
dma_copy(dst=out[0:3, :], src=row[:, :])
""".lstrip()
)
TWO_COLUMNS_IN_A_ROW = (
    COLUMNS
    + """
dma_copy(dst=row[:, 0:96], src=m[:, 0])
dma_copy(dst=row[:, 96:192], src=m[:, 1])
dma_copy(dst=out[0:3, :], src=row[:, :])
""".lstrip()
)
"""Columns one behind the other; one transfer of the matrix writes its rows there."""

REJECTED = [
    (COLUMNS_IN_A_ROW, TransformStep("widen", (4,)), "has other rows in each of its operands"),
    (TWO_COLUMNS_IN_A_ROW, TransformStep("merge", (4,)), "has other rows in each of its operands"),
    (ACCUMULATED, TransformStep("swap", (6,)), "both use scalar.accumulators"),
    (DRAWN, TransformStep("swap", (3,)), "both use vector"),
    (
        CARRIED,
        TransformStep("distribute", (3,), (("cut", 1),)),
        "a write and a read of t may overlap",
    ),
    (CARRIED, TransformStep("hoist", (3, 1)), "a write and a read of t may overlap"),
    (CARRIED, TransformStep("hoist", (3, 0)), "may overlap"),
    (CARRIED, TransformStep("pipeline", (3,), (("cuts", "1"), ("order", "0,1"))), "may overlap"),
    (CARRIED, TransformStep("swap", (3, 0)), "their order matters"),
    (SHIFTED, TransformStep("reorder", (3,)), "j cannot be around i"),
    (
        COPY,
        TransformStep("split", (1,), (("factor", 3),)),
        "3 is not a divisor of the 2 trips of i",
    ),
    (COPY, TransformStep("split", (1,), (("factor", "2"),)), "split needs factor, of type int"),
    (COPY, TransformStep("split", (1, 0)), "1.0 is not a loop"),
    (COPY, TransformStep("split", (9,)), "statement not found: 9"),
    (COPY, TransformStep("widen", (1,)), "contains more than one instruction"),
    (COPY, TransformStep("fuse", (1,)), "contains more than a loop"),
    (COPY, TransformStep("join", (1,)), "no loop follows"),
    (COPY, TransformStep("swap", ()), "a step needs the place of a statement"),
    (COPY, TransformStep("swap", (1, 1, 0)), "statement not found: 1.1.0"),
    (COPY, TransformStep("swap", (-1,)), "statement not found: -1"),
    (COPY, TransformStep("polish", (1,)), "unknown transform polish"),
    (
        TWICE,
        TransformStep("reuse", (1, 1), (("other", 3),)),
        "b is not made by one statement alone",
    ),
    (COPIED, TransformStep("bypass", (1, 3)), "not a copy"),
    (COPIED, TransformStep("engine", (1, 3), (("engine", "vector"),)), "no instruction there"),
    (COPY, TransformStep("rfactor", (1,), (("buffer", "out"),)), "out is not a tile in PSUM"),
    *(
        (
            body,
            TransformStep("rfactor", (2,), (("buffer", "p"),)),
            "p is not a sum of this loop alone",
        )
        for body in (RUNNING, INNER)
    ),
    *((RUNNING, step, reason) for step, reason in BEFORE_IT_IS_COMPLETE),
    (
        GOING_ON,
        TransformStep("reuse", (6,), (("other", 7),)),
        "goes on with what the first left in p",
    ),
    (DRAWN_TWICE, TransformStep("reuse", (3,), (("other", 4),)), "left in vector.random"),
    (
        WHOLE_NUMBERS,
        TransformStep("engine", (2,), (("engine", "vector"),)),
        "integers are exact on gpsimd",
    ),
    (HALVES, TransformStep("merge", (3,)), "are not tiles of one form"),
    (
        MOVED,
        TransformStep("narrow", (4,), (("trips", 2),)),
        "parts need an order: a read and a write of t may",
    ),
    (WHOLE, TransformStep("narrow", (2,), (("trips", 3),)), "3 is not a number of parts"),
    (WHOLE, TransformStep("narrow", (2,), (("trips", 64),)), "64 is not a number of parts"),
    (COPY, TransformStep("narrow", (1,), (("trips", 2),)), "not an instruction"),
]


@pytest.mark.parametrize("before, step, reason", REJECTED, ids=[str(c[1]) for c in REJECTED])
def test_a_step_is_rejected_with_its_reason(before, step, reason):
    with pytest.raises(TransformError, match=reason) as rejected:
        take(program(before), step)
    assert rejected.value.step == step


def test_what_is_drawn_anew_in_each_iteration_is_not_drawn_once():
    drawn, *_ = apply(program(DRAWN_IN_A_LOOP), TransformStep("hoist", (1, 1))).body[2:]

    assert isinstance(drawn, Loop)


NO_STEPS = [
    None,
    "split",
    {},
    {"transform": "split"},
    {"transform": "split", "at": [-1]},
    {"transform": "split", "at": [1], "factor": 1.5},
]


@pytest.mark.parametrize("data", NO_STEPS, ids=str)
def test_what_is_no_step_is_rejected(data):
    with pytest.raises(TransformError):
        TransformStep.from_json(data)


def test_sums_in_registers_that_each_call_begins_are_free():
    alone = "\n".join(line for line in ACCUMULATED.splitlines() if "reduce_cmd=reduce)" not in line)

    assert apply(program(alone), TransformStep("swap", (6,))) != program(alone)


def test_unchanged_statements_are_shared():
    before = baseline_kernel(matmul, *SMALL[matmul])
    loop = next(step for step in opportunities(before) if step.transform == "rotate")

    after = apply(before, loop)

    assert after.body[0] is before.body[0]
    assert after.parameters is before.parameters


def test_opportunities_come_in_one_order():
    one, other = (baseline_kernel(matmul, *SMALL[matmul]) for _ in range(2))
    assert opportunities(one) == opportunities(other) != ()


def test_the_checker_refutes_a_claim_that_does_not_hold():
    certificate = certify(program(COPY), TransformStep("distribute", (1,), (("cut", 2),))).to_json()
    wrong = certify(program(NESTED), TransformStep("reorder", (3,))).to_json()
    assert check_step(certificate) == check_step(wrong) == []

    (claim, *_) = wrong["claims"]
    claim["a"]["offset"][1] = claim["b"]["offset"][1] = {"j": 16, "i": 16}

    (finding, *_) = check_step(wrong)
    assert "accesses to out overlap" in finding.what


def test_a_claim_that_one_iteration_in_the_middle_refutes_is_found():
    column = {"shape": [4, 1], "strides": [16, 1], "loops": []}
    claim = {
        "buffer": "out", "shape": [4, 16], "shared": [],
        "a": {**column, "offset": [0, {"i": 1}], "loops": [["i", 0, 10, 1]]},
        "b": {**column, "offset": [12, {}]},
    }  # fmt: skip
    assert check_step({"claims": [claim]}) == []

    claim["b"]["offset"][0] = 5

    (finding,) = check_step({"claims": [claim]})
    assert "accesses to out overlap" in finding.what


def test_what_is_no_certificate_is_rejected():
    with pytest.raises(CertificateFileError, match="claim 0 of the certificate has no 'shape'"):
        check_step({"claims": [{"shared": []}]})


def test_options_of_reuse_compare_only_statements_that_may_do_the_same(monkeypatch):
    rows = "".join(
        f"""
    t{n} = buffer(float32[128, 64], sbuf)
    dma_copy(dst=t{n}[:, :], src=x[:, {64 * n} : {64 * n + 64}])
    dma_copy(dst=out[:, {64 * n} : {64 * n + 64}], src=t{n}[:, :])"""
        for n in range(50)
    )
    program = parse_program(f"""\
program("trn2", "0.7")
def f(x: float32[128, 3200]):
    out = buffer(float32[128, 3200], shared_hbm){rows}
    again = buffer(float32[128, 64], sbuf)
    dma_copy(dst=again[:, :], src=x[:, 0:64])
    dma_copy(dst=out[:, 0:64], src=again[:, :])
    return out
""")
    compared = []
    equal = Match.equal
    monkeypatch.setattr(Match, "equal", lambda *a: compared.append(a) or equal(*a))

    found = [step for step in opportunities(program) if step.transform == "reuse"]

    assert found == [
        TransformStep("reuse", (at,), (("other", other),)) for at, other in ((2, 152), (3, 153))
    ]
    assert len(compared) < 5
