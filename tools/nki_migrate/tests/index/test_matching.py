"""Lines of two texts are paired as difflib would, but never all with all."""

from __future__ import annotations

import difflib
import random

import pytest

from nki_migrate.index import matching
from nki_migrate.index.matching import opcodes


def rebuilt(old, new):
    found = []
    at = (0, 0)
    for tag, i1, i2, j1, j2 in opcodes(old, new):
        assert (i1, j1) == at
        assert tag != "equal" or old[i1:i2] == new[j1:j2]
        found += old[i1:i2] if tag == "equal" else new[j1:j2]
        at = (i2, j2)
    assert at == (len(old), len(new))
    return found


@pytest.mark.parametrize("seed", range(50))
def test_the_pieces_cover_both_texts_and_equal_ones_are(seed):
    draw = random.Random(seed)
    old = [draw.choice("abcdefgh") + str(draw.randrange(4)) for _ in range(draw.randrange(40))]
    new = [line for line in old if draw.random() < 0.8]
    for _ in range(draw.randrange(6)):
        new.insert(draw.randrange(len(new) + 1), draw.choice([*old, "new"]))

    assert rebuilt(old, new) == new


def test_lines_that_each_text_holds_once_are_paired_in_order():
    assert list(opcodes(["a", "x", "b"], ["a", "y", "z", "b"])) == [
        ("equal", 0, 1, 0, 1),
        ("replace", 1, 2, 1, 3),
        ("equal", 2, 3, 3, 4),
    ]


def test_junk_pairs_nothing_by_itself():
    tags = [tag for tag, *_ in opcodes(["a", "),", "b"], ["),", "c"], lambda line: line == "),")]

    assert "equal" not in tags


def test_a_long_file_of_like_functions_is_compared_piece_by_piece(monkeypatch):
    sizes = []

    class Watched(difflib.SequenceMatcher):
        def __init__(self, junk, a, b, autojunk):
            sizes.append(max(len(a), len(b)))
            super().__init__(junk, a, b, autojunk)

    monkeypatch.setattr(matching, "SequenceMatcher", Watched)
    old = [line for i in range(4000) for line in (f"def f{i}():", "x = 1", "return x", "", "")]
    new = [line.replace("x = 1", "x = 2") for line in old]

    assert rebuilt(old, new) == new
    assert max(sizes) <= 5
