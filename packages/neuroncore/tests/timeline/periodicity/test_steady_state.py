"""Periods of loops that are carried forward: the same as playing every iteration."""

from __future__ import annotations

import pytest

from neuroncore.timeline import estimate
from neuroncore.timeline.periodicity import steady_state

from ..kernels import ALL, program
from ..random_kernels import random_program

SEEDS = (1, 8, 13, 17, 25, 27, 29, 71, 102, 152, 219)
"""Of random kernels; their loops repeat, in some of them with loops inside that repeat too."""


@pytest.fixture(autouse=True)
def _short_loops_are_looked_at(monkeypatch):
    monkeypatch.setattr(steady_state, "WORTH", 0)


def facts(timeline):
    return (
        timeline.total_ns, timeline.num_ops, timeline.hbm_bytes, timeline.flops, timeline.lanes,
        timeline.mfu, timeline.mbu, timeline.dma_efficiency,
    )  # fmt: skip


@pytest.mark.parametrize("mode", ["as_written", "device"])
@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
@pytest.mark.parametrize("name", ALL)
def test_a_loop_that_repeats_itself_takes_as_long_as_all_its_iterations(name, target, mode):
    text = ALL[name] if target != "trn1" else ALL[name].replace(", dge_mode=swdge", "")
    kernel = program(text, target)

    carried = estimate(kernel, mode=mode)
    played = estimate(kernel, mode=mode, skip_periods=False)

    assert facts(carried) == facts(played)
    assert carried.occupancy() == played.occupancy()
    assert carried.by_line() == pytest.approx(played.by_line())


@pytest.mark.parametrize("mode", ["as_written", "device"])
@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
@pytest.mark.parametrize("seed", SEEDS)
def test_carried_periods_leave_what_played_ones_leave(seed, target, mode):
    kernel = random_program(seed, target)

    carried = estimate(kernel, mode=mode)
    played = estimate(kernel, mode=mode, skip_periods=False, verified=True)

    assert facts(carried) == facts(played)
    assert carried.occupancy() == played.occupancy()
    assert carried.by_line() == pytest.approx(played.by_line())
    shares = played.uncertainty.sensitivities
    assert carried.uncertainty.sensitivities == pytest.approx(shares)
    path = sum(step.path_ns for step in carried.critical_path())
    assert path == pytest.approx(carried.total_ns)


@pytest.mark.parametrize("mode", ["as_written", "device"])
@pytest.mark.parametrize("skips", [True, False])
@pytest.mark.parametrize("name", ALL)
def test_the_critical_path_adds_up_and_nothing_waits_for_what_comes_later(name, skips, mode):
    timeline = estimate(program(ALL[name]), mode=mode, skip_periods=skips)

    path = sum(step.path_ns for step in timeline.critical_path())
    assert path == pytest.approx(timeline.total_ns)
    for bar in timeline:
        assert bar.waited_for is None or timeline.bars[bar.waited_for].start_ns <= bar.start_ns


@pytest.mark.parametrize("name", ALL)
def test_a_compiled_kernel_is_not_slower_than_it_was_written(name):
    kernel = program(ALL[name])

    assert estimate(kernel, mode="device").total_ns <= estimate(kernel, mode="as_written").total_ns


def test_ten_thousand_million_transfers_take_no_time_to_add_up():
    body = """
tile = buffer(float32[128, 512], sbuf)
for i in range(10000000000):
    dma_copy(dst=tile[:, :], src=x[0:128, 0:512])
"""
    timeline = estimate(program(body), verified=True, mode="as_written")

    assert timeline.num_ops == 10**10
    (step,) = [s for s in timeline.critical_path() if s.path_ns > timeline.total_ns / 2]
    assert step.bar.instruction == "dma_copy"


def test_ten_thousand_million_iterations_take_no_time_to_add_up():
    body = """
tile = buffer(float32[128, 512], sbuf)
for i in range(10000000000):
    memset(dst=tile[:, 0:4], value=0.0)
"""
    timeline = estimate(program(body), verified=True, mode="as_written")

    assert timeline.num_ops == 10**10
    assert timeline.total_ns == pytest.approx(10**10 * 64 / 0.96, rel=1e-6)


def test_what_a_skipped_iteration_touches_is_held_until_then():
    body = """
a = buffer(float32[128, 1024], sbuf)
dma_copy(dst=a[:, :], src=x[0:128, 0:1024])
b = buffer(float32[128, 1024], sbuf)
for i in range(6):
    reciprocal(dst=b[:, 64*i : 64*i+256], data=a[:, 64*i : 64*i+256])
dma_copy(dst=out[0:128, 0:1024], src=a[:, :])
"""
    carried, played = (
        estimate(program(body), verified=True, skip_periods=skips, mode="as_written")
        for skips in (True, False)
    )

    assert carried.repeats
    assert carried.occupancy() == played.occupancy()


