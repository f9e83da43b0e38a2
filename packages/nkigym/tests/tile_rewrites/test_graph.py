"""What steps do to each other, counted on every program of the three spaces."""

from functools import cache
from itertools import combinations

import pytest

from nkigym import exhaust, matmul_root, rewrite_graph

REUSE, LOADS, CALLS, STORES = "reuse", "merge loads", "merge calls", "merge stores"
SMALL, MIDDLE, LARGE = (2, 1, 2), (1, 2, 2), (2, 2, 2)
SIZES = [SMALL, MIDDLE, pytest.param(LARGE, marks=pytest.mark.thorough)]


@cache
def graph(tiles):
    """The space, and for each of its programs what each step leads to."""
    contraction, rows, columns = tiles
    space = rewrite_graph(matmul_root(rows=rows, columns=columns, contraction=contraction))
    after = {
        node: {step: space.after(node, step) for step in space.steps(node)}
        for node in exhaust(space).depths
    }
    return space, after


def pairs(tiles):
    """Every two steps of one program: what each leads to, and what the other does from there."""
    _, after = graph(tiles)
    for node, steps in after.items():
        for one, other in combinations(steps, 2):
            first = after[steps[one]].get(other)
            second = after[steps[other]].get(one)
            yield node, one, other, first, second


def share_a_statement(one, other):
    stores = (one.kind == STORES) == (other.kind == STORES)
    return stores and not {*one[1:]}.isdisjoint(other[1:])


def group(node, step):
    """The first load of the slice that a reuse step is about."""
    return next(part.steps[step][1] for part in node if step in part.steps)


@pytest.mark.parametrize("tiles", SIZES)
def test_reuse_steps_of_different_groups_commute(tiles):
    orders = [
        (first, second)
        for node, one, other, first, second in pairs(tiles)
        if one.kind == other.kind == REUSE and group(node, one) != group(node, other)
    ]

    assert len(orders) == {SMALL: 6, MIDDLE: 109, LARGE: 34_000}[tiles]
    assert all(first is not None and first == second for first, second in orders)


@pytest.mark.parametrize(("loads", "orders"), [(3, 3), (4, 18), (5, 180)])
def test_inside_a_group_the_end_does_not_depend_on_the_order(loads, orders):
    space = rewrite_graph(matmul_root(rows=1, columns=loads, contraction=1))

    def ends(node):
        steps = [step for step in space.steps(node) if step.kind == REUSE]
        return [end for step in steps for end in ends(space.after(node, step))] or [node]

    found = ends(space.root)

    assert len(found) == orders
    assert len(set(found)) == 1


@pytest.mark.parametrize("tiles", SIZES)
def test_no_two_merges_of_a_list_share_a_statement(tiles):
    merges = [pair for _, *pair, _, _ in pairs(tiles) if all(s.kind != REUSE for s in pair)]

    assert merges
    assert not any(share_a_statement(one, other) for one, other in merges)


@pytest.mark.parametrize("tiles", SIZES)
def test_merges_create_merges(tiles):
    created, merges = _creating(tiles, lambda kind: kind != REUSE, lambda kind: kind != REUSE)

    expected = {SMALL: (8, 28), MIDDLE: (197, 613), LARGE: (7_500, 58_900)}
    assert (created, merges) == expected[tiles]


@pytest.mark.parametrize("tiles", SIZES)
def test_reuse_enables_merges(tiles):
    enabling, reuses = _creating(tiles, lambda kind: kind == REUSE, lambda kind: kind != REUSE)

    assert (enabling, reuses) == {SMALL: (0, 24), MIDDLE: (7, 300), LARGE: (500, 38_000)}[tiles]


@pytest.mark.parametrize("tiles", SIZES)
def test_load_merges_create_reuse(tiles):
    created, _ = _creating(tiles, lambda kind: kind == LOADS, lambda kind: kind == REUSE)

    assert created == {SMALL: 0, MIDDLE: 128, LARGE: 16_000}[tiles]


