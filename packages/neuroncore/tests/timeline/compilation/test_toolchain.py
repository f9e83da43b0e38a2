"""What a toolchain makes of a program, one transformation at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from neuroncore.errors import AttributeValueError
from neuroncore.machine.core import NeuronCore
from neuroncore.program import (
    Allocate,
    Loop,
    Program,
    calls,
    check,
    execute_program,
    parse_program,
)
from neuroncore.timeline import TRANSFORMATIONS, estimate
from neuroncore.timeline.compilation.toolchain import in_force, transformed

HEAD = 'program("trn1", "0.1")\ndef kernel(x: float32[128, 512], w: float32[128, 3]):\n'
OUT = "    out = buffer(float32[128, 512], shared_hbm)\n"

INVARIANT = (
    HEAD
    + OUT
    + """\
    for row in range(4):
        total = buffer(float32[128, 512], sbuf)
        memset(dst=total[:, :], value=0.0)
        for k in range(4):
            tile = buffer(float32[128, 128], sbuf)
            dma_copy(dst=tile[:, :], src=x[:, 128*k : 128*k + 128])
            tensor_scalar(dst=total[:, 128*k : 128*k + 128], data=tile[:, :], operand0=2.0, op0=add)
        dma_copy(dst=out[:, 128*row : 128*row + 128], src=total[:, 128*row : 128*row + 128])
    return out
"""
)

SMALL = (
    HEAD
    + OUT
    + """\
    padded = buffer(float32[128, 512], sbuf)
    dma_copy(dst=padded[:, :], src=x[:, :])
    filter = buffer(float32[128, 3], sbuf)
    dma_copy(dst=filter[:, :], src=w[:, :])
    result = buffer(float32[128, 512], sbuf)
    memset(dst=result[:, :], value=0.0)
    for group in range(4):
        for column in range(64):
            product = buffer(float32[128, 3], sbuf)
            tensor_tensor(dst=product[:, :], data1=padded[:, AT:AT + 3], data2=filter[:, :], op=add)
            tensor_reduce(dst=result[:, AT:AT + 1], data=product[:, :], op=add)
    dma_copy(dst=out[:, :], src=result[:, :])
    return out
"""
)

TRANSPOSING = (
    HEAD
    + """\
    out = buffer(float32[3, 128], shared_hbm)
    tile = buffer(float32[3, 128], sbuf)
    dma_transpose(dst=tile[:, :], src=w[:, :])
    dma_copy(dst=out[:, :], src=tile[:, :])
    return out
"""
)

CLEARED = (
    HEAD
    + OUT
    + """\
    left = buffer(float32[128, 512], sbuf)
    dma_copy(dst=left[:, :], src=x[:, :])
    product = buffer(float32[128, 512], psum)
    memset(dst=product[:, :], value=0.0)
    nc_matmul(dst=product[:, :], stationary=left[:, 0:128], moving=left[:, :])
    result = buffer(float32[128, 512], sbuf)
    tensor_copy(dst=result[:, :], src=product[:, :])
    dma_copy(dst=out[:, :], src=result[:, :])
    return out
"""
)

PADDED = (
    HEAD
    + OUT
    + """\
    padded = buffer(float32[128, 514], sbuf)
    memset(dst=padded[:, :], value=0.0)
    dma_copy(dst=padded[:, 1:513], src=x[:, :])
    dma_copy(dst=out[:, :], src=padded[:, 0:512])
    return out
"""
)

DECLARED_OUTSIDE = """\
program("trn2", "0.6")
def kernel(x: float32[128, 512]):
    out = buffer(float32[128, 512], shared_hbm)
    tile = buffer(float32[128, 128], sbuf)
    total = buffer(float32[128, 128], sbuf)
    memset(dst=total[:, :], value=0.0)
    for k in range(4):
        dma_copy(dst=tile[:, :], src=x[:, 128*k : 128*k + 128])
        tensor_tensor(dst=total[:, :], data1=total[:, :], data2=tile[:, :], op=add)
        dma_copy(dst=out[:, 128*k : 128*k + 128], src=total[:, :])
    return out
"""

TEXTS = {
    "loop_invariants": INVARIANT,
    "vectorization": SMALL.replace("AT", "64*group + column"),
    "transposing_loads": TRANSPOSING,
    "dead_fills": CLEARED,
    "overwritten_fills": PADDED,
    "privatization": DECLARED_OUTSIDE,
}


def after(name: str) -> tuple[Program, Program]:
    before = parse_program(TEXTS[name])
    core = NeuronCore("trn1", watchers=())
    return before, transformed(before, core, [TRANSFORMATIONS[name]])


@pytest.mark.parametrize("name", TEXTS)
def test_a_transformation_keeps_what_the_program_computes(name):
    before, made = after(name)
    random = np.random.default_rng(0)
    given = [random.standard_normal(p.shape).astype(np.float32) for p in before.parameters]

    check(made)

    (expected,), (computed,) = execute_program(before, given), execute_program(made, given)
    np.testing.assert_array_equal(computed, expected)


@pytest.mark.parametrize(
    ("name", "executed"), [("loop_invariants", 4 + 4 + 16 + 4), ("vectorization", 4 + 4 + 4)]
)
def test_a_transformation_executes_fewer_instructions(name, executed):
    before, made = after(name)

    counts = [estimate(p, mode="as_written").num_ops for p in (before, made)]

    assert counts[1] == executed < counts[0]


def test_a_transposing_load_is_a_load_and_a_transposition_by_tensor():
    _, made = after("transposing_loads")

    names = [call.instruction for call in calls(made.body)]

    assert names == ["dma_copy", "nc_transpose", "tensor_copy", "dma_copy"]


def test_what_only_products_fill_is_not_cleared():
    _, made = after("dead_fills")

    assert "memset" not in [call.instruction for call in calls(made.body)]


def test_of_a_tile_that_a_load_overwrites_the_rest_is_filled():
    _, made = after("overwritten_fills")

    filled = [c.accesses["dst"] for c in calls(made.body) if c.instruction == "memset"]
    assert [(a.offset.constant, a.shape) for a in filled] == [(0, (128, 1)), (513, (128, 1))]


def test_only_what_every_iteration_writes_anew_has_two_places():
    before, made = after("privatization")

    (loop,) = [s for s in made.body if isinstance(s, Loop)]
    assert [s.buffer.name for s in loop.body if isinstance(s, Allocate)] == ["tile"]
    assert estimate(before, mode="device").total_ns < (
        estimate(before, mode="device", without=["privatization"]).total_ns
    )


def test_the_version_selects_the_toolchain():
    old = parse_program(CLEARED)
    new = replace(old, nki="0.6", target="trn2")

    names = [{t.name for t in in_force(p)} for p in (old, new)]

    assert names[1] == {"fill_engine", "privatization", "slot_rotation", "scheduling"}
    assert "loop_invariants" in names[0]


def test_a_transformation_is_switched_off_by_its_name():
    program = parse_program(INVARIANT)

    timeline = estimate(program, mode="device", without=["loop_invariants"])

    assert "loop_invariants" not in [t.name for t in timeline.assumed]
    assert timeline.num_ops > estimate(program, mode="device").num_ops


def test_a_name_that_no_transformation_has_is_rejected_with_those_there_are():
    with pytest.raises(AttributeValueError, match="not a transformation") as error:
        estimate(parse_program(CLEARED), mode="device", without=["magic"])

    assert "slot_rotation" in str(error.value)
