"""The space takes programs apart; the same rules on flat statements give the same, step by step."""

import random

import pytest
from packages.nkigym.tests import reference

from nkigym import RewriteGraph, exhaust, matmul_root, rewrite_graph
from nkigym.tiles.program import STORE

FEW = [((2, 1, 2), 24), ((1, 2, 2), 340), ((1, 1, 3), 47)]
MANY = [((2, 2, 2), 20_000), ((1, 1, 4), 470), ((1, 3, 2), 19_888)]


def space_of_tiles(contraction, rows, columns) -> RewriteGraph:
    return rewrite_graph(matmul_root(rows=rows, columns=columns, contraction=contraction))


def by_name(space, program):
    """The reference's opportunities with statements named as steps name them.

    A store is known by its place among the root's: that of the first it was made of, which wrote
    one of the tiles that it writes.
    """
    stores = [line for line in space.program.statements if line.operator == STORE]
    starts = [tuple(start for start, _ in line.output.intervals) for line in stores]

    def name(at):
        line = program.statements[at]
        if line.operator != STORE:
            return int(line.output.name[1:])
        rows, columns = line.output.intervals
        inside = [rows[0] <= r < rows[1] and columns[0] <= c < columns[1] for r, c in starts]
        return inside.index(True)

    return [(kind, name(i), name(j)) for kind, i, j in reference.opportunities(program)]


def assert_agrees(space, node):
    program = space.tile_program(node)
    steps = space.steps(node)
    assert [tuple(step) for step in steps] == by_name(space, program)
    for step, opportunity in zip(steps, reference.opportunities(program), strict=True):
        after = space.tile_program(space.after(node, step))
        assert after == reference.applied(program, opportunity)


@pytest.mark.parametrize(("tiles", "count"), FEW)
def test_every_program_has_the_same_list_and_the_same_program_after_each_step(tiles, count):
    space = space_of_tiles(*tiles)
    nodes = exhaust(space).depths

    assert len(nodes) == count
    for node in nodes:
        assert_agrees(space, node)


@pytest.mark.parametrize(("tiles", "count"), MANY)
def test_a_sample_of_a_larger_space_has_the_same_lists_and_programs(tiles, count):
    space = space_of_tiles(*tiles)
    nodes = list(exhaust(space).depths)

    assert len(nodes) == count
    for node in random.Random(7).sample(nodes, 150):
        assert_agrees(space, node)


@pytest.mark.thorough
@pytest.mark.parametrize(("tiles", "count"), MANY)
def test_every_program_of_a_larger_space_has_the_same_lists_and_programs(tiles, count):
    space = space_of_tiles(*tiles)
    nodes = exhaust(space).depths

    assert len(nodes) == count
    for node in nodes:
        assert_agrees(space, node)
