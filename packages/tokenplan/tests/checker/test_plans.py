"""Queues, slots and waits of a plan: what is sure, what races, what stops."""

import copy

import pytest


@pytest.fixture
def changed(pipeline):
    """The pipeline's file with changes to wait number n; None drops it."""

    def file(n, **changes):
        other = copy.deepcopy(pipeline)
        if changes:
            other["plan"]["waits"][n] |= changes
        else:
            del other["plan"]["waits"][n]
        return other

    return file


def test_a_plan_with_all_its_waits_holds_in_every_way(made, pipeline):
    report = made.check(pipeline, mutate=True, random=1000, interleavings=True)
    assert report.findings == []
    assert "3 of 3 waits are necessary" in report.notes
    assert "1000 random timings played (seed 0): a race in 0 of them" in report.notes


@pytest.mark.parametrize("n", [0, 1, 2])
def test_each_missing_wait_is_a_race_that_timings_and_interleavings_show(made, changed, n):
    report = made.check(changed(n), random=1000)
    assert {finding.code for finding in report.findings} == {"E1", "E6"}
    assert not any("race in 0" in note for note in report.notes)


def test_a_slot_without_its_wait_is_overwritten(made, changed):
    first = made.check(changed(2)).findings[0]
    assert "work[k=0] and load[k=2] (WAR)" in first.text
    assert "bytes of t from byte 0" in first.text


def test_more_slots_allow_a_longer_distance(made, changed):
    relaxed = changed(2, distance=[3])
    assert "E1" in made.codes(relaxed)
    relaxed["plan"]["slots"]["t"] = 3
    assert made.codes(relaxed, mutate=True) == []


def test_waits_in_a_circle_stop_the_plan(made, changed):
    stopped = changed(0, queue="out", after="store")
    report = made.check(stopped)
    assert {finding.code for finding in report.findings} == {"E5"}
    assert "queue vector stops at work[k=0]: wait 0 (work for store on out) never holds" in [
        finding.text for finding in report.findings
    ]
    assert "random timings are not played: the plan stops" in report.notes


def test_a_wait_for_more_than_the_queue_ever_counts_stops_the_plan(made, changed):
    report = made.check(changed(2, count={"constant": 9, "terms": {}}))
    assert [finding.code for finding in report.findings] == ["E5", "E5", "E5"]
    assert (
        "wait 2 (load for store on out) counts 9 at load[k=2], but store is completion 1 of out "
        "there: it waits for more than it names"
    ) in report.notes


def test_a_wait_that_counts_less_than_it_says_is_named(made, changed):
    codes = made.codes(changed(1, count={"constant": 0, "terms": {"k": 1}}))
    assert codes[0] == "E4" and "E1" in codes


def test_the_unit_of_a_queue_counts_alike_on_both_sides(made, changed):
    assert made.codes(changed(0, unit=16)) == []


def test_an_operation_after_a_loop_waits_for_all_its_iterations(made):
    fill = made.loop("k", 3, made.op("fill", made.access("a", "W", k=4)))
    use = made.op("use", made.access("a", "R", width=12))
    queues = {"fill": "in", "use": "vector"}

    def file(count):
        waits = [made.wait("use", "in", "fill", count=count)]
        edges = [made.edge("fill", "use")]
        return made.plan_file(
            made.buffers("a"), fill, use, edges=edges, plan=made.plan(queues, *waits)
        )

    assert made.codes(file(3), mutate=True, interleavings=True) == []
    assert made.codes(file(2))[:2] == ["E4", "E1"]


def test_a_queue_may_run_operations_of_many_kinds(made):
    """Two loads per iteration on one queue: the wait for the second counts two per iteration."""
    first, second = (made.op(n, made.access(n, "W", k=4)) for n in ("p", "q"))
    use = made.op("use", made.access("p", "R", k=4), made.access("q", "R", k=4))
    waits = [made.wait("use", "in", "q", 0, count=2, k=2)]
    edges = [made.edge("p", "use", 0), made.edge("q", "use", 0)]
    plan = made.plan({"p": "in", "q": "in", "use": "vector"}, *waits)
    body = made.loop("k", 3, first, second, use)
    file = made.plan_file(made.buffers("p", "q"), body, edges=edges, plan=plan)
    assert made.codes(file, mutate=True, interleavings=True) == []


def test_interleavings_of_a_big_plan_are_rejected(made, pipeline):
    big = copy.deepcopy(pipeline)
    big["buffers"][0]["shape"] = big["buffers"][1]["shape"] = [4000]
    big["body"][0]["trips"] = 900
    big["plan"]["waits"].pop()
    with pytest.raises(Exception, match="interleavings are for tiny plans"):
        made.check(big, interleavings=True, random=0)


