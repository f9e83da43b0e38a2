"""Every strategy, over a space of words: what is found, counted, rejected, and repeated."""

import json
from collections import Counter
from itertools import combinations

import pytest
from packages.nkigym.tests.small_space import Words

from neuroncore.timeline import estimate
from nkigym import matmul_root, rewrite_graph
from nkigym.search import (
    STRATEGIES,
    Budget,
    BudgetError,
    ConstraintError,
    Constraints,
    Plan,
    SearchError,
    Settings,
    parse_budget,
    search,
)
from nkigym.spaces import TileSpace

EVERY = pytest.mark.parametrize("strategy", STRATEGIES)


def subsequences(word):
    """All words that letters can be taken from to reach, by number of letters taken."""
    found = {"".join(chosen) for n in range(len(word) + 1) for chosen in combinations(word, n)}
    return Counter(len(word) - len(each) for each in found)


def test_exhausting_a_space_counts_every_program_transition_and_depth():
    space = Words("abcd", slack=100)

    report = search(space, Plan("exhaustive")).report

    assert report.depths == tuple(subsequences("abcd")[depth] for depth in range(5))
    assert (report.unique, report.root_opportunities, report.root_statements) == (16, 4, 4)
    assert report.candidates == 4 * 8  # each of 16 words, as often as it has letters
    assert report.visited == report.candidates + 1
    assert report.duplicates == report.candidates - 15
    assert report.stopped == "exhausted"


class Counted(TileSpace):
    """Every tile program costs a nanosecond."""

    def illegal(self, state):
        return None

    def over_capacity(self, state):
        return None

    def bound_ns(self, state):
        return 1.0

    def digest(self, state):
        return "any"


def tiles_of(contraction, rows, columns):
    return rewrite_graph(matmul_root(rows=rows, columns=columns, contraction=contraction))


@pytest.mark.parametrize("strategy", ["exhaustive", "random", "best-first"])
@pytest.mark.parametrize(("tiles", "counts"), [((2, 1, 2), (24, 52)), ((1, 2, 2), (340, 913))])
def test_strategies_that_end_reach_every_tile_program(strategy, tiles, counts):
    report = search(Counted(tiles_of(*tiles)), Plan(strategy)).report

    assert (report.unique, report.visited - 1) == counts


@EVERY
def test_tile_programs_become_faster_as_kernels(strategy):
    space = TileSpace(tiles_of(1, 2, 2))

    outcome = search(space, Plan(strategy, Budget(candidates=25)))

    assert (
        outcome.report.best_ns
        == estimate(space.kernel(outcome.best.state), mode="as_written").total_ns
    )
    assert outcome.report.best_ns < outcome.report.root_ns
    assert outcome.report.funnel == {}


@EVERY
def test_a_strategy_finds_the_best_word(strategy):
    outcome = search(Words("hgfedcba"), Plan(strategy, Budget(candidates=2000)))

    assert outcome.best.state == ""
    assert outcome.report.best_ns == 0


@EVERY
@pytest.mark.parametrize("number", [1, 7, 40])
def test_a_budget_of_candidates_finds_the_same_each_time(strategy, number):
    plan = Plan(strategy, Budget(candidates=number), seed=5)

    first, second = Words("bacabad"), Words("bacabad")
    one, other = search(first, plan, clock=lambda: 0.0), search(second, plan, clock=lambda: 0.0)

    assert one.report == other.report
    assert first.asked == second.asked
    assert one.best.schedule() == other.best.schedule()
    assert one.report.candidates == number


@EVERY
def test_a_search_that_time_has_stopped_is_replayed_by_its_count(strategy):
    ticks = iter(range(10_000))
    timed = Words("bacabadab")
    stopped = search(timed, Plan(strategy, Budget(seconds=60), 2), clock=lambda: float(next(ticks)))
    again = Words("bacabadab")

    replayed = search(again, Plan(strategy, Budget(candidates=stopped.report.candidates), 2))

    assert stopped.report.stopped == "time"
    assert timed.asked == again.asked
    assert stopped.best.schedule() == replayed.best.schedule()


@EVERY
def test_known_latencies_change_only_how_many_are_estimated(strategy):
    plan = Plan(strategy, Budget(candidates=60), seed=1)
    first, second = Words("bacabad"), Words("bacabad")
    latencies = {}

    one = search(first, plan, latencies)
    other = search(second, plan, latencies)

    assert second.asked == []
    assert other.report.cached == other.report.estimated == one.report.estimated
    assert other.best.schedule() == one.best.schedule()


def test_seeds_differ_and_a_negative_one_is_drawn_and_told():
    def schedule(seed):
        outcome = search(Words("hgfedcba"), Plan("random", Budget(candidates=9), seed))
        return outcome.report.seed, outcome.best.schedule()

    drawn, found = schedule(-1)
    assert drawn >= 0
    assert schedule(drawn) == (drawn, found)
    assert len({tuple(schedule(seed)[1]) for seed in range(8)}) > 1


def test_random_stops_at_so_many_programs_that_are_deep_enough():
    plan = Plan("random", constraints=Constraints(min_depth=3), settings=Settings(num_targets=5))

    report = search(Words("abcdefgh"), plan).report

    assert report.stopped == "targets"
    assert report.qualifying == 5 == sum(report.depths[3:])


def test_random_takes_any_untried_opportunity_of_any_node_with_some():
    """From "ab", the first step is either letter, as often; a word without letters is left out."""
    firsts = Counter(
        search(Words("ab"), Plan("random", Budget(candidates=1), seed)).best.state
        for seed in range(400)
    )

    assert firsts.keys() == {"a", "b"}
    assert 150 < firsts["a"] < 250


