"""A search that would take too long is given up after a count of steps, and the order is kept."""

import json

import pytest

from neuroncore.program import parse_program
from tokenplan import analyse
from tokenplan.checker import check_plan, read_plan_file
from tokenplan.cli import main
from tokenplan.elision.claims import ClaimError
from tokenplan.report import plan_file
from tokenplan.rules import BUDGET

CROSSING = """program("trn2", "0.6")
def crossing(a: float32[4096, 512]):
    for i in range(6):
        for k in range(8):
            t = buffer(float32[3, 512], sbuf)
            dma_copy(dst=t[:, :], src=a[300*i + 7*k : 300*i + 7*k + 3, :], name="load")
            dma_copy(dst=a[11*i + 450*k + 60 : 11*i + 450*k + 63, :], src=t[:, :], name="store")
    return a
"""
PROGRAM = parse_program(CROSSING)


def by_budget(graph):
    return [edge for edge in graph.edges if edge.rule == "budget"]


def test_what_is_not_found_out_in_time_is_kept_and_said():
    graph = analyse(PROGRAM, budget=10)
    assert by_budget(graph) and all(edge.status != "removed" for edge in by_budget(graph))
    assert all(edge.witness is None for edge in by_budget(graph))
    (said,) = [found for found in graph.diagnostics if found.code == "W7"]
    assert said.text == (
        f"{len(by_budget(graph))} orders kept because the exact search for a conflict ran out of "
        "its budget"
    )
    assert check_plan(read_plan_file(plan_file.write(graph))).findings == []


@pytest.mark.parametrize("budget", [BUDGET, 10**30])
def test_more_budget_finds_it_out(budget):
    graph = analyse(PROGRAM, budget=budget)
    assert by_budget(graph) == []
    assert "W7" not in {found.code for found in graph.diagnostics}
    assert check_plan(read_plan_file(plan_file.write(graph))).findings == []


STEPS = parse_program("""program("trn2", "0.6")
def steps(o: float32[128, 12]):
    t = buffer(float32[128, 12], sbuf)
    u = buffer(float32[128, 5], sbuf)
    memset(dst=t[:, :], value=0.0)
    for i in range(3):
        for j in range(2):
            memset(dst=t[:, j + 1 : j + 10 : 2], value=1.0)
        tensor_copy(dst=u[:, :], src=t[:, 0 : 5])
    dma_copy(dst=o[:, :], src=t[:, :])
    return o
""")


def test_a_search_may_be_given_up_at_any_step():
    found = [bool(by_budget(analyse(STEPS, budget=budget))) for budget in range(1, 600, 3)]
    assert found == sorted(found, reverse=True) and {*found} == {True, False}


def test_the_same_budget_gives_the_same_plan():
    assert plan_file.write(analyse(PROGRAM, budget=10)) == plan_file.write(
        analyse(PROGRAM, budget=10)
    )


def test_no_budget_at_all_is_rejected():
    with pytest.raises(ClaimError, match="a search needs a budget"):
        analyse(PROGRAM, budget=0)


def test_the_command_takes_a_budget(tmp_path, capsys):
    file = tmp_path / "crossing.txt"
    file.write_text(CROSSING)
    assert main(["explain", str(file), "--budget", "10"]) == 0
    said = capsys.readouterr().out
    assert "W7: " in said and "nothing proves them disjoint [budget]" in said
    assert main(["explain", str(file), "--budget", "10", "--output-format", "json"]) == 0
    assert "W7" in {d["code"] for d in json.loads(capsys.readouterr().out)["diagnostics"]}
