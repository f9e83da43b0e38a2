"""Random kernels: what the analysis writes, the checker holds against every byte."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from packages.tokenplan.tests.random_kernels import random_kernel

from tokenplan import analyse, document
from tokenplan.checker import CheckOptions, check_plan, read_plan_file
from tokenplan.neuroncore import plan_with


@pytest.mark.parametrize("number", [2_000, pytest.param(20_000, marks=pytest.mark.thorough)])
@pytest.mark.timeout(3_000)
def test_no_order_is_lost_and_the_kept_ones_are_needed(number, capsys):
    counts: Counter[str] = Counter()
    for seed in range(number):
        graph = analyse(random_kernel(seed))
        file = read_plan_file(document.write(graph))
        report = check_plan(file, CheckOptions(mutate=True, random=0))
        wrong = [str(found) for found in report.findings]
        assert not wrong, f"seed {seed}: {wrong[0]}"
        counts["with a conflict"] += report.conflicts > 0
        counts.update(edge.status for edge in graph.edges)
        kept = graph.with_status("kept")
        counts["kept without a witness"] += sum(edge.witness is None for edge in kept)
    with capsys.disabled():
        print(f"\n{number} random kernels: {dict(counts)}")
    assert counts["with a conflict"] >= 0.3 * number


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
