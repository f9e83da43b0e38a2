"""Tile programs print, parse back to the same, and say where a text is none."""

import random

import pytest

from neuroncore.errors import ProgramTextError
from nkigym import exhaust, matmul_root, rewrite_graph
from nkigym.tiles import parse_tiles, print_tiles

ONE_TILE = """\
def f(A: float32[128, 128], B: float32[128, 128]):
    output = allocate(128, 128)
    t0 = A[0:128, 0:128]
    t1 = B[0:128, 0:128]
    t2 = nc_matmul(stationary=t0, moving=t1)
    output[0:128, 0:128] = t2
    return output
"""


def test_the_root_of_one_tile_is_six_lines():
    assert print_tiles(matmul_root(rows=1, columns=1, contraction=1)) == ONE_TILE


@pytest.mark.parametrize("tiles", [(2, 1, 2), (1, 2, 2), (2, 2, 2), (1, 1, 4)])
def test_what_prints_parses_back(tiles):
    contraction, rows, columns = tiles
    space = rewrite_graph(matmul_root(rows=rows, columns=columns, contraction=contraction))
    nodes = list(exhaust(space).depths)
    for node in random.Random(5).sample(nodes, min(len(nodes), 100)):
        program = space.tile_program(node)
        assert parse_tiles(print_tiles(program)) == program


def test_other_dtypes_have_their_names():
    program = matmul_root(rows=1, columns=2, contraction=1, dtype="bfloat16")

    assert print_tiles(program).startswith("def f(A: bfloat16[128, 128], B: bfloat16[128, 256]):")
    assert parse_tiles(print_tiles(program)) == program


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "what"),
    [
        ("t2\n    return", "t9\n    return", 6, 28, "t9 is not a variable"),
        ("t1 = B", "t1 = C", 4, 10, "not part of a parameter"),
        ("t1 = B", "t0 = B", 4, 5, "t0 is defined already"),
        ("B[0:128, 0:128]", "B[0:128, 128:0]", 4, 19, "not an interval"),
        ("B[0:128, 0:128]", "B[0:128]", 4, 10, "B has 2 axes"),
        ("nc_matmul", "conv", 5, 10, "conv is not an operator"),
        ("moving=t1", "moved=t1", 5, 35, "nc_matmul has no moved"),
        (", moving=t1", "", 5, 10, "nc_matmul needs moving"),
        ("stationary=t0", "t0", 5, 20, "nc_matmul takes its operands by name"),
        ("return output", "return t2", 7, 5, "a program ends with the return of what it allocated"),
        ("allocate(128, 128)", "allocate(128, 0)", 2, 28, "not an extent"),
        ("B: float32", "B: float33", 1, 29, "float33"),
        ("B: float32", "B: bfloat16", 1, 29, "parameters of two dtypes"),
    ],
)
def test_a_mistake_is_said_with_its_line_and_column(old, new, line, column, what):
    with pytest.raises(ProgramTextError, match=what) as wrong:
        parse_tiles(ONE_TILE.replace(old, new))

    place = wrong.value.place
    assert place is not None
    assert (place.line, place.column + 1) == (line, column)
    assert "^" in str(wrong.value)


def test_a_line_that_is_no_python_is_named():
    with pytest.raises(ProgramTextError, match="not a tile program") as wrong:
        parse_tiles(ONE_TILE.replace("t0 = A", "t0 ="))

    assert wrong.value.place is not None
    assert wrong.value.place.line == 3


def test_an_empty_text_is_no_program():
    with pytest.raises(ProgramTextError, match="not a program"):
        parse_tiles("")
