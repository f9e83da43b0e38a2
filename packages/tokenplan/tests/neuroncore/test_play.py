"""A pipelined GEMM on the timeline: fast, without a race in any timing, without an idle wait."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from packages.tokenplan.tests.brute_force import random_kernel

from neuroncore.errors import AttributeValueError
from neuroncore.timeline import estimate
from tokenplan import analyse
from tokenplan.neuroncore import all_pairs, by_direction, compare, deal, plan_with, play, schedule
from tokenplan.neuroncore.capacity import held
from tokenplan.neuroncore.search import LONG_RUN

from .kernels import gemm
from .random_times import durations, instances, orders_everything, races_without, violations
from .replayed import conflicts, on_engines

TIMINGS = 10_000


@cache
def small():
    """A GEMM of 38 instances: its program, graph, plan, and the plan played."""
    program = gemm(512, 32, 256, tile_n=16)
    graph = analyse(program)
    plan = schedule(graph, program)
    return program, graph, plan, play(graph, plan, program)


@cache
def large():
    """2048 x 2048 x 2048 in bfloat16."""
    program = gemm(2048, 2048, 2048)
    graph = analyse(program)
    plan = schedule(graph, program)
    return graph, plan, compare(graph, plan, program)


def test_the_busiest_engine_of_a_gemm_hardly_ever_waits():
    _, _, found = large()

    assert found.planned.busiest[0] == "tensor"
    assert found.planned.ratio <= 1.1
    tensor_ns = 2048**3 / 128 / 128 / 2.4  # a column of 128 x 128 products each cycle of 2.4 GHz
    assert found.planned.busiest[1] == pytest.approx(tensor_ns, rel=0.02)
    assert found.planned.makespan_ns <= 1.1 * tensor_ns
    assert found.planned.exposed().get("tensor", {}) == {}


def test_a_gemm_overlaps_what_one_stream_does_in_turn():
    _, _, found = large()

    assert found.serial_ns > 3 * found.planned.makespan_ns
    assert found.planned.makespan_ns <= found.all_pairs.makespan_ns
    assert found.waits < found.all_waits
    assert 0.3 < found.planned.bandwidth_share < 1


def test_a_gemm_needs_two_places_for_what_its_loops_load():
    _, plan, _ = large()

    assert plan.slots == {"right": 2, "left": 2, "out": 1, "acc": 2}
    assert plan.prefetch == {"j": 1, "p": 1}
    assert plan.stages == (
        ("dma_copy", "dma_copy.2"), ("nc_matmul",), ("tensor_copy",), ("dma_copy.3",)
    )  # fmt: skip


def test_no_random_timing_of_a_gemm_has_a_race():
    """Byte for byte: the pairs come from what each instance accesses, not from the graph."""
    _, graph, plan, played = small()
    pairs = np.array(list(conflicts(graph.kernel, plan.as_json())))
    run, takes = instances(graph, plan), durations(graph, played)

    assert len(pairs) > 50
    assert violations(run, takes, TIMINGS, seed=6, pairs=pairs) == 0
    assert violations(run, takes, TIMINGS, seed=6) == 0


def test_no_random_timing_of_a_large_gemm_has_a_race():
    graph, plan, found = large()

    run = instances(graph, plan)
    assert violations(run, durations(graph, found.planned), 1_000, seed=6) == 0


def test_without_any_wait_some_timing_has_a_race():
    _, graph, plan, played = small()
    takes = durations(graph, played)

    assert all(races_without(graph, plan, takes))
    for wait in plan.waits:
        rest = replace(plan, waits=tuple(w for w in plan.waits if w is not wait))
        run = replace(instances(graph, rest), needed=instances(graph, plan).needed)
        assert violations(run, takes, 1_000, seed=6) > 0, wait


@pytest.mark.parametrize("seed", range(40))
def test_every_wait_of_a_random_kernel_orders_what_nothing_else_does(seed):
    kernel = on_engines(random_kernel(seed), seed)
    graph = analyse(kernel)
    plan = plan_with(graph, {}, deal(kernel))

    for wait in plan.waits:
        rest = replace(plan, waits=tuple(w for w in plan.waits if w is not wait))
        assert not orders_everything(graph, rest), wait


def test_waits_for_every_conflict_order_the_same():
    _, graph, plan, _ = small()

    assert orders_everything(graph, all_pairs(graph, plan))


def test_the_plan_takes_as_long_as_the_timeline_says_of_rotated_buffers():
    """Two ways to the same: waits for counters here, tracked bytes and rotated buffers there."""
    program = gemm(2048, 2048, 2048)
    compiled = estimate(program, mode="device", verified=True)

    assert large()[2].planned.makespan_ns == pytest.approx(compiled.total_ns, rel=0.01)


def test_places_that_do_not_fit_are_rejected():
    graph = analyse(gemm(8192, 8192, 8192))
    slots = {"right": 4, "left": 4}

    assert held(graph.kernel, {"right": 2, "left": 1}).sbuf == 2 * 65536 + 32768 + 1024
    assert held(graph.kernel, {"acc": 3}).psum == 3
    with pytest.raises(AttributeValueError, match="hold 394240 bytes per partition, 1 banks"):
        plan_with(graph, slots, deal(graph.kernel))


def test_a_long_kernel_is_searched_with_fewer_iterations_of_its_outermost_loop():
    program = gemm(1024, 512 * 80, 1024)
    graph = analyse(program)
    plan = schedule(graph, program)

    each = 1 + 4 * (1 + 2 * (8 + 2))
    assert 40 * each < LONG_RUN < 80 * each
    assert min(plan.slots["left"], plan.slots["right"]) >= 2
    assert plan.proof.startswith("what is known repeats: j")
    assert orders_everything(graph, plan)


@pytest.mark.parametrize("target", ["trn1", "trn3"])
def test_other_generations_have_plans_too(target):
    program = replace(gemm(1024, 1024, 512), target=target)
    graph = analyse(program)
    plan = schedule(graph, program)
    found = compare(graph, plan, program)

    assert orders_everything(graph, plan)
    assert found.planned.makespan_ns < found.serial_ns / 2
    assert found.planned.timeline.target == target


def test_loads_share_a_queue_and_stores_another():
    kernel = small()[1].kernel

    assert by_direction(kernel) == {
        "dma_copy": "dma0", "dma_copy.2": "dma0", "nc_matmul": "tensor",
        "tensor_copy": "vector", "dma_copy.3": "dma1",
    }  # fmt: skip


def test_the_same_kernel_has_the_same_plan():
    program, graph, plan, _ = small()

    assert schedule(analyse(program), program) == plan
    assert schedule(graph, program).as_json() == plan.as_json()
