"""Two parameters that may be one tensor: every access to one stays in order with the other's."""

import copy
import json
from random import Random

import pytest
from packages.tokenplan.tests.random_kernels import random_kernel

from neuroncore.program import parse_program
from tokenplan import Join, MayAlias, Parallel, Pipeline, analyse
from tokenplan.checker import CheckOptions, check_plan, read_plan_file
from tokenplan.cli import main
from tokenplan.elision.claims import ClaimError
from tokenplan.neuroncore import plan_with, schedule
from tokenplan.report import plan_file

COPIES = """program("trn2", "0.6")
def copies(a: float32[2048, 512], b: float32[2048, 512]):
    for k in range(8):
        t = buffer(float32[128, 512], sbuf)
        dma_copy(dst=t[:, :], src=a[128*k : 128*k + 128, :], name="load")
        dma_copy(dst=b[128*k : 128*k + 128, :], src=t[:, :], name="store")
    return b
"""
NESTED = """program("trn2", "0.6")
def nested(a: float32[512, 512], b: float32[512, 512], c: float32[512, 512]):
    for i in range(2):
        t = buffer(float32[128, 512], sbuf)
        dma_copy(dst=t[:, :], src=a[128*i : 128*i + 128, :], name="load")
        for k in range(3):
            dma_copy(dst=t[:, :], src=b[128*k : 128*k + 128, :], dst_rmw_op=add, name="add")
        dma_copy(dst=c[128*i : 128*i + 128, :], src=t[:, :], name="store")
    for k in range(1):
        u = buffer(float32[128, 512], sbuf)
        dma_copy(dst=u[:, :], src=c[128*k + 128 : 128*k + 256, :], name="again")
        dma_copy(dst=b[128*k : 128*k + 128, :], src=u[:, :], name="back")
    return c
"""
COPY, NEST = parse_program(COPIES), parse_program(NESTED)
PAIRS = [(COPY, [("a", "b")]), (NEST, [("a", "c")]), (NEST, [("b", "c"), ("c", "a")])]
IDS = ["one loop", "nested", "three tensors"]


def findings(file: dict, **options):
    return check_plan(read_plan_file(json.dumps(file)), CheckOptions(**options)).findings


def test_what_might_be_one_tensor_is_kept_in_order_over_all_of_it():
    graph = analyse(COPY, may_alias=[("b", "a")])
    found = [(e.source, e.sink, e.distance, e.kind) for e in graph.edges if e.rule == "may-alias"]
    assert found == [("load", "store", (0,), "WAR"), ("store", "load", (1,), "RAW")]
    assert graph.assumptions == ("it is allowed that a and b share bytes",)
    assert [found.code for found in graph.diagnostics] == ["W6"]


def test_without_it_the_two_are_assumed_to_be_distinct():
    graph = analyse(COPY)
    assert graph.assumptions == ("parameters a and b are distinct tensors",)
    assert all(edge.rule != "may-alias" for edge in graph.edges)


@pytest.mark.parametrize("program, may_alias", PAIRS, ids=IDS)
def test_pairs_of_accesses_are_accounted_for(program, may_alias):
    before, after = analyse(program).counts, analyse(program, may_alias=may_alias).counts
    assert before is not None and after is not None
    assert after.pairs == before.pairs == after.removed + after.untested + after.conflicts
    assert after.conflicts > before.conflicts


@pytest.mark.parametrize("program, may_alias", PAIRS, ids=IDS)
def test_the_checker_finds_every_order_and_misses_each_that_is_taken_away(program, may_alias):
    graph = analyse(program, may_alias=may_alias)
    plan = schedule(graph, program).as_json()
    file = plan_file.as_json(graph, plan)
    assert [str(found) for found in findings(file, mutate=True)] == []
    for n, edge in enumerate(file["edges"]):
        if edge["status"] == "kept":
            broken = copy.deepcopy(file)
            del broken["edges"][n]
            broken["stats"]["kept"] -= 1
            assert "E1" in {found.code for found in findings(broken, random=0)}, edge
    for n in range(len(plan["waits"])):
        broken = copy.deepcopy(file)
        del broken["plan"]["waits"][n]
        assert "E1" in {found.code for found in findings(broken, random=0)}, plan["waits"][n]