def test_a_gap_from_before_the_loop_is_filled_before_anything_counts_as_repeated():
    body = """
a = buffer(float32[128, 256], sbuf)
b = buffer(float32[128, 256], sbuf)
c = buffer(float32[128, 256], sbuf)
d = buffer(float32[128, 256], sbuf)
memset(dst=a[:, :], value=0.0, engine=vector)
dma_copy(dst=c[:, :], src=x[0:128, 0:256])
tensor_copy(dst=b[:, :], src=c[:, :], engine=vector)
for i in range(60):
    activation(dst=a[:, :], data=a[:, :], scale=1.0, op=exp)
    tensor_copy(dst=b[:, :], src=a[:, :], engine=vector)
    memset(dst=d[:, 0:4], value=0.0, engine=vector)
"""
    carried, played = (
        estimate(program(body), mode="device", skip_periods=skips) for skips in (True, False)
    )

    assert carried.repeats
    assert facts(carried) == facts(played)


def test_a_gap_that_is_being_filled_is_seen_where_nothing_else_changes():
    """Behind the gap an iteration takes twice as long; nothing waits for what fills it."""
    body = """
slow = buffer(float32[128, 12288], sbuf)
same = buffer(float32[128, 128], sbuf)
wide = buffer(float32[128, 25728], sbuf)
activation(dst=slow[:, :], data=slow[:, :], scale=1.0, op=exp)
tensor_copy(dst=same[:, :], src=slow[:, 0:128], engine=vector)
for i in range(200):
    memset(dst=same[:, :], value=0.0, engine=vector)
    memset(dst=wide[:, 128*i : 128*i + 128], value=0.0, engine=vector)
"""
    carried, played = (
        estimate(program(body), mode="device", verified=True, skip_periods=skips)
        for skips in (True, False)
    )

    assert facts(carried) == facts(played)


def test_stores_that_begin_sooner_than_loads_take_what_is_free_of_the_dma_engines():
    """The stores of a short loop fill idle time of the DMA engines that lies before any load."""
    body = """
b = buffer(float32[128, 128], sbuf)
d = buffer(float32[128, 128], sbuf)
dma_copy(dst=d[:, :], src=x[0:128, 0:128])
for j in range(2):
    for k in range(2):
        dma_copy(dst=out[0:128, 32:64], src=d[:, 0:32])
        t = buffer(float32[128, 128], sbuf)
        dma_copy(dst=t[:, :], src=x[0:128, 0:128])
        tensor_tensor(dst=b[:, 0:32], data1=t[:, 0:32], data2=d[:, 0:32], op=add)
    for k in range(7):
        dma_copy(dst=out[0:128, 64:96], src=d[:, 64:96])
"""
    carried, played = (
        estimate(program(body), mode="as_written", skip_periods=skips) for skips in (True, False)
    )

    assert carried.repeats
    assert facts(carried) == facts(played)


def test_queues_that_are_free_are_alike_where_no_transfer_would_have_taken_them_sooner():
    """An iteration has one store, so that all queues have had one after sixteen."""
    body = """
for i in range(30):
    a = buffer(float32[128, 12288], sbuf)
    for j in range(12):
        memset(dst=a[:, 1024*j : 1024*j + 1024], value=1.0, engine=vector)
    dma_copy(dst=out[0:128, 48*i : 48*i + 48], src=a[:, 0:48])
"""
    carried, played = (
        estimate(program(body), mode="device", skip_periods=skips) for skips in (True, False)
    )

    assert len(carried.bars) < 5 * 13
    assert facts(carried) == facts(played)
    assert carried.occupancy() == played.occupancy()


def test_a_loop_that_is_soon_played_is_not_looked_at(monkeypatch):
    body = """
tile = buffer(float32[128, 512], sbuf)
for i in range(20):
    memset(dst=tile[:, 0:4], value=0.0)
"""
    looked = estimate(program(body), mode="as_written")
    monkeypatch.undo()
    played = estimate(program(body), mode="as_written")

    assert looked.repeats and not played.repeats
    assert facts(looked) == facts(played)


def test_a_scheduled_loop_repeats_itself_once_its_first_gaps_are_too_far_back_to_be_filled():
    body = """
a = buffer(float32[128, 2050], sbuf)
b = buffer(float32[128, 2048], sbuf)
w = buffer(float32[128, 3], sbuf)
dma_copy(dst=w[:, :], src=x[0:128, 0:3])
for image in range(4):
    dma_copy(dst=a[:, :], src=x[128*image : 128*image + 128, 0:2050])
    for i in range(2048):
        product = buffer(float32[128, 3], sbuf)
        tensor_tensor(dst=product[:, :], data1=a[:, i : i + 3], data2=w[:, :], op=multiply)
        tensor_reduce(dst=b[:, i : i + 1], data=product[:, :], op=add)
"""
    timeline = estimate(program(body, "trn1"), mode="device")

    assert len(timeline.bars) < timeline.num_ops / 10


def test_bytes_that_a_loop_names_no_more_do_not_hide_that_it_repeats():
    body = """
for i in range(12):
    for j in range(12):
        t = buffer(float32[128, 64], sbuf)
        memset(dst=t[:, :], value=0.0, engine=vector)
        dma_copy(dst=out[0:128, 64*j : 64*j + 64], src=t[:, :])
"""
    carried = estimate(program(body), mode="as_written")

    assert facts(carried) == facts(estimate(program(body), skip_periods=False, mode="as_written"))
    assert len(carried.bars) < carried.num_ops / 2


@pytest.mark.parametrize("name", ["tiled copy", "matmul", "columns"])
def test_most_of_a_long_loop_is_not_played(name):
    timeline = estimate(program(ALL[name]), mode="as_written")

    assert timeline.repeats
    assert len(timeline.bars) < timeline.num_ops / 2
