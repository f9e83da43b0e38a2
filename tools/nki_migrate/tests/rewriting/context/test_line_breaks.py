"""Lines that are too long are broken inside brackets, and mean the same."""

from __future__ import annotations

import ast

import pytest

from nki_migrate.rewriting.context.line_breaks import call_text, fitted

LONG = [
    "nisa.dma_copy(dst=tiles[b][0:rows, 0:cols], src=x[nl.ds(first + b, rows), nl.ds(0, cols)])",
    "tiles.append(nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.sbuf))",
    "for block in range((x.shape[0] + tile_rows - 1) // tile_rows):",
    "total = (first_number_of_rows + second_number_of_rows) * (first_number_of_rows - 1)",
    "count, rows, cols = (len(tiles), tiles[0].shape[0], tiles[0].shape[1])",
    "call(offset=first * rows * columns + second * columns + third - fourth * fifth)",
    "names = tuple(size for size in shape if size > smallest_size_of_all)",
]


@pytest.mark.parametrize("text", LONG)
@pytest.mark.parametrize("width", [60, 40, 24])
def test_a_broken_line_means_the_same(text, width):
    body = "\n    pass" if text.endswith(":") else ""
    broken = fitted(text, width)

    assert ast.dump(ast.parse(broken + body)) == ast.dump(ast.parse(text + body))
    assert len(broken.splitlines()) > 1


def test_arguments_get_a_line_each():
    assert fitted("    src=x[nl.ds(first, rows), nl.ds(0, cols)],", 40) == (
        "    src=x[\n        nl.ds(first, rows),\n        nl.ds(0, cols),\n    ],"
    )


def test_a_sum_gets_a_line_for_each_term():
    assert fitted("    offset=batch * B.shape[1] + state * B.shape[2] - start,", 40) == (
        "    offset=(\n"
        "        batch * B.shape[1]\n"
        "        + state * B.shape[2]\n"
        "        - start\n"
        "    ),"
    )


@pytest.mark.parametrize(
    "source",
    ["x[a:b,\n                     0:512]", "x[\n  a:b,\n  0:512\n]", "x[a:b, \\\n   0:512]"],
)
def test_arguments_of_several_lines_are_joined(source):
    call = call_text("nisa.dma_copy", [("dst", "t"), ("src", source)], 96)

    assert call == "nisa.dma_copy(dst=t, src=x[a:b, 0:512])"


@pytest.mark.parametrize("text", ["x = f(a, b)", "x = f('a, (b', some_other_argument)"])
def test_short_lines_and_strings_stay(text):
    assert fitted(text, 12) == text