def test_a_plan_that_takes_them_for_distinct_is_no_plan_where_they_may_be_one():
    file = plan_file.as_json(analyse(COPY))
    file["claims"] = [{"may_alias": ["a", "b"]}]
    said = [str(found) for found in findings(file)]
    assert any("they access a and b, which may share bytes" in text for text in said)


@pytest.mark.parametrize("claim, code", [(Parallel("k"), "E2"), (Pipeline("k", 2), "E3")])
def test_iterations_that_might_meet_are_not_parallel(claim, code):
    graph = analyse(COPY, [claim], may_alias=[("a", "b")])
    (error,) = [found for found in graph.diagnostics if found.is_error]
    assert error.code == code and "might share bytes of a and b, 1 of k apart" in error.text
    assert code in {found.code for found in findings(plan_file.as_json(graph))}
    assert not any(found.is_error for found in analyse(COPY, [claim]).diagnostics)


def test_the_plan_file_says_so_and_is_read_back():
    graph = analyse(COPY, may_alias=[("a", "b")])
    text = plan_file.write(graph)
    assert plan_file.write(plan_file.read(text)[0]) == text
    file = json.loads(text)
    assert file["claims"] == [{"may_alias": ["a", "b"]}]
    kept = [edge for edge in file["edges"] if edge["rule"] == "may-alias"]
    assert all(e["assumes"] == ["it is allowed that a and b share bytes"] for e in kept) and kept


def test_it_belongs_to_the_key_in_any_order_and_once():
    key = plan_file.as_json(analyse(COPY, may_alias=[("a", "b")]))["key"]
    assert key != plan_file.as_json(analyse(COPY))["key"]
    twice = [MayAlias(("b", "a"))]
    assert key == plan_file.as_json(analyse(COPY, twice, may_alias=[("a", "b")]))["key"]


def test_tensors_that_the_kernel_allocates_are_disjoint():
    with pytest.raises(ClaimError, match="a and t cannot share bytes by an alias"):
        analyse(COPY, may_alias=[("a", "t")])


def test_the_command_says_it_in_words(tmp_path, capsys):
    file = tmp_path / "copies.txt"
    file.write_text(COPIES)
    assert main(["explain", str(file), "--may-alias", "a,b"]) == 0
    said = capsys.readouterr().out
    assert "      it is allowed that a and b share bytes [RAW, may-alias]\n" in said
    assert "W6: it is allowed that a and b share bytes\n" in said and "W2" not in said


@pytest.mark.parametrize("number", [200, pytest.param(3_000, marks=pytest.mark.thorough)])
@pytest.mark.timeout(3_000)
def test_random_kernels_keep_every_order_between_tensors_that_may_be_one(number):
    """And every join between two of their operations, with or against program order."""
    tested = 0
    for seed in range(number):
        random, kernel = Random(seed), random_kernel(seed)
        parameters = [b.id for b in kernel.buffers.values() if b.is_parameter]
        ops = [op.id for op in kernel.ops()]
        if len(parameters) < 2 or len(ops) < 2:
            continue
        tested += 1
        wish = Join(*random.sample(ops, 2))
        one, other = random.sample(parameters, 2)
        try:
            graph = analyse(kernel, [wish], may_alias=[(one, other)])
        except ClaimError as rejected:
            assert "cannot wait for" in str(rejected)
            continue
        queues = {op: random.choice("pqrs") for op in ops}
        slots = {b.id: random.randint(1, 3) for b in kernel.buffers.values() if b.scope}
        plan = plan_with(graph, slots, queues).as_json()
        file = plan_file.as_json(graph, plan)
        wrong = [str(found) for found in findings(file, random=20, seed=seed)]
        assert not wrong, f"seed {seed}: {wrong[0]}"
    assert tested > number // 10