def test_a_beam_goes_on_with_the_best_of_a_depth():
    """Of width 1: from each word to that without its first letter, which is worth most."""
    space = Words("hgfedcba", slack=100)

    outcome = search(space, Plan("beam", settings=Settings(width=1)))

    assert outcome.report.depths == (1, 8, 7, 6, 5, 4, 3, 2, 1)
    assert {state[1:] for state in space.asked if len(state) == 4} == {"dba", "cba", "dca", "dcb"}
    assert outcome.best.schedule() == [0] * 8


@EVERY
def test_a_winner_is_as_deep_as_asked(strategy):
    plan = Plan(strategy, Budget(candidates=300), constraints=Constraints(2, 3))

    outcome = search(Words("hgfed"), plan)

    assert outcome.best.depth == 3
    assert len(outcome.report.depths) <= 4


def test_rejections_are_counted_with_their_reasons_in_order():
    space = Words("aabc", illegal={"abc"}, large={"aab"})

    report = search(space, Plan("exhaustive")).report

    assert report.funnel["step"] == {"in front of its equal": 3}
    assert report.funnel["legality"] == {"a bad word": 1}
    assert report.funnel["capacity"] == {"a long word": 1}
    assert {"abc", "aab"}.isdisjoint(space.asked)


def test_a_program_that_cannot_win_by_its_bound_is_not_estimated_and_still_expanded():
    space = Words("ba")

    report = search(space, Plan("exhaustive")).report

    assert space.asked == ["ba", "a", ""]
    assert report.funnel["bound"] == {"at best as long as the best so far": 1}
    assert report.unique == 4


def test_ctrl_c_keeps_what_was_found():
    class Interrupted(Words):
        def latency_ns(self, state):
            if len(self.asked) == 4:
                raise KeyboardInterrupt
            return super().latency_ns(state)

    outcome = search(Interrupted("hgfedcba", slack=100), Plan("exhaustive"))

    assert outcome.report.stopped == "interrupted"
    assert outcome.best.state == "gfedcba"


def test_a_watcher_receives_every_candidate():
    seen = []

    search(Words("cba"), Plan("best-first", Budget(candidates=5)), watcher=seen.append)

    assert [each.candidates for each in seen] == [1, 2, 3, 4, 5]
    assert [each.best_ns for each in seen] == sorted((e.best_ns for e in seen), reverse=True)


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("60s", Budget(seconds=60)),
        ("1000", Budget(candidates=1000)),
        ("1.5min", Budget(seconds=90)),
        ("200ms", Budget(seconds=0.2)),
        ("1h", Budget(seconds=3600)),
    ],
)
def test_a_budget_is_a_number_or_a_time(text, budget):
    assert parse_budget(text) == budget


@pytest.mark.parametrize(
    "text", ["0", "0s", "0.0min", "", "-3", "-3s", "s", "10 parsecs", "1e3", "nan"]
)
def test_a_budget_that_allows_nothing_is_rejected(text):
    with pytest.raises(BudgetError, match="a number of candidates, such as 1000, or a time"):
        parse_budget(text)


@pytest.mark.parametrize("given", [{"candidates": 0}, {"seconds": 0}, {"seconds": float("nan")}])
def test_a_budget_of_nothing_is_rejected(given):
    with pytest.raises(BudgetError, match="a budget that allows nothing"):
        Budget(**given)


@EVERY
def test_a_root_without_steps_is_the_only_candidate(strategy):
    found = search(Words(""), Plan(strategy))

    assert found.best is found.root
    assert (found.report.candidates, found.report.unique, found.report.stopped) == (
        0,
        1,
        "exhausted",
    )


def test_contradictory_depths_are_rejected():
    with pytest.raises(ConstraintError, match="min_depth 4, max_depth 3"):
        Constraints(4, 3)
    with pytest.raises(ConstraintError, match="0 or more"):
        Constraints(-1)
    with pytest.raises(ConstraintError, match="depth of 0 leaves nothing to search"):
        Constraints(max_depth=0)


@pytest.mark.parametrize("name", ["num_targets", "width", "population"])
def test_settings_that_leave_nothing_are_rejected(name):
    with pytest.raises(ConstraintError, match=f"{name} 0 leaves nothing"):
        Settings(**{name: 0})


@EVERY
def test_a_depth_that_nothing_reaches_is_said(strategy):
    with pytest.raises(SearchError, match=r"none of .* programs qualifies"):
        search(Words("ab"), Plan(strategy, Budget(candidates=50), constraints=Constraints(9)))


def test_a_root_that_cannot_run_is_rejected():
    with pytest.raises(SearchError, match="cannot run: a bad word"):
        search(Words("ab", illegal={"ab"}), Plan())


def test_targets_are_rejected_where_nothing_counts_them():
    with pytest.raises(ConstraintError, match="beam search has no num_targets"):
        Plan("beam", settings=Settings(num_targets=3))


def test_an_unknown_strategy_is_rejected():
    with pytest.raises(ConstraintError, match="'greedy' is not a strategy"):
        Plan("greedy")


# -- steps as JSON ---------------------------------------------------------------------------------


def test_steps_of_tile_programs_come_back_from_json():
    space = TileSpace(tiles_of(1, 2, 2))

    for step in space.steps(space.root):
        assert space.read_step(json.loads(json.dumps(space.write_step(step)))) == step


@pytest.mark.parametrize("given", [None, [], ["reuse", 0], ["reuse", "0", 1], {"kind": "reuse"}])
def test_what_is_no_step_is_rejected(given):
    with pytest.raises(ValueError, match="not a rewrite of a tile program"):
        TileSpace(tiles_of(1, 1, 2)).read_step(given)
