"""Edges of a plan file against the bytes that unrolled instances access."""

from itertools import product

import pytest

AT_TWO = {"buffer": "a", "byte": 8, "element": [2], "from": {"k": 0}, "to": {"k": 2}}


@pytest.fixture
def recurrence(made):
    """Element k + 2 is made from element k: the store is needed two iterations later."""
    load = made.op("load", made.access("a", "R", k=4), made.access("t", "W"))
    store = made.op("store", made.access("t", "R"), made.access("a", "W", 8, k=4))

    def file(distance=2, *more):
        edges = [made.edge("load", "store", 0), made.edge("store", "load", distance), *more]
        held = made.buffers("a", t=["k"])
        return made.plan_file(held, made.loop("k", 6, load, store), edges=edges)

    return file


def test_edges_at_the_least_distance_order_every_conflict(made, recurrence):
    report = made.check(recurrence(), mutate=True)
    assert report.findings == []
    assert (report.instances, report.conflicts) == (12, 6 + 4)
    assert "2 of 2 kept edges are necessary" in report.notes


def test_an_edge_that_reaches_back_too_far_leaves_a_conflict(made, recurrence):
    (finding,) = made.check(recurrence(3)).findings
    assert finding.code == "E1"
    assert finding.text == (
        "store[k=0] and load[k=2] (RAW) are not ordered by the kept edges: both access 4 bytes of "
        "a from byte 8, element [2] on (k.py:5 and k.py:4); 4 such pairs of instances"
    )
    assert finding.detail["iterations"] == [{"k": 0}, {"k": 2}]


def test_an_edge_that_others_imply_can_go(made, recurrence):
    again = made.edge("store", "load", 2)
    assert made.codes(recurrence(2, again)) == []
    report = made.check(recurrence(2, again), mutate=True)
    assert "2 more are kept without a witness, as a precaution" in report.notes
    again["witness"] = AT_TWO
    (finding,) = made.check(recurrence(2, again), mutate=True).findings
    assert (finding.code, finding.detail) == ("W5", {"edge": 2})


def test_an_edge_that_reaches_nearer_than_any_conflict_is_stricter_than_needed(made, recurrence):
    strict = recurrence(1)
    strict["edges"][1]["witness"] = AT_TWO
    (finding,) = made.check(strict, mutate=True).findings
    assert finding.code == "W5"
    assert finding.text.endswith("stricter than any RAW conflict requires: the nearest is at [2]")


def test_an_edge_is_not_implied_that_adds_an_order(made, recurrence):
    assert (
        made.codes(recurrence(2, made.edge("load", "load", 2, kind="WAW", status="implied"))) == []
    )
    nearer = made.edge("load", "load", 1, kind="WAW", status="implied")
    assert made.codes(recurrence(2, nearer)) == ["E4"]


def test_a_needed_edge_must_not_be_said_to_be_removed(made, recurrence):
    assert made.codes(recurrence(2, made.edge("store", "load", 2, status="removed"))) == ["E4"]
    assert made.codes(recurrence(2, made.edge("store", "load", 3, status="removed"))) == []


def test_a_deleted_edge_is_missed(made, recurrence):
    whole = recurrence()
    for edge in whole["edges"]:
        left = [other for other in whole["edges"] if other is not edge]
        assert made.codes({**whole, "edges": left}) == ["E1"]


@pytest.mark.parametrize("distance", [(0, 2), (1, -2), (1, 1), (2, -1), (1, -9), (1, 9), (0, 9)])
def test_an_edge_waits_for_every_iteration_that_is_lexicographically_early_enough(made, distance):
    """Every iteration reads all that is written: what an edge does not order is a conflict."""
    rows, columns = 3, 4
    writes = [made.op("write", made.access("a", "W", i=4 * columns, j=4))]
    reads = made.op("read", made.access("a", "R", width=4 * rows * columns))
    body = made.loop("i", rows, made.loop("j", columns, reads, *writes))
    edges = [made.edge("write", "read", *distance)]
    file = made.plan_file(made.buffers("a", size=4 * rows * columns), body, edges=edges)
    nest = list(product(range(rows), range(columns)))
    limits = {(i, j): (i - distance[0], j - distance[1]) for i, j in nest}
    missing = [(j, i) for j in nest for i in nest if limits[j] < i < j]
    found = [f for f in made.check(file).findings if f.detail["kind"] == "RAW"]
    assert sum(finding.detail["pairs"] for finding in found) == len(missing)


