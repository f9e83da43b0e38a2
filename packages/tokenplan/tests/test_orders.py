"""Which orders a kernel needs: the few that a conflict requires, at their least distance."""

import pytest
from packages.tokenplan.tests import brute_force
from packages.tokenplan.tests.random_kernels import random_kernel

from neuroncore.program import parse_program
from tokenplan import Parallel, Pipeline, analyse
from tokenplan.kernel.model import shared_loops

STEP = """program("trn2", "0.6")
def step(a: float32[2048, 512]):
    for k in range(START, 10, STEP):
        t = buffer(float32[128, 512], sbuf)
        dma_copy(dst=t[:, :], src=a[128*k : 128*k + 128, :], name="load")
        dma_copy(dst=a[128*k + 128 : 128*k + 256, :], src=t[:, :], name="store")
    return a
"""


def graph_of(start: int, step: int):
    return analyse(parse_program(STEP.replace("START", str(start)).replace("STEP", str(step))))


def test_even_and_odd_rows_never_meet():
    graph = graph_of(2, 2)
    assert [e for e in graph.with_status("kept") if e.buffer == "a"] == []
    removed = {(e.source, e.sink, e.rule) for e in graph.edges if e.buffer == "a"}
    assert removed == {
        ("load", "store", "residues"), ("store", "load", "residues"), ("store", "store", "shifts"),
    }  # fmt: skip


def test_a_recurrence_keeps_the_order_from_each_iteration_to_the_next():
    (edge,) = (e for e in graph_of(0, 1).with_status("kept") if e.buffer == "a")
    assert (edge.source, edge.sink, edge.distance, edge.kind) == ("store", "load", (1,), "RAW")
    assert edge.witness is not None
    assert edge.witness.element == (128, 0)
    assert (edge.witness.source, edge.witness.sink) == ({"k": 0}, {"k": 1})


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_random_kernels_need_what_their_bytes_say(first):
    for seed in range(first, first + 20):
        kernel = brute_force.random_kernel(seed)
        graph = analyse(kernel)
        needed = {
            (e.source, e.sink, e.buffer, e.kind): e.distance
            for e in graph.edges
            if e.status != "removed"
        }
        assert needed == brute_force.nearest(kernel), seed
        counts = graph.counts
        assert counts is not None and counts.untested == 0
        assert counts.pairs == counts.removed + counts.conflicts


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_random_kernels_with_swizzles_need_what_their_bytes_say(first):
    for seed in range(first, first + 20):
        kernel = random_kernel(seed)
        needed = [e for e in analyse(kernel).edges if e.status != "removed"]
        found = {(e.source, e.sink, e.buffer, e.kind): e.distance for e in needed}
        assert found == brute_force.nearest(kernel), seed
        assert all(e.witness is not None for e in needed), seed


def nearest_iterations(kernel) -> dict[str, int | None]:
    """Per loop, at least how many of its iterations apart two instances conflict, in one run.

    None where they never do.
    """
    found = dict.fromkeys(kernel.loops())
    for _, _, a, b in brute_force.conflicts(kernel):
        for name in shared_loops(a.op, b.op):
            nearest = b.at[name] - a.at[name]
            if nearest:
                found[name] = min(nearest, found[name] or nearest)
                break
    return found


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_a_claim_is_rejected_exactly_where_it_is_false_and_with_its_witness(first):
    def errors(kernel, claims):
        return [found for found in analyse(kernel, claims).diagnostics if found.is_error]

    for seed in range(first, first + 20):
        kernel = random_kernel(seed)
        true, false = [], []
        for loop, nearest in nearest_iterations(kernel).items():
            if nearest is None:
                true += [Parallel(loop), Pipeline(loop, 1_000)]
            else:
                true.append(Pipeline(loop, nearest))
                false += [Parallel(loop), Pipeline(loop, nearest + 1)]
        assert errors(kernel, true) == [], seed
        found = errors(kernel, false)
        codes = ["E2" if isinstance(claim, Parallel) else "E3" for claim in false]
        assert [each.code for each in found] == codes, seed
        for claim, each in zip(false, found, strict=True):
            assert f"loop {claim.loop} " in each.text, (seed, each)
            assert " share " in each.text and "might" not in each.text, (seed, each)


MIXED = """program("trn2", "0.6")
def mixed(a: float32[128, 16]):
    x = buffer(float32[128, 16], sbuf, address=(0, 0))
    t = buffer(float32[128, 16], sbuf)
    dma_copy(dst=x[:, :], src=a[:, :])
    dma_copy(dst=t[:, :], src=a[:, :])
    return a
"""


def test_tensors_with_and_without_an_address_are_assumed_disjoint():
    says = "tensors in sbuf without an address are disjoint from those with one"
    graph = analyse(parse_program(MIXED))
    assert graph.assumptions == (says,)
    assert [(found.code, found.text) for found in graph.diagnostics] == [("W2", says)]

    all_placed = MIXED.replace("16], sbuf)", "16], sbuf, address=(0, 64))")
    assert analyse(parse_program(all_placed)).assumptions == ()
    assert analyse(parse_program(MIXED.replace(", address=(0, 0)", ""))).assumptions == ()
