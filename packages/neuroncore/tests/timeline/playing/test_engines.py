"""What each engine and queue does with time. Expected values: constants, added manually."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from neuroncore.errors import AttributeValueError, LaunchError, ProgramError
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.timeline import constants, estimate
from neuroncore.timeline.resources.reservations import Gaps, common_gap

from ..kernels import ALL, MATMUL, TILED_COPY, program
from ..random_kernels import random_program

VECTOR_NS = 1 / 0.96
SCALAR_NS = 1 / 1.2
VALUES = constants().at("trn2")
VECTOR_LATENCY = VALUES["ACCESS_OVERHEAD"] + VALUES["VECTOR_LATENCY"]
SEMAPHORE = 30


def bars(body: str, target: str = "trn2", kind: str | None = None):
    timeline = estimate(program(body, target), verified=True, skip_periods=False, mode="as_written")
    return [bar for bar in timeline.bars if kind in (None, bar.kind)]


def tiles(*names: str, columns: int = 512, dtype: str = "float32", space: str = "sbuf") -> str:
    made = [f"{n} = buffer({dtype}[128, {columns}], {space})" for n in names]
    return "\n".join([*made, *(f"memset(dst={n}[:, :], value=0.0)" for n in names)]) + "\n"


ADD = "tensor_tensor(dst={0}[:, :], data1={1}[:, :], data2={2}[:, :], op=add)\n"


def test_independent_instructions_follow_one_another_by_the_interval_alone():
    *_, first, second = bars(
        tiles("a", "b", "c") + ADD.format("b", "a", "a") + ADD.format("c", "a", "a")
    )

    access = VALUES["ACCESS_OVERHEAD"]
    assert second.start_ns - first.start_ns == pytest.approx((1024 + access) * VECTOR_NS, abs=0.3)
    assert second.why == "engine"


def test_a_dependent_instruction_waits_for_the_result():
    *_, first, second = bars(
        tiles("a", "b", "c") + ADD.format("b", "a", "a") + ADD.format("c", "b", "b")
    )

    wait = (1024 + VECTOR_LATENCY) * VECTOR_NS + SEMAPHORE
    assert second.start_ns - first.start_ns == pytest.approx(wait, abs=0.3)
    assert (second.waited_for, second.why) == (first.number, "data")


def test_engines_work_side_by_side():
    body = tiles("a", "b", "c") + ADD.format("b", "a", "a")
    *_, vector, table, scalar = bars(
        body + "activation(dst=c[:, :], data=a[:, :], scale=1.0, op=exp)"
    )

    assert (vector.lane, table.kind, scalar.lane) == ("vector", "table_load", "scalar")
    assert table.start_ns < vector.start_ns + vector.busy_ns


def test_a_buffer_is_overwritten_when_its_reader_is_done():
    *_, reader, writer = bars(
        tiles("a", "b")
        + "activation(dst=b[:, :], data=a[:, :], scale=1.0, op=copy)\n"
        + "memset(dst=a[:, :], value=1.0)"
    )

    assert writer.start_ns == pytest.approx(reader.end_ns + SEMAPHORE, abs=0.3)
    assert (writer.waited_for, writer.why) == (reader.number, "buffer")


def test_parts_of_a_tile_do_not_wait_for_one_another():
    body = """
    a = buffer(float32[128, 512], sbuf)
    b = buffer(float32[128, 512], sbuf)
    memset(dst=a[:, 0:256], value=0.0)
    memset(dst=a[:, 256:512], value=0.0, engine=gpsimd)
    activation(dst=b[:, 0:256], data=a[:, 0:256], scale=1.0, op=copy)
    """
    first, second, copy = bars("\n".join(line.strip() for line in body.splitlines()))

    assert copy.start_ns == pytest.approx(first.end_ns + SEMAPHORE, abs=0.3)
    assert copy.start_ns < second.end_ns


def test_a_table_is_loaded_when_it_is_not_there():
    call = "activation(dst=b[:, :], data=a[:, :], scale=1.0, op={})\n"
    found = bars(
        tiles("a", "b") + "".join(call.format(op) for op in ("exp", "exp", "relu", "gelu", "exp"))
    )

    loads = [bar.number for bar in found if bar.kind == "table_load"]
    assert len(loads) == 3
    assert found[loads[0]].busy_ns == pytest.approx(1540 * SCALAR_NS, abs=0.2)


MULTIPLY = """
w = buffer({dtype}[128, 128], sbuf)
x_t = buffer({dtype}[128, 512], sbuf)
memset(dst=w[:, :], value=0.0)
memset(dst=x_t[:, :], value=0.0)
acc = buffer(float32[128, 512], psum)
for i in range({times}):
    nc_matmul(dst=acc[:, :], stationary=w[:, :], moving=x_t[:, :])
