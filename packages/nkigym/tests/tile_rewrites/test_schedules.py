"""Fewer transitions, fewer programs, batches and walks: all of the same space."""

import random

import pytest
from packages.nkigym.tests import canonical

from nkigym import exhaust, matmul_root, rewrite_graph
from nkigym.checker import check_tiles
from nkigym.tile_rewrites import canonical_count, descend, replay, share_all_loads, walk
from nkigym.tile_rewrites.random_walk import Sums, Walk
from nkigym.tile_rewrites.schedules import SharedLoads
from nkigym.tiles import repeated_add_root, sum_and_product_root, tensor_add_root


def space_of_tiles(contraction, rows, columns):
    return rewrite_graph(matmul_root(rows=rows, columns=columns, contraction=contraction))


TRANSITIONS = {
    (2, 1, 2): (52, 40),
    (1, 2, 2): (913, 629),
    (1, 1, 4): (1_879, 1_488),
    (2, 2, 2): (96_900, 73_140),
}


@pytest.mark.parametrize("tiles", TRANSITIONS)
def test_with_fewer_transitions_the_programs_are_the_same(tiles):
    space = space_of_tiles(*tiles)
    every, reduced = exhaust(space), exhaust(space, reduced=True)

    assert reduced.depths == every.depths
    assert (every.transitions, reduced.transitions) == TRANSITIONS[tiles]


@pytest.mark.thorough
@pytest.mark.parametrize("tiles", [(1, 3, 2), (1, 2, 3)])
def test_with_fewer_transitions_three_tiles_lead_to_the_same_programs(tiles):
    space = space_of_tiles(*tiles)

    assert exhaust(space, reduced=True).depths == exhaust(space).depths


@pytest.mark.parametrize("tiles", [(2, 1, 2), (1, 2, 2), (2, 2, 2)])
def test_steps_of_independent_parts_commute(tiles):
    """Every pair of steps of independent parts, at the root and at some programs."""
    space = space_of_tiles(*tiles)
    nodes = list(exhaust(space).depths)
    tried = 0
    for node in [space.root, *random.Random(2).sample(nodes, 20)]:
        for at, part in enumerate(node):
            for other in range(at + 1, len(node)):
                if space.independent[at] >> other & 1:
                    for one in part.steps:
                        for two in node[other].steps:
                            first = space.after(space.after(node, one), two)
                            assert first == space.after(space.after(node, two), one)
                            tried += 1
    assert tried > 0


@pytest.mark.parametrize(
    ("tiles", "count"), [((2, 1, 2), 24), ((1, 2, 2), 198), ((1, 1, 3), 35), ((1, 1, 4), 193)]
)
def test_programs_but_for_names_order_and_numbering_of_tiles(tiles, count):
    space = space_of_tiles(*tiles)
    nodes = exhaust(space).depths

    forms = {canonical.form(space.tile_program(node)) for node in nodes}

    assert canonical_count(space, nodes) == len(forms) == count


@pytest.mark.parametrize(
    ("root", "count"),
    [(sum_and_product_root(1, 2), 68), (tensor_add_root(2, 2), 10), (tensor_add_root(1, 3), 9)],
    ids=[
        "sum and product",
        "rows and columns",
        "columns",
    ],
)
def test_programs_without_contraction_but_for_names_order_and_numbering_of_tiles(root, count):
    space = rewrite_graph(root)
    nodes = exhaust(space).depths

    forms = {canonical.form(space.tile_program(node)) for node in nodes}

    assert canonical_count(space, nodes) == len(forms) == count


def test_tiles_of_a_repeated_parameter_are_not_exchanged():
    space = rewrite_graph(repeated_add_root(1, 2))

    with pytest.raises(ValueError, match="B: 1 of 2 tiles along F"):
        canonical_count(space, [space.root])


def test_half_of_20_000_programs_are_alike():
    space = space_of_tiles(2, 2, 2)

    assert canonical_count(space, exhaust(space).depths) == 10_972


@pytest.mark.thorough
def test_statements_say_the_same_of_20_000_programs():
    space = space_of_tiles(2, 2, 2)
    nodes = exhaust(space).depths

    assert len({canonical.form(space.tile_program(node)) for node in nodes}) == 10_972


def test_all_reuse_is_one_entry_that_stands_for_single_steps():
    space = space_of_tiles(2, 2, 3)

    node, batch = share_all_loads(space, space.root)
    singles = list(batch.singles())

    assert len(singles) == 14  # of 24 loads, one for each of 4 + 6 slices is left
    assert replay(space, singles) == replay(space, [batch]) == node
    assert replay(space, reversed(singles)) == node


@pytest.mark.parametrize("tiles", [(1, 1, 1), (2, 1, 2), (2, 2, 2), (2, 3, 4)])
def test_the_way_down_ends_where_nothing_is_left_and_replays(tiles):
    space = space_of_tiles(*tiles)

    node, entries = descend(space)

    assert space.steps(node) == []
    assert replay(space, entries) == node
    assert check_tiles(space.tile_program(node)) == []
    assert all(isinstance(entry, SharedLoads) for entry in entries[:1])


def test_a_walk_is_made_of_listed_steps_and_stays_certified():
    space = space_of_tiles(2, 3, 3)
    at = Walk(space, random.Random(5))
    while at.opportunities:
        before = at.node
        listed = space.steps(before)
        assert at.opportunities == len(listed)
        step = at.step()
        assert step in listed
        assert at.node == space.after(before, step)

    assert check_tiles(space.tile_program(at.node)) == []
    assert replay(space, [*at.schedule]) == at.node


def test_every_opportunity_has_its_index():
    space = space_of_tiles(1, 3, 3)
    for node in exhaust_some(space):
        for part in node:
            assert part.count == len(part.steps)
            assert [part.step_at(index) for index in range(part.count)] == list(part.steps)


def exhaust_some(space):
    """A walk's programs."""
    at = Walk(space, random.Random(8))
    yield at.node
    while at.opportunities:
        at.step()
        yield at.node


def test_a_walk_begins_again_at_the_root_and_repeats_with_its_seed():
    space = space_of_tiles(1, 2, 2)

    walked = walk(space, visits=200, seed=3)

    assert walked.visited == 200
    assert 10 < walked.ends < 200
    assert len(walked.longest) <= 10
    assert walk(space, visits=200, seed=3) == walked
    assert walk(space, visits=200, seed=4) != walked


def test_sums_find_the_place_of_every_position():
    numbers = [random.Random(6).randrange(4) for _ in range(37)]
    sums = Sums([0] * 37)
    for at, number in enumerate(numbers):
        sums.put(at, number)

    wanted = [(at, index) for at, number in enumerate(numbers) for index in range(number)]
    assert [sums.find(position) for position in range(sums.total)] == wanted
