"""A plan with one value changed is rejected or found out, unless the change says nothing false."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

from neuroncore.program import parse_program
from tokenplan import Join, Pipeline, analyse
from tokenplan.checker import PlanFileError
from tokenplan.cli import main
from tokenplan.neuroncore import schedule
from tokenplan.report import plan_file

PROGRAM = parse_program("""program("trn2", "0.6")
def blocks(a: float32[2048, 512], b: float32[2048, 512], c: float32[2048, 512]):
    for k in range(4):
        t = buffer(float32[128, 512], sbuf)
        dma_copy(dst=t[:, :], src=a[128*k : 128*k + 128, :], name="load")
        for m in range(2):
            tensor_scalar(dst=t[:, :], data=t[:, :], operand0=2.0, op0=multiply, name="twice")
        dma_copy(dst=a[128*k + 128 : 128*k + 256, :], src=t[:, :], name="store")
        dma_copy(dst=c[128*k : 128*k + 128, :], src=b[128*k : 128*k + 128, :], name="copy")
    return a
""")
WORDS = (
    "a", "b", "c", "t", "k", "m", "load", "store", "twice", "RAW", "WAR", "WAW", "kept", "implied",
    "removed", "isl", "boxes", "trial", "budget", "R", "W", "A", "vector", "dma0", "dma1", "x",
)  # fmt: skip
HARMLESS = {
    r"kernel": "a name",
    r"body.*\.(location|variable|start|step)": "how places and iterations are called",
    r"diagnostics\.\d+(\.text)?": "remarks for people that repeat nothing of the file",
    r"edges\.\d+\.(kind|from|to|distance\.\d+|rule|buffer)": "another true statement",
    r"edges\.\d+\.witness\.(byte|from\.\w+|to\.\w+)": "another byte or time at which they meet",
    r"edges\.\d+": "of a removed order that is not listed nothing is said",
    r"plan\.waits\.\d+\.(why.*|distance\.\d+|op)": "waits in another way that order as much",
    r"plan\.(prefetch.*|slots\.\w+)": "more places than asked for, and what follows from the waits",
    r"plan\.queues\.\w+": "another queue on which all stays in order",
}
"""What may change unnoticed, and why it says nothing false."""


@pytest.fixture(scope="module")
def plan():
    graph = analyse(PROGRAM, [Pipeline("k", 1), Join("load", "copy")], may_alias=[("b", "c")])
    return plan_file.as_json(graph, schedule(graph, PROGRAM).as_json())


def leaves(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = {dict: lambda: value.items(), list: lambda: enumerate(value)}.get(type(value))
    if inner is None:
        yield way
        return
    for name, below in inner():
        yield from leaves(below, (*way, name))


def another(value, chance):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + chance.choice((-1, 1, 4, 128))
    return chance.choice([word for word in WORDS if word != value])


@pytest.mark.parametrize("number", [400, pytest.param(4_000, marks=pytest.mark.thorough)])
def test_what_changes_unnoticed_says_nothing_false(plan, tmp_path, capsys, number):
    """Seed 0."""
    chance, file, ways = random.Random(0), tmp_path / "plan.json", list(leaves(plan))
    file.write_text(json.dumps(plan))
    assert main(["check", str(file), "--random", "20"]) == 0
    found = 0
    for _ in range(number):
        broken, (*way, last) = json.loads(json.dumps(plan)), chance.choice(ways)
        held = broken
        for step in way:
            held = held[step]
        if chance.random() < 0.2:
            del held[last]
        else:
            held[last] = another(held[last], chance)
        file.write_text(json.dumps(broken))
        code = main(["check", str(file), "--random", "20"])
        place = ".".join(map(str, (*way, last)))
        found += code > 0
        known = any(re.fullmatch(pattern, place) for pattern in HARMLESS)
        assert code or known, f"{place} is {json.dumps(held)}"
        capsys.readouterr()
    assert found > 0.6 * number


@pytest.mark.parametrize(
    ("way", "value", "words"),
    [
        (("edges", "trial", "rule"), "budget", "the rule budget has no witness"),
        (("edges", "trial", "rule"), "boxes", "the rule boxes finds no conflict"),
        (("edges", "instances", "rule"), "trial", "the rule trial removes no order"),
        (("edges", "may-alias", "buffer"), "b", "between two tensors, not over b"),
        (("edges", "may-alias", "assumes"), [], "does not say which tensors may share bytes"),
        (("edges", "join", "rule"), "trial", "kind join does not go with the rule trial"),
        (("edges", "trial", "assumes"), ["x"], "assumes what is not among the assumptions: x"),
        (("edges", "trial", "kind"), "accumulate", "no accumulate over "),
        (("assumptions",), [], "the plan assumes that parameters a and b are distinct tensors"),
        (("diagnostics",), [], "no diagnostic says what is assumed: parameters a and b are"),
        (("stats", "kept"), 99, "99 kept edges are counted, but 6 are listed"),
        (("stats", "total_order"), 1, "total_order is 1, but the kernel has 5"),
        (("stats", "pairs"), 1, "pairs is 1, but the kernel has "),
        (("stats", "removed"), 0, "removed, untested and conflicts do not make up all pairs"),
        (("stats", "rules"), {}, "the rules removed 0 pairs together"),
    ],
)
def test_what_does_not_fit_together_is_named(made, plan, way, value, words):
    file = copy.deepcopy(plan)
    *way, last = way
    held = file
    for step in way:
        if step in ("trial", "instances", "may-alias", "join"):
            held = next(edge for edge in held if edge["rule"] == step)
        else:
            held = held[step]
    held[last] = value
    said = [found.text for found in made.check(file, random=0).findings]
    assert any(words in text for text in said), said


@pytest.mark.parametrize(
    ("way", "value", "words"),
    [
        (("plan", "waits", 0, "unit"), 17, "counts by 16, not by 17"),
        (("plan", "stages", 0), [], "load is in no stage"),
    ],
)
def test_a_schedule_that_the_target_does_not_know_is_rejected(made, plan, way, value, words):
    file = copy.deepcopy(plan)
    *way, last = way
    held = file
    for step in way:
        held = held[step]
    held[last] = value
    with pytest.raises(PlanFileError, match=words):
        made.check(file)
