"""Random kernels: what the analysis writes, the checker holds against every byte."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from packages.tokenplan.tests.random_kernels import random_kernel

from tokenplan import analyse, document
from tokenplan.checker import CheckOptions, check_plan, read_plan_file
from tokenplan.neuroncore import plan_with

# An edge orders all instances of two operations though some alone conflict: a few edges are kept
# for instances that need no order. No shorter list of edges of this form has the same closure.
MOST_IDLE = 0.01


@pytest.mark.parametrize("number", [2_000, pytest.param(20_000, marks=pytest.mark.thorough)])
@pytest.mark.timeout(3_000)
def test_no_order_is_lost_and_the_kept_ones_are_needed(number, capsys):
    counts: Counter[str] = Counter()
    for seed in range(number):
        graph = analyse(random_kernel(seed))
        file = read_plan_file(document.write(graph))
        report = check_plan(file, CheckOptions(mutate=True, random=0))
        wrong = [str(found) for found in report.findings if found.code != "W5"]
        assert not wrong, f"seed {seed}: {wrong[0]}"
        strict = [found.text for found in report.findings if "stricter" in found.text]
        assert not strict, f"seed {seed}: {strict[0]}"
        counts["with a conflict"] += report.conflicts > 0
        counts["idle"] += len(report.findings)
        counts.update(edge.status for edge in graph.edges)
    with capsys.disabled():
        print(f"\n{number} random kernels: {dict(counts)}")
    assert counts["with a conflict"] >= 0.3 * number
    assert counts["idle"] <= MOST_IDLE * counts["kept"]


@pytest.mark.parametrize("number", [300, pytest.param(5_000, marks=pytest.mark.thorough)])
@pytest.mark.timeout(3_000)
def test_a_plan_on_any_queues_with_any_slots_neither_races_nor_stops(number, capsys):
    counts: Counter[str] = Counter()
    for seed in range(number):
        random, kernel = Random(seed), random_kernel(seed)
        graph = analyse(kernel)
        queues = {op.id: random.choice("pqrs") for op in kernel.ops()}
        slots = {b.id: random.randint(1, 3) for b in kernel.buffers.values() if b.scope}
        plan = plan_with(graph, slots, queues)
        file = read_plan_file(document.write(graph, plan.as_json()))
        report = check_plan(file, CheckOptions(mutate=True, random=20, seed=seed))
        wrong = [str(found) for found in report.findings if found.code != "W5"]
        assert not wrong, f"seed {seed}: {wrong[0]}"
        counts["waits"] += len(plan.waits)
        counts["idle"] += sum("wait" in found.detail for found in report.findings)
    with capsys.disabled():
        print(f"\n{number} random plans: {dict(counts)}")
