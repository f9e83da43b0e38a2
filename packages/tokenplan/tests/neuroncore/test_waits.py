"""The waits of a plan: they order every conflict, none of them is idle, none is without end."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product
from math import prod

import pytest
from packages.tokenplan.tests.brute_force import random_kernel

from neuroncore.program import Affine
from tokenplan import analyse
from tokenplan.kernel.model import Kernel
from tokenplan.neuroncore import all_pairs, deal, plan_with
from tokenplan.neuroncore.clocks import Run, repeats
from tokenplan.neuroncore.counters import counted
from tokenplan.neuroncore.needs import all_needs
from tokenplan.neuroncore.nests import Nests, least_linear, with_trips
from tokenplan.neuroncore.play import executed

from .kernels import gemm
from .random_times import orders_everything
from .replayed import before, conflicts, instances, on_engines, races, repeated

TINY = gemm(512, 32, 256, tile_n=16)
TWO = {"left": 2, "right": 2, "acc": 2, "out": 2}


def planned(kernel: Kernel, seed: int):
    """The graph and a plan with random slots."""
    graph, rng = analyse(kernel), random.Random(seed)
    slots = {name: rng.randint(1, 3) for name, b in kernel.buffers.items() if b.scope}
    return graph, plan_with(graph, slots, deal(kernel))


def test_waits_of_a_gemm_count_what_its_queues_complete():
    graph = analyse(TINY)
    plan = plan_with(graph, TWO, deal(graph.kernel))

    shown = [(w.op, w.queue, w.distance, str(w.count), w.unit, w.why) for w in plan.waits]
    assert shown == [
        ("dma_copy.2", "tensor", (0, 2), "8*j + 4*p + 4", 1, ("WAR left reused after 2",)),
        ("nc_matmul", "dma0", (0,), "j + 1", 16, ("RAW right",)),
        ("nc_matmul", "dma1", (0, 0), "2*j + p + 1", 16, ("RAW left",)),
        ("nc_matmul", "vector", (0, 0, 2), "4*j + 2*p + i + 1", 1, ("WAR acc reused after 2",)),
        ("tensor_copy", "dma2", (0, 0, 2), "4*j + 2*p + i + 1", 16, ("WAR out reused after 2",)),
        ("tensor_copy", "tensor", (0, 0, 0), "8*j + 4*p + 2*i + 2", 1, ("RAW acc",)),
        ("dma_copy.3", "vector", (0, 0, 0), "4*j + 2*p + i + 1", 1, ("RAW out",)),
    ]


@pytest.mark.parametrize("block", range(10))
def test_plans_of_random_kernels_order_every_conflict(block):
    for seed in range(20 * block, 20 * block + 20):
        kernel = on_engines(random_kernel(seed), seed)
        graph, plan = planned(kernel, seed)
        every = all_pairs(graph, plan)

        assert races(kernel, plan.as_json()) == [], f"seed {seed}"
        assert races(kernel, every.as_json()) == [], f"seed {seed}"
        assert orders_everything(graph, plan), f"seed {seed}"


def test_without_any_wait_of_a_gemm_there_is_a_race():
    graph = analyse(TINY)
    plan = plan_with(graph, TWO, deal(graph.kernel))
    pairs = list(conflicts(graph.kernel, plan.as_json()))

    assert not races(graph.kernel, plan.as_json(), pairs)
    for wait in plan.waits:
        rest = replace(plan, waits=tuple(w for w in plan.waits if w is not wait))
        assert races(graph.kernel, rest.as_json(), pairs), wait
        assert not orders_everything(graph, rest), wait


def test_a_wait_that_others_imply_is_left_out():
    """The second load of B has the same queue as a later load of A, which waits for TensorE."""
    graph = analyse(gemm(512, 48, 256, tile_n=16))
    alone = plan_with(graph, TWO, deal(graph.kernel))
    shared = plan_with(graph, TWO, deal(graph.kernel) | {"dma_copy.2": "dma0"})

    assert [w.op for w in alone.waits if w.queue == "tensor"] == [
        "dma_copy", "dma_copy.2", "tensor_copy",
    ]  # fmt: skip
    assert [w.op for w in shared.waits if w.queue == "tensor"] == ["dma_copy.2", "tensor_copy"]
    assert races(graph.kernel, shared.as_json()) == []


def test_following_the_first_iterations_gives_the_waits_of_all():
    """Outermost loops are followed until what is known repeats."""
    graph = analyse(gemm(512, 16 * 40, 256, tile_n=16))
    short = analyse(gemm(512, 16 * 8, 256, tile_n=16))
    plan, few = (plan_with(g, TWO, deal(g.kernel)) for g in (graph, short))

    assert plan.proof == "what is known repeats: j from iteration 6 on"
    assert few.proof == "every iteration was followed"
    assert [(w.op, w.queue, w.distance) for w in plan.waits] == [
        (w.op, w.queue, w.distance) for w in few.waits
    ]
    assert orders_everything(graph, plan)


def test_what_is_known_does_not_repeat_while_first_waits_are_still_void():
    graph = analyse(gemm(512, 16 * 40, 256, tile_n=16))
    found = []
    for trips in (4, 8):
        nests = Nests(with_trips(graph.kernel, {"j": trips}), deal(graph.kernel))
        needs = counted(nests, all_needs(graph.kernel, graph.edges, TWO))
        found.append(repeats(Run(nests), needs, needs, {"j": 2}))

    assert found == [False, True]


@pytest.mark.parametrize("block", range(4))
def test_waits_from_the_first_iterations_order_all_iterations(block):
    for seed in range(10 * block, 10 * block + 10):
        kernel = repeated(on_engines(random_kernel(seed), seed), 40)
        graph = analyse(kernel)
        plan = plan_with(graph, {}, deal(kernel))

        assert orders_everything(graph, plan), f"seed {seed}: {plan.proof}"


def test_waits_of_a_run_are_counted_where_they_ask_for_more():
    """Matmuls of one PSUM tile wait for its panels once, matmuls of one panel for it once."""
    graph = analyse(TINY)
    plan = plan_with(graph, TWO, deal(graph.kernel))

    reused = {"left": 4 - 2, "acc": 8 - 2, "out": 8 - 2}
    read = {"right": 2, "left": 4, "acc": 8, "out": 8}
    assert executed(graph, plan) == sum(reused.values()) + sum(read.values())


def test_a_wait_for_what_comes_later_is_seen():
    graph = analyse(TINY)
    plan = plan_with(graph, TWO, deal(graph.kernel))
    first, *rest = plan.waits
    late = replace(first, count=first.count + 2, distance=(0, 0))
    plan = replace(plan, waits=(late, *rest))

    assert not orders_everything(graph, plan)
    with pytest.raises(AssertionError):
        before(graph.kernel, plan.as_json())


@pytest.mark.parametrize("seed", range(30))
def test_completions_are_counted_up_to_the_last_instance(seed):
    kernel = on_engines(random_kernel(seed), seed)
    nests, run = Nests(kernel, deal(kernel)), instances(kernel)
    for op in nests.ops:
        for depth in range(len(op.loops) + 1):
            affine, loops = nests.completions(op, depth), op.loops[:depth]
            for at in {tuple(one.at[n] for n in loops) for one in run if one.op is op}:
                last = max(
                    n for n, one in enumerate(run)
                    if one.op is op and tuple(one.at[n] for n in loops) == at
                )  # fmt: skip
                same = [o for o in run[: last + 1] if nests.queue[o.op.id] == nests.queue[op.id]]
                assert affine.value(dict(zip(loops, at, strict=True))) == len(same)


@pytest.mark.parametrize(
    "distance, trips", [((0, 2), (3, 4)), ((1, 0), (3, 4)), ((1, 2), (4, 3)), ((0, 1), (2, 1)),
                        ((2,), (5,)), ((0, 1, 3), (2, 3, 4)), ((1, 0, 2), (3, 2, 3))],
)  # fmt: skip
def test_a_distance_with_a_carry_reaches_all_of_the_iteration_before(distance, trips):
    every = list(product(*map(range, trips)))
    distances = []
    for number, at in enumerate(every):
        target = tuple(j - d for j, d in zip(at, distance, strict=True))
        there = [n for n, other in enumerate(every) if other <= target]
        if there:
            distances.append(number - there[-1])

    assert least_linear(distance, trips) <= min(distances, default=prod(trips))


def test_affine_counts_come_as_json():
    graph = analyse(TINY)
    wait = plan_with(graph, TWO, deal(graph.kernel)).waits[1]

    assert wait.count == Affine(1, (("j", 1),))
    assert wait.as_json()["count"] == {"constant": 1, "terms": {"j": 1}}
