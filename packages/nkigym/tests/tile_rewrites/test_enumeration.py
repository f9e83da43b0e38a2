"""How many programs sharing and merging reach from a matmul."""

from collections import Counter

import pytest

from nkigym import exhaust, matmul_root, rewrite_graph

# Counts by running the public search to exhaustion: K, M, N tiles; programs, transitions.
COUNTS = {
    (2, 1, 2): (24, 52),
    (1, 2, 2): (340, 913),
    (2, 2, 2): (20_000, 96_900),
    (1, 1, 2): (8, 10),
    (1, 1, 3): (47, 115),
    (1, 1, 4): (470, 1_879),  # with the union in the variable's own coordinates
}

DEPTHS = {
    (2, 1, 2): [1, 4, 7, 7, 4, 1],
    (1, 2, 2): [1, 8, 26, 48, 63, 67, 58, 40, 21, 7, 1],
    (2, 2, 2): [1, 16, 114, 480, 1339, 2635, 3810, 4165, 3505, 2280, 1129, 409, 101, 15, 1],
}


def space_of_tiles(contraction, rows, columns):
    return rewrite_graph(matmul_root(rows=rows, columns=columns, contraction=contraction))


@pytest.mark.parametrize("tiles", COUNTS)
def test_every_program_is_found_once_over_every_transition(tiles):
    found = exhaust(space_of_tiles(*tiles))

    assert (len(found.depths), found.transitions) == COUNTS[tiles]


@pytest.mark.parametrize("tiles", [(1, 3, 2), (1, 2, 3)])
def test_three_tiles_lead_to_many_programs(tiles):
    assert len(exhaust(space_of_tiles(*tiles)).depths) == {2: 19_888, 3: 30_439}[tiles[2]]


@pytest.mark.parametrize("tiles", DEPTHS)
def test_programs_are_as_deep_as_statements_are_missing(tiles):
    space = space_of_tiles(*tiles)
    found = exhaust(space)

    assert [n for _, n in sorted(Counter(found.depths.values()).items())] == DEPTHS[tiles]
    last = max(found.depths, key=found.depths.__getitem__)
    left = len(space.tile_program(last).statements)
    assert left == len(space.program.statements) - found.depths[last]


def test_nodes_are_as_different_as_their_statements():
    space = space_of_tiles(1, 2, 2)

    programs = {space.tile_program(node) for node in exhaust(space).depths}

    assert len(programs) == 340
    assert space.program in programs
