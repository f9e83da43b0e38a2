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

STRIDED = """\
program("trn1", "0.1")
def kernel(x: float32[300, 100]):
    out = buffer(float32[100, 300], shared_hbm)
    tile = buffer(bfloat16[100, 300], sbuf)
    dma_copy(dst=tile[:, :], src=x.ap([[1, 100], [100, 300]]))
    dma_copy(dst=out[:, :], src=tile[:, :])
    return out
"""

BROADCAST = """\
program("trn1", "0.1")
def kernel(x: float32[100, 600], w: float32[4, 600]):
    out = buffer(float32[100, 600], shared_hbm)
    tile = buffer(float32[100, 600], sbuf)
    dma_copy(dst=tile[:, :], src=x[:, :])
    for i in range(4):
        row = buffer(float32[1, 600], sbuf)
        dma_copy(dst=row[:, :], src=w[i : i + 1, :])
        rows = buffer(float32[100, 600], sbuf)
        dma_copy(dst=rows[:, :], src=row.ap([[0, 100], [1, 600]]))
        tensor_tensor(dst=tile[:, :], data1=tile[:, :], data2=rows[:, :], op=multiply)
    dma_copy(dst=out[:, :], src=tile[:, :])
    return out
"""

ADDED = """\
program("trn1", "0.1")
def kernel(x: float32[128, 256]):
    out = buffer(bfloat16[128, 64], shared_hbm)
    total = buffer(bfloat16[128, 64], sbuf)
    memset(dst=total[:, :], value=0.0)
    for i in range(4):
        tile = buffer(float32[128, 64], sbuf)
        dma_copy(dst=tile[:, :], src=x[:, 64*i : 64*i + 64])
        sum = buffer(float32[128, 64], sbuf)
        tensor_tensor(dst=sum[:, :], data1=total[:, :], data2=tile[:, :], op=add)
        tensor_copy(dst=total[:, :], src=sum[:, :])
    dma_copy(dst=out[:, :], src=total[:, :])
    return out
"""

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
    "strided_loads": STRIDED,
    "partition_broadcasts": BROADCAST,
    "direct_results": ADDED,
    "dead_fills": CLEARED,
    "overwritten_fills": PADDED,
    "privatization": DECLARED_OUTSIDE,
}


def after(name: str) -> tuple[Program, Program]:
    before = parse_program(TEXTS[name])
    core = NeuronCore("trn1", watchers=())
    named = TRANSFORMATIONS["transposing_loads" if name == "strided_loads" else name]
    return before, transformed(before, core, [named])


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


@pytest.mark.parametrize(("name", "tiles"), [("transposing_loads", 1), ("strided_loads", 3)])
def test_transposing_loads_are_loads_and_transpositions_by_tensor(name, tiles):
    _, made = after(name)

    names = [call.instruction for call in calls(made.body)]

    assert names == ["dma_copy", "nc_transpose", "tensor_copy"] * tiles + ["dma_copy"]


@pytest.mark.parametrize(
    ("change", "to"),
    [
        ("float32[300, 100]", "int32[300, 100]"),  # TensorE takes floats
        ("[[1, 100], [100, 300]]", "[[100, 100], [1, 300]]"),  # rows
        ("[[1, 100], [100, 300]]", "[[2, 100], [100, 300]]"),  # elements that are apart
    ],
)
def test_other_loads_stay(change, to):
    program = parse_program(STRIDED.replace(change, to).replace("bfloat16", "float32"))

    made = transformed(program, NeuronCore("trn1", watchers=()), TRANSFORMATIONS.values())

    assert [c.instruction for c in calls(made.body)] == ["dma_copy", "dma_copy"]