@pytest.mark.parametrize("kind, modes", {"RAW": "WR", "WAR": "RW", "WAW": "WW"}.items())
def test_copies_on_one_dma_queue_are_in_order_and_on_two_they_are_not(made, kind, modes):
    """Same tile, no wait: a queue completes its instances in program order, two know nothing."""
    first, second = (
        made.op(name, made.access("a", mode, k=16, width=16))
        for name, mode in zip(("first", "second"), modes, strict=True)
    )
    edges = [made.edge("first", "second", 0, kind=kind)]
    body = made.loop("k", 4, first, second)

    def report(queue, *waits):
        plan = made.plan({"first": "dma0", "second": queue}, *waits)
        return made.check(
            made.plan_file(made.buffers("a"), body, edges=edges, plan=plan),
            interleavings=True, mutate=True,
        )  # fmt: skip

    assert report("dma0").findings == []
    assert report("dma1").findings[0].detail["kind"] == kind
    wait = made.wait("second", "dma0", "first", 0, count=1, k=1, unit=16)
    assert report("dma1", wait).findings == []
    # second counts there, too
    needless = made.wait("second", "dma0", "first", 0, count=1, k=2, unit=16)
    (redundant,) = report("dma0", needless).findings
    assert redundant.code == "W5"


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_a_buffer_with_s_slots_is_reused_s_iterations_later(made, pipeline, slots):
    """The wait at distance s is needed and enough; at s + 1 the slot is overwritten."""
    for distance in range(1, 5):
        file = copy.deepcopy(pipeline)
        file["plan"]["slots"]["t"] = slots
        file["plan"]["waits"][2]["distance"] = [distance]
        assert ("E1" in made.codes(file)) == (distance > slots), distance


def test_a_wait_in_an_inner_loop_reaches_over_the_end_of_a_row(made):
    """One slot, filled in (i, j) and read there: (i, 0) waits for the last read of row i - 1."""
    fill = made.op("fill", made.access("t", "W"))
    use = made.op("use", made.access("t", "R"))
    body = made.loop("i", 3, made.loop("j", 2, fill, use))
    waits = [
        made.wait("use", "in", "fill", 0, 0, count=1, i=2, j=1),
        made.wait("fill", "vector", "use", 0, 1, count=1, i=2, j=1),
    ]
    plan = made.plan({"fill": "in", "use": "vector"}, *waits, t=1)
    edges = [made.edge("fill", "use", 0, 0)]
    held = made.buffers(t=["i", "j"])
    file = made.plan_file(held, body, edges=edges, plan=plan)
    assert made.codes(file, mutate=True, interleavings=True) == []
    waits[1]["distance"] = [1, 0]
    assert "E1" in made.codes(file)


def test_before_the_first_iteration_there_is_nothing_to_wait_for(made):
    """The queue has counted something else by then, which waits for the first load."""
    before = made.op("head", made.access("a", "W"))
    load = made.op("load", made.access("t", "W"))
    store = made.op("store", made.access("t", "R"))
    waits = [
        made.wait("load", "out", "store", 2, count=2, k=1),
        made.wait("store", "in", "load", 0, count=1, k=1),
        made.wait("tail", "in", "load", count=4),
    ]
    queues = {"head": "out", "load": "in", "store": "out", "tail": "vector"}
    tail = made.op("tail", made.access("a", "R"), made.access("b", "W"))
    body = [before, made.loop("k", 4, load, store), tail]
    edges = [made.edge("load", "store", 0), made.edge("head", "tail")]
    held = made.buffers("a", "b", t=["k"])
    file = made.plan_file(held, *body, edges=edges, plan=made.plan(queues, *waits, t=2))
    thresholds = made.queues(file).thresholds
    assert thresholds[0].tolist() == [0, 0, 2, 3]


def test_sums_do_not_depend_on_who_adds_first(made):
    """Two queues add to one cell in any order; a third reads it after both."""
    add, plus = (made.op(name, made.access("s", "A")) for name in ("add", "plus"))
    read = made.op("read", made.access("s", "R"), made.access("b", "W"))
    waits = [made.wait("read", "p", "add", count=3), made.wait("read", "q", "plus", count=3)]
    edges = [made.edge(name, "read", kind="accumulate") for name in ("add", "plus")]
    plan = made.plan({"add": "p", "plus": "q", "read": "r"}, *waits)
    body = [made.loop("k", 3, add, plus), read]
    file = made.plan_file(made.buffers("s", "b"), *body, edges=edges, plan=plan)
    assert made.codes(file, mutate=True, interleavings=True) == []


def test_interleavings_see_a_start_while_the_last_of_several_still_runs(made):
    """Two fills are needed and one is waited for: the race needs the second to be under way."""
    fill = made.loop("k", 2, made.op("fill", made.access("a", "W", k=4)))
    use = made.op("use", made.access("a", "R", width=8))
    waits = [made.wait("use", "in", "fill", count=1)]
    plan = made.plan({"fill": "in", "use": "vector"}, *waits)
    edges = [made.edge("fill", "use")]
    file = made.plan_file(made.buffers("a"), fill, use, edges=edges, plan=plan)
    notes = made.check(file, interleavings=True).notes
    assert any("states explored: races 1, stops 0" in note for note in notes), notes


def test_a_plan_keeps_the_order_that_a_join_asks_for(made):
    first, second = (made.op(name, made.access(name, "W", k=4)) for name in ("p", "q"))
    body = made.loop("k", 3, first, second)
    waits = [made.wait("p", "vector", "q", 1, count=1, k=1)]
    for kept, expected in ((waits, []), ([], ["E1"])):
        file = made.plan_file(
            made.buffers("p", "q"), body, edges=[made.edge("q", "p", 1, kind="join")],
            plan=made.plan({"p": "in", "q": "vector"}, *kept), claims=[{"join": ["q", "p"]}],
        )  # fmt: skip
        report = made.check(file, mutate=True)
        assert [found.code for found in report.findings] == expected
    assert "not ordered by the plan's waits: a join requires it" in report.findings[0].text
