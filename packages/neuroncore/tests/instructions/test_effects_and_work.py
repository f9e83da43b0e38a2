"""Effects and costs that depend on attributes, dtypes, memories and generations."""

from __future__ import annotations

import pytest

from neuroncore.effects import Touch
from neuroncore.enums import Engine, MemorySpace, ReduceCmd
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.isa.examples import example_call
from neuroncore.machine.core import NeuronCore
from neuroncore.work import LoadStationary, MultiplyMoving, Pass, Transfer, constant

READ, WRITE, ADD = Touch.read, Touch.write, Touch.accumulate


def call_of(name, **changes):
    record = INSTRUCTIONS[name]
    return example_call(record, record.examples[0], **changes).call


def effects_of(name, **changes):
    call = call_of(name, **changes)
    return {(e.operand, e.touch) for e in call.record.effects(call)}


def work_of(name, **changes):
    call = call_of(name, **changes)
    return call.record.work(call)


# -- effects --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("accumulate", "touch"), [(False, WRITE), (None, ADD), (True, ADD)])
def test_accumulating_matmuls_commute_and_overwriting_ones_do_not(accumulate, touch):
    assert effects_of("nc_matmul", accumulate=accumulate) == {
        ("stationary", READ), ("moving", READ), ("dst", touch),
    }  # fmt: skip


def test_tiles_among_the_operands_are_read_and_numbers_are_not():
    numbers = effects_of("tensor_scalar")
    tiles = effects_of("tensor_scalar", operand0="float32[4, 1] sbuf")

    assert tiles - numbers == {("operand0", READ)}


def test_an_index_tile_is_read():
    core = NeuronCore()
    index = core.allocate((2, 1), "int32", MemorySpace.sbuf)
    gather = core.allocate((6, 4), "float32", MemorySpace.hbm).ap(
        [[4, 2], [1, 4]], vector_offset=index
    )

    found = effects_of("dma_copy", dst="float32[2, 4] sbuf", src=lambda core: gather)

    assert found == {("src", READ), ("src.index", READ), ("dst", WRITE)}


def test_a_copy_that_adds_reads_its_destination():
    assert ("dst", READ) in effects_of("dma_copy", dst_rmw_op="add", version=(0, 2))


@pytest.mark.parametrize(
    ("command", "touch"),
    [(ReduceCmd.reset_reduce, WRITE), (ReduceCmd.reset, WRITE), (ReduceCmd.reduce, ADD)],
)
def test_activation_touches_the_registers_as_its_command_says(command, touch):
    assert ("scalar.accumulators", touch) in effects_of("activation", reduce_cmd=command)


def test_an_idle_activation_leaves_the_registers_alone():
    assert {name for name, _ in effects_of("activation")} == {"dst", "data"}


# -- work: cycles of the engine [NKI 0.1 API documents, architecture guides] ----------------------


def tiles(names, dtype, space="sbuf", free=512):
    return dict.fromkeys(names, f"{dtype}[128, {free}] {space}")


ACCESS = constant("ACCESS_OVERHEAD")
"""Cycles of every access beside its elements."""


@pytest.mark.parametrize(
    ("changes", "cycles"),
    [
        (tiles(("dst", "src"), "float32"), ACCESS + 256),
        (tiles(("dst",), "float32") | tiles(("src",), "float32", "psum"), ACCESS + 512),
        (tiles(("dst", "src"), "bfloat16"), ACCESS + 128),
        (tiles(("dst", "src"), "bfloat16", free=16), constant("MIN_II")),
        (tiles(("dst",), "bfloat16") | tiles(("src",), "bfloat16", "psum"), ACCESS + 256),
        (tiles(("dst", "src"), "bfloat16") | {"target": "trn1"}, ACCESS + 512),
        (tiles(("dst", "src"), "float32") | {"engine": Engine.gpsimd}, 150 + 512),
        (
            tiles(("dst",), "float32") | {"src": "float32[128, 512] sbuf strides(4096, 8)"},
            ACCESS + 1024,
        ),
    ],
    ids=[
        "float32",
        "float32 from psum",
        "16 bit",
        "few elements",
        "from psum",
        "gen2",
        "gpsimd start-up",
        "wide stride",
    ],
)
def test_a_copy_takes_its_access_and_a_cycle_an_element_or_less(changes, cycles):
    (work,) = work_of("tensor_copy", **changes)

    assert isinstance(work, Pass)
    assert work.interval == pytest.approx(cycles)