"""


@pytest.mark.parametrize(
    ("dtype", "passes", "columns"), [("bfloat16", 1, 512), ("float32", 2, 1024)]
)
def test_a_matmul_is_a_load_and_a_stream_and_float32_takes_two_of_each(dtype, passes, columns):
    body = MULTIPLY.format(dtype=dtype, times=1)
    found = bars(body, "trn1", kind="multiply_moving")

    assert len(found) == passes == len(bars(body, "trn1", kind="load_stationary"))
    assert found[0].busy_ns == pytest.approx(columns / 2.8, abs=0.2)
    assert found[0].end_ns - found[0].start_ns == pytest.approx((columns + 400) / 2.8, abs=0.2)


def test_weights_are_loaded_behind_the_multiply_before():
    found = bars(MULTIPLY.format(dtype="bfloat16", times=4), "trn1", kind="multiply_moving")

    starts = [bar.start_ns for bar in found]
    steps = [b - a for a, b in pairwise(starts)]
    assert steps == pytest.approx([512 / 2.8] * 3, abs=0.2)


def test_tensor_e_runs_at_half_rate_for_three_microseconds_after_it_was_idle():
    def busy(target):
        found = bars(MULTIPLY.format(dtype="bfloat16", times=40), target, kind="multiply_moving")
        return [
            round(bar.busy_ns / (512 / 2.4 if target != "trn1" else 512 / 2.8)) for bar in found
        ]

    cold = [2] * 8  # 8 × 427 ns > 3 µs
    timeline = busy("trn2")
    assert timeline[:8] == cold and set(timeline[8:]) == {1}
    assert set(busy("trn1")) == {1}


@pytest.mark.parametrize(("target", "together"), [("trn1", False), ("trn2", True)])
def test_vector_and_gpsimd_share_the_way_to_sbuf_on_the_first_generation(target, together):
    body = tiles("a", "b", "c") + ADD.format("b", "a", "a")
    *_, vector, gpsimd = bars(body + "memset(dst=c[:, :], value=2.0, engine=gpsimd)", target)

    overlap = gpsimd.start_ns < vector.start_ns + vector.busy_ns
    assert overlap is together
    assert together or gpsimd.why == "resource"


COPY = "dma_copy(dst={0}[:, :], src=x[0:{1}, 0:{2}]{3})\n"


def loads(count: int, partitions: int, columns: int, more: str = "") -> str:
    made = [f"t{i} = buffer(float32[{partitions}, {columns}], sbuf)" for i in range(count)]
    return "\n".join(
        [*made, *(COPY.format(f"t{i}", partitions, columns, more) for i in range(count))]
    )


def test_a_load_takes_its_latency_and_its_bytes():
    (load,) = bars(loads(1, 128, 4096))

    data = 8 * (4096 * 4 / 23 + 1)  # eight rows on each of 16 engines
    latency = VALUES["DMA_START"] + VALUES["DMA_COMPLETION"] + 15 * VALUES["DMA_STAGGER"]
    assert load.end_ns - load.start_ns == pytest.approx(data + latency, rel=0.001)


def test_fewer_partitions_use_fewer_engines():
    (one,), (two,) = bars(loads(1, 8, 1024)), bars(loads(1, 16, 1024))

    assert two.busy_ns == pytest.approx(one.busy_ns, abs=0.5)


def test_queues_share_the_bandwidth():
    timeline = estimate(program(loads(8, 128, 4096)), verified=True, mode="as_written")

    bytes_moved = 8 * 128 * 4096 * 4
    assert timeline.hbm_bytes == bytes_moved
    assert timeline.total_ns >= bytes_moved / (16 * 23)
    assert timeline.bottleneck == "dma"


def test_a_generator_makes_descriptors_for_one_transfer_at_a_time():
    first, second, third = bars(loads(3, 128, 16, ", dge_mode=swdge"))

    assert second.start_ns - first.start_ns == pytest.approx(600, abs=0.2)
    assert third.start_ns - second.start_ns == pytest.approx(600, abs=0.2)
    assert third.why == "resource"


def test_one_queue_takes_small_transfers_at_its_own_pace():
    body = """
t = buffer(float32[128, 64], sbuf)
for i in range(8):
    dma_copy(dst=out[0:128, 64*i : 64*i + 64], src=x[0:128, 64*i : 64*i + 64])
"""
    starts = [bar.start_ns for bar in bars(body)]

    steps = [b - a for a, b in pairwise(starts)]
    assert steps == pytest.approx([VALUES["DMA_QUEUE_FLOOR"]] * 7, abs=0.2)


def test_the_critical_path_is_the_whole_time():
    timeline = estimate(program(MATMUL), skip_periods=False, mode="as_written")

    path = timeline.critical_path()
    assert sum(step.path_ns for step in path) == pytest.approx(timeline.total_ns, rel=1e-6)
    assert [a.bar.number for a in path] == sorted(a.bar.number for a in path)
    assert sum(timeline.by_line().values()) == pytest.approx(1)


def test_what_an_engine_waited_for_is_named():
    lanes = estimate(program(TILED_COPY), mode="as_written").lanes

    assert next(iter(lanes["vector"].stalls)) == "data from dma"


def test_a_compiled_kernel_overlaps_its_iterations():
    kernel = program(TILED_COPY)

    assert (
        estimate(kernel, mode="device").total_ns
        < 0.6 * estimate(kernel, mode="as_written").total_ns
    )


def test_another_engine_is_judged_by_iterations_that_there_are(recwarn):
    """At k = 0 the tile would begin before the first partition."""
    body = """