def _creating(tiles, by, what):
    """How many steps of a kind list a step of another that was not listed; how many there are."""
    _, after = graph(tiles)
    steps = [
        any(what(new.kind) and new not in listed for new in after[child])
        for listed in after.values()
        for step, child in listed.items()
        if by(step.kind)
    ]
    return sum(steps), len(steps)


@pytest.mark.parametrize("tiles", [*SIZES, (1, 1, 3)])
def test_steps_that_both_stay_listed_commute(tiles):
    both = [(a, b) for *_, a, b in pairs(tiles) if a is not None and b is not None]

    assert both
    assert all(first == second for first, second in both)


@pytest.mark.parametrize("tiles", SIZES)
def test_a_load_merge_and_a_reuse_of_its_load_exclude_each_other(tiles):
    sharing = [
        (first, second)
        for _, one, other, first, second in pairs(tiles)
        if {one.kind, other.kind} == {REUSE, LOADS} and share_a_statement(one, other)
    ]

    assert len(sharing) == {SMALL: 0, MIDDLE: 264, LARGE: 42_000}[tiles]
    assert all(first is None or second is None for first, second in sharing)


@pytest.mark.parametrize("tiles", SIZES)
def test_a_load_merge_can_remove_a_call_merge_but_not_the_other_way(tiles):
    orders = [
        (first, second) if one.kind == CALLS else (second, first)
        for _, one, other, first, second in pairs(tiles)
        if {one.kind, other.kind} == {LOADS, CALLS}
    ]
    removed = [load_then_call for _, load_then_call in orders if load_then_call is None]

    expected = {SMALL: (0, 4), MIDDLE: (48, 93), LARGE: (3_600, 18_360)}
    assert (len(removed), len(orders)) == expected[tiles]
    assert all(call_then_load is not None for call_then_load, _ in orders)


@pytest.mark.parametrize("tiles", SIZES)
def test_all_other_steps_that_share_no_statement_commute(tiles):
    others = [
        (first, second)
        for _, one, other, first, second in pairs(tiles)
        if not share_a_statement(one, other) and {one.kind, other.kind} != {LOADS, CALLS}
    ]

    assert others
    assert all(first is not None and first == second for first, second in others)


ORDERS = {
    "reuse, then merges": lambda kind: kind != REUSE,
    "merges, then reuse": lambda kind: kind == REUSE,
    "kind by kind": [REUSE, LOADS, CALLS, STORES].index,
}


def reached(tiles, rank):
    """Programs and transitions where no step follows one of a higher rank."""
    space, after = graph(tiles)
    seen = {(space.root, 0)}
    todo = [(space.root, 0)]
    transitions = set()
    for node, least in todo:
        for step, child in after[node].items():
            if rank(step.kind) >= least:
                transitions.add((node, step))
                state = child, rank(step.kind)
                if state not in seen:
                    seen.add(state)
                    todo.append(state)
    return len({node for node, _ in seen}), len(transitions)


@pytest.mark.parametrize("tiles", SIZES)
@pytest.mark.parametrize("order", ORDERS)
def test_an_order_of_kinds_may_lose_programs(tiles, order):
    found, transitions = reached(tiles, ORDERS[order])

    programs = {
        "reuse, then merges": {SMALL: 24, MIDDLE: 340, LARGE: 20_000},
        "merges, then reuse": {SMALL: 24, MIDDLE: 224, LARGE: 8_192},
        "kind by kind": {SMALL: 24, MIDDLE: 246, LARGE: 16_300},
    }
    assert found == programs[order][tiles]
    if order == "reuse, then merges":
        assert transitions == {SMALL: 32, MIDDLE: 645, LARGE: 59_924}[tiles]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("tiles", "found", "programs"), [((1, 3, 2), 18_832, 19_888), ((1, 2, 3), 28_180, 30_439)]
)
def test_reuse_first_loses_programs_of_three_tiles(tiles, found, programs):
    assert len(graph(tiles)[1]) == programs
    assert reached(tiles, ORDERS["reuse, then merges"])[0] == found
