"""Random kernels: what the analysis writes, the checker holds against every byte."""

from __future__ import annotations

import json
from collections import Counter
from random import Random

import pytest
from packages.tokenplan.tests.random_kernels import random_kernel

from tokenplan import analyse
from tokenplan.checker import CheckOptions, check_plan, read_plan_file
from tokenplan.neuroncore import plan_with
from tokenplan.report import plan_file

WRONG = {"E1": "orders lost", "E4": "false statements", "W5": "idle edges"}


def blocks(every: int, size: int) -> list:
    """First seeds of blocks of `size`, together `every`; but for the first one, thorough."""
    return [pytest.param(n, marks=pytest.mark.thorough if n else ()) for n in range(0, every, size)]


@pytest.mark.parametrize("first", blocks(20_000, 200))
@pytest.mark.timeout(3_000)
def test_no_order_is_lost_and_the_kept_ones_are_needed(first, capsys):
    counts = Counter(dict.fromkeys(WRONG.values(), 0))
    wrong = []
    for seed in range(first, first + 200):
        graph = analyse(random_kernel(seed))
        file = read_plan_file(json.dumps(plan_file.as_json(graph)))  # faster than its usual text
        report = check_plan(file, CheckOptions(mutate=True, random=0))
        wrong += [f"seed {seed}: {found}" for found in report.findings]
        counts.update(WRONG.get(found.code, found.code) for found in report.findings)
        counts["with a conflict"] += report.conflicts > 0
        counts.update(edge.status for edge in graph.edges)
        kept = graph.with_status("kept")
        counts["kept without a witness"] += sum(edge.witness is None for edge in kept)
    with capsys.disabled():
        print(f"\nrandom kernels {first} to {first + 199}: {dict(sorted(counts.items()))}")
    assert not wrong, wrong[:3]
    assert counts["with a conflict"] >= 0.3 * 200
    assert counts["kept without a witness"] == 0


@pytest.mark.parametrize("first", blocks(5_100, 100))
@pytest.mark.timeout(3_000)
def test_a_plan_on_any_queues_with_any_slots_neither_races_nor_stops(first, capsys):
    counts: Counter[str] = Counter()
    for seed in range(first, first + 100):
        random, kernel = Random(seed), random_kernel(seed)
        graph = analyse(kernel)
        queues = {op.id: random.choice("pqrs") for op in kernel.ops()}
        slots = {b.id: random.randint(1, 3) for b in kernel.buffers.values() if b.scope}
        plan = plan_with(graph, slots, queues)
        file = read_plan_file(plan_file.write(graph, plan.as_json()))
        report = check_plan(file, CheckOptions(mutate=True, random=20, seed=seed))
        wrong = [str(found) for found in report.findings if found.code != "W5"]
        assert not wrong, f"seed {seed}: {wrong[0]}"
        counts["waits"] += len(plan.waits)
        counts["idle"] += sum("wait" in found.detail for found in report.findings)
    with capsys.disabled():
        print(f"\nrandom plans {first} to {first + 99}: {dict(counts)}")