@pytest.mark.parametrize(
    ("dtype", "space", "cycles"),
    [("float32", "sbuf", 1024), ("float32", "psum", 512), ("bfloat16", "sbuf", 256)],
)
def test_two_inputs_share_a_port_unless_one_is_in_psum_or_both_are_narrow(dtype, space, cycles):
    operands = tiles(("dst", "data1"), dtype) | tiles(("data2",), dtype, space)

    (work,) = work_of("tensor_tensor", **operands, op="add")

    assert work.interval == pytest.approx(ACCESS + cycles)


@pytest.mark.parametrize(("dtype", "cycles"), [("float32", 512), ("bfloat16", 256)])
def test_narrow_sums_run_at_double_rate(dtype, cycles):
    (work,) = work_of(
        "tensor_reduce", data=f"{dtype}[128, 512] sbuf", dst=f"{dtype}[128, 1] sbuf", axis=1
    )

    assert work.interval == pytest.approx(ACCESS + cycles)


@pytest.mark.parametrize(
    ("dtype", "passes", "cycles"), [("bfloat16", 1, 512), ("float32", 2, 1024)]
)
def test_a_matmul_loads_the_stationary_and_streams_the_moving(dtype, passes, cycles):
    work = work_of(
        "nc_matmul", stationary=f"{dtype}[128, 128] sbuf", moving=f"{dtype}[128, 512] sbuf",
        dst="float32[128, 512] psum",
    )  # fmt: skip

    loads = [op for op in work if isinstance(op, LoadStationary)]
    streams = [op for op in work if isinstance(op, MultiplyMoving)]
    assert len(loads) == len(streams) == passes
    assert {op.columns for op in loads} == {128}
    assert {op.interval for op in streams} == {cycles}
    assert sum(op.flops for op in streams) == 2 * 128 * 128 * 512


@pytest.mark.parametrize(
    ("src", "descriptors", "run_bytes"),
    [
        ("float32[128, 512] hbm", 128, 2048),
        ("float32[128, 512] hbm strides(1024, 1)", 128, 2048),
        ("float32[128, 512] hbm strides(1024, 2)", 128 * 512, 4),
        ("bfloat16[128, 512] hbm", 128, 2048),
    ],
    ids=["dense", "rows", "elements", "cast"],
)
def test_a_dma_is_one_descriptor_a_contiguous_run(src, descriptors, run_bytes):
    (work,) = work_of("dma_copy", src=src, dst="float32[128, 512] sbuf")

    assert isinstance(work, Transfer)
    assert (work.descriptors, work.run_bytes) == (descriptors, run_bytes)
    assert work.bytes == 128 * 512 * 4
    assert work.casts == src.startswith("bf")


def test_functions_name_the_table_that_must_be_loaded():
    (simple,), (gelu,) = work_of("activation", op="relu"), work_of("activation", op="gelu")

    assert (simple.table, gelu.table) == (None, "gelu")


@pytest.mark.parametrize(("op", "operand"), [("power", 2.0), ("rsqrt", None)])
def test_a_power_and_an_inverse_root_are_paid_on_the_gpsimd_engine(op, operand):
    """At a quarter of the throughput: 900 elements more cost four times as many cycles more."""
    alone = {"op0": op, "operand0": operand, "op1": None, "operand1": None}
    (short,), (long,) = (
        work_of("tensor_scalar", **alone, dst=f"float32[4, {n}] sbuf", data=f"float32[4, {n}] sbuf")
        for n in (100, 1000)
    )

    assert (short.engine, long.engine) == (Engine.gpsimd, Engine.gpsimd)
    assert long.interval - short.interval == 4 * 900