a = buffer(float32[128, 512], sbuf)
dma_copy(dst=a[:, :], src=x[0:128, 0:512])
for k in range({}):
    c = buffer(float32[128, 32], sbuf)
    tensor_copy(dst=c[:, :], src=a[:, 4*k{} : 4*k + {}])
    dma_copy(dst=out[0:128, 0:32], src=c[:, :])
"""
    later, first = (
        estimate(program(body.format(*case)), mode="device")
        for case in (("5, 65", " + -20", 12), ("60", "", 32))
    )

    assert not recwarn.list
    assert later.total_ns == first.total_ns


def test_work_that_is_the_same_in_every_iteration_is_done_once_by_0_1():
    body = (
        tiles("a", "b")
        + """
for i in range(16):
    same = buffer(float32[128, 512], sbuf)
    tensor_tensor(dst=same[:, :], data1=a[:, :], data2=a[:, :], op=multiply)
    tensor_tensor(dst=b[:, :], data1=b[:, :], data2=same[:, :], op=add)
"""
    )
    kernel = replace(program(body, "trn1"), nki="0.1")

    written, device = (estimate(kernel, mode=m, verified=True) for m in ("as_written", "device"))
    assert written.num_ops - device.num_ops == 15


PLACED = """
b = buffer(bfloat16[128, 512], sbuf, address=(0, 512))
p = buffer(float32[128, 256], psum)
memset(dst=b[:, :], value=0.0)
activation(dst=b[:, 64:128], data=b[:, 64:128], scale=1.0, op=sigmoid)
tensor_copy(dst=b[:, 64:128], src=b[:, 0:64], engine=vector)
memset(dst=p[:, :], value=0.0, engine=vector)
"""


def assert_lanes_add_up(timeline):
    """An engine does something or stands still, never both, between its first and last bar."""
    for name, use in timeline.lanes.items():
        bars = [bar for bar in timeline.bars if bar.lane == name and bar.kind != "load_stationary"]
        if name == "dma" or not bars:
            continue
        span = max(b.start_ns + b.busy_ns for b in bars) - min(b.start_ns for b in bars)
        assert use.busy_ns + sum(use.stalls.values()) == pytest.approx(span)


@pytest.mark.parametrize("mode", ["as_written", "device"])
@pytest.mark.parametrize("target", ["trn1", "trn2"])
@pytest.mark.parametrize("name", [*ALL, "placed", *map(str, range(12))])
def test_an_engine_is_busy_or_stands_still(name, target, mode):
    if name.isdigit():
        kernel = random_program(int(name), target)
    else:
        kernel = program((ALL | {"placed": PLACED})[name].replace(", dge_mode=swdge", ""), target)

    assert_lanes_add_up(estimate(kernel, mode=mode, verified=True, skip_periods=False))


@pytest.mark.parametrize("mode", ["as_written", "device"])
@pytest.mark.parametrize("seed", range(12))
def test_an_engine_does_one_thing_at_a_time(seed, mode):
    timeline = estimate(random_program(seed, "trn1"), mode=mode, skip_periods=False)

    for name in ("vector", "scalar", "gpsimd", "tensor"):
        bars = [bar for bar in timeline.bars if bar.lane == name and bar.kind != "load_stationary"]
        spans = sorted((bar.start_ns, bar.start_ns + bar.busy_ns) for bar in bars)
        assert all(a[1] <= b[0] + 1e-6 for a, b in pairwise(spans))


def test_time_on_two_shared_paths_is_taken_together():
    one, other = Gaps(), Gaps()
    one.reserve(0, 10)
    other.reserve(12, 10)

    assert common_gap((one, other), 5, 2) == 10
    assert common_gap((one, other), 5, 3) == 22
    assert (one.busy, other.busy) == (10, 10)


# -- bad input ------------------------------------------------------------------------------------


def test_everything_that_is_wrong_with_a_program_is_said_at_once():
    body = (
        "big = buffer(float32[128, 65536], sbuf)\nmemset(dst=big[:, :], value=0.0, engine=tensor)"
    )

    with pytest.raises(ProgramError, match="3 violations"):
        estimate(program(body), mode="as_written")


def test_an_unknown_target_is_rejected_with_those_there_are():
    with pytest.raises((LaunchError, ProgramError), match="trn9"):
        estimate(program(TILED_COPY), target="trn9", mode="as_written")


def test_an_unknown_mode_is_rejected_with_those_there_are():
    with pytest.raises(AttributeValueError, match="as_written or device"):
        estimate(program(TILED_COPY), mode="magic")


def test_instructions_without_a_cost_are_all_named(monkeypatch):
    record = INSTRUCTIONS["tensor_scalar"]
    work = record.work
    object.__setattr__(record, "work", lambda call: [])
    try:
        with pytest.raises(ProgramError, match="no cost is known for tensor_scalar on trn2"):
            estimate(program(TILED_COPY), mode="as_written")
    finally:
        object.__setattr__(record, "work", work)