def test_two_accumulations_need_no_order_and_a_read_does(made):
    add = made.op("add", made.access("s", "A"))
    held = made.buffers("s")
    assert made.codes(made.plan_file(held, made.loop("k", 3, add))) == []
    read = made.op("read", made.access("s", "R"))
    needs = made.plan_file(held, made.loop("k", 3, add), read)
    assert made.codes(needs) == ["E1"]
    needs["edges"] = [made.edge("add", "read", kind="accumulate")]
    assert made.codes(needs, mutate=True) == []


def test_a_scoped_buffer_is_other_memory_in_each_iteration(made):
    write = made.op("write", made.access("t", "W"))
    body = made.loop("i", 2, made.loop("j", 2, write))
    for scope, expected in ((["i", "j"], []), (["i"], ["E1"])):
        assert made.codes(made.plan_file(made.buffers(t=scope), body)) == expected


def test_witnesses_are_replayed(made, recurrence):
    file = recurrence()
    good = {"buffer": "a", "byte": 9, "element": [2], "from": {"k": 0}, "to": {"k": 2}}
    file["edges"][1]["witness"] = good
    assert made.codes(file) == []
    for wrong in (
        {"byte": 12, "element": [3]}, {"to": {"k": 1}}, {"element": [3]}, {"element": []},
        {"buffer": "t", "byte": 0, "element": [0]},
    ):  # fmt: skip
        file["edges"][1]["witness"] = good | wrong
        assert made.codes(file) == ["E4"], wrong


def test_claims_are_checked_on_the_instances(made, recurrence):
    def claimed(*claims):
        return made.codes({**recurrence(), "claims": list(claims)})

    assert claimed({"loop": "k", "claim": "parallel"}) == ["E2"]
    assert claimed({"loop": "k", "claim": "pipeline", "depth": 2}) == []
    assert claimed({"loop": "k", "claim": "pipeline", "depth": 3}) == ["E3"]
    assert claimed({"join": ["load", "store"]}) == []


def test_a_join_must_be_ordered_though_nothing_conflicts(made):
    first, second = (made.op(name, made.access(name, "W")) for name in ("p", "q"))
    file = made.plan_file(made.buffers("p", "q"), first, second)
    file["claims"] = [{"join": ["p", "q"]}]
    assert made.codes(file) == ["E4"]
    assert made.codes(file | {"edges": [made.edge("p", "q", kind="join")]}, mutate=True) == []


def test_a_join_against_program_order_is_one_of_the_next_iteration(made):
    first, second = (made.op(name, made.access(name, "W", k=4)) for name in ("p", "q"))
    file = made.plan_file(made.buffers("p", "q"), made.loop("k", 3, first, second))
    file["claims"] = [{"join": ["q", "p"]}]
    assert made.codes(file) == ["E4"]
    joined = file | {"edges": [made.edge("q", "p", 1, kind="join")]}
    assert made.codes(joined) == []
    assert made.codes(file | {"edges": [made.edge("p", "q", 0, kind="join")]}) == ["E4"]


def test_a_join_that_could_never_hold_is_rejected(made):
    first, second = (made.op(name, made.access(name, "W")) for name in ("p", "q"))
    file = made.plan_file(made.buffers("p", "q"), first, second)
    file["claims"] = [{"join": ["q", "p"]}]
    with pytest.raises(
        ValueError, match=r"claims\[0\]: p cannot wait for q, which stands behind it"
    ):
        made.check(file)


def test_a_loop_without_trips_needs_nothing(made):
    write = made.op("write", made.access("a", "W"))
    file = made.plan_file(made.buffers("a"), made.loop("k", 0, write))
    assert made.check(file, mutate=True).instances == 0


def test_a_kernel_that_is_too_big_is_rejected_until_trips_are_given(made):
    write = made.op("write", made.access("a", "W"))
    edges = [made.edge("write", "write", 1, kind="WAW")]
    file = made.plan_file(made.buffers("a"), made.loop("k", 60_000, write), edges=edges)
    with pytest.raises(Exception, match=r"60000 instances .* --trips .*k=60000"):
        made.check(file)
    report = made.check(file, trips={"k": 4})
    assert (report.findings, report.instances) == ([], 4)
    assert "at reduced trip counts only: k=4" in report.notes
    with pytest.raises(ValueError, match="not a loop of kernel"):
        made.check(file, trips={"m": 4})