def test_a_row_reaches_all_partitions_as_products_with_ones():
    _, made = after("partition_broadcasts")

    names = [call.instruction for call in calls(made.body)]

    assert names == [
        "memset", "dma_copy", "dma_copy", "nc_matmul", "nc_matmul", "tensor_tensor", "dma_copy"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "to"),
    [
        ("op=multiply)", "op=multiply)\n        dma_copy(dst=out[:, :], src=rows[:, :])"),
        ("600", "5000"),  # more than PSUM has
        ("data1=tile[:, :]", "data1=rows[:, :]"),  # one operand alone may be in PSUM
        ("op=multiply)", "op=multiply, engine=gpsimd)"),
        (
            "        tensor_tensor(dst=tile",
            "        dma_copy(dst=rows[:, :], src=x[:, :])\n        tensor_tensor(dst=tile",
        ),
    ],
)
def test_a_row_that_dma_reads_or_that_psum_cannot_hold_is_broadcast_by_dma(change, to):
    program = parse_program(BROADCAST.replace(change, to))

    assert program == transformed(
        program, NeuronCore("trn1", watchers=()), [TRANSFORMATIONS["partition_broadcasts"]]
    )


def test_a_copy_of_a_copy_is_made_once():
    sum_tile = "sum = buffer(float32[128, 64], sbuf)"
    copies = "copied[:, :], src=sum[:, :])\n        tensor_copy(dst=total[:, :], src=copied[:, :])"
    text = ADDED.replace(sum_tile, f"{sum_tile}\n        {sum_tile.replace('sum', 'copied')}")
    text = text.replace("total[:, :], src=sum[:, :])", copies)
    before = parse_program(text)
    direct = TRANSFORMATIONS["direct_results"]
    made = transformed(before, NeuronCore("trn1", watchers=()), [direct])
    given = [np.random.default_rng(0).standard_normal((128, 256)).astype(np.float32)]

    check(made)

    (expected,), (computed,) = execute_program(before, given), execute_program(made, given)
    np.testing.assert_array_equal(computed, expected)
    assert [c.instruction for c in calls(made.body)].count("tensor_copy") == 1


def test_a_result_is_written_to_where_it_is_copied():
    _, made = after("direct_results")

    names = [call.instruction for call in calls(made.body)]

    assert names == ["memset", "dma_copy", "tensor_tensor", "dma_copy"]


@pytest.mark.parametrize(
    ("change", "to"),
    [
        ("src=sum[:, :])", "src=sum[:, :])\n        memset(dst=sum[:, :], value=0.0)"),
        ("sum = buffer(float32", "sum = buffer(float16"),  # is rounded twice
        ("total = buffer(bfloat16", "total = buffer(int32"),  # is a whole number on the way
        ("src=sum[:, :])", "src=sum[:, :], engine=scalar)"),
        ("data1=total[:, :]", "data1=total.ap([[64, 128], [0, 64]])"),
        ("tensor_copy(dst=total[:, :], src=sum[:, :])",
         "tensor_copy(dst=total[:, 0:32], src=sum[:, 0:32])"),
    ],
)  # fmt: skip
def test_copies_that_change_a_value_or_that_others_need_stay(change, to):
    program = parse_program(ADDED.replace(change, to))

    assert program == transformed(
        program, NeuronCore("trn1", watchers=()), [TRANSFORMATIONS["direct_results"]]
    )


def test_what_only_products_fill_is_not_cleared():
    _, made = after("dead_fills")

    assert "memset" not in [call.instruction for call in calls(made.body)]


def test_of_a_tile_that_a_load_overwrites_the_rest_is_filled():
    _, made = after("overwritten_fills")

    filled = [c.accesses["dst"] for c in calls(made.body) if c.instruction == "memset"]
    assert [(a.offset.constant, a.shape) for a in filled] == [(0, (128, 1)), (513, (128, 1))]


def test_a_tile_to_which_a_load_adds_is_filled():
    text = PADDED.replace("src=x[:, :])", "src=x[:, :], dst_rmw_op=add)")
    program = parse_program(text)

    assert program == transformed(
        program, NeuronCore("trn1", watchers=()), [TRANSFORMATIONS["overwritten_fills"]]
    )


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
