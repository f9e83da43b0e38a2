"""Pairs are found in a clone's history; the order in which they are read is the seed's."""

from __future__ import annotations

import subprocess

import pytest
from tests.corpora.pairs.pairs import find_pairs, table, to_read

OLD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def double(x):
    # twice
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.multiply(nl.load(x), 2.0))
    return out
"""
AUTHOR = OLD.replace("neuronxcc.", "").replace("    # twice\n", "")


@pytest.fixture
def corpus(tmp_path):
    """A clone with an old text, one in both languages, and the author's new one."""
    clone = tmp_path / "owner" / "name"
    clone.mkdir(parents=True)
    git(clone, "init", "-q")
    for text in (OLD, OLD + "import nki\n", AUTHOR):
        (clone / "kernels.py").write_text(text)
        git(clone, "add", "kernels.py")
        git(clone, "commit", "-q", "-m", "kernels")
    return tmp_path


def git(clone, *words):
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", clone, *who, *words], check=True)


def test_the_last_old_text_is_compared_with_the_author_s(corpus):
    (pair,) = find_pairs(corpus)

    assert (pair.file, pair.kernel, pair.todos) == ("owner/name/kernels.py", "double", 0)
    assert "# twice" in pair.before
    assert "# twice" not in pair.author
    assert "nisa.dma_copy" in pair.ours
    assert "| 0, 1 of 1 |" in table([pair])


def test_the_texts_of_a_pair_are_in_the_order_of_the_seed(corpus):
    (pair,) = find_pairs(corpus)
    sides = {to_read([pair], 1, seed)[1][-1] for seed in range(20)}

    assert sides == {"A", "B"}
    for seed in range(4):
        texts, key = to_read([pair], 1, seed)
        author, ours = texts.index(pair.author), texts.index(pair.ours)
        assert key.endswith("A" if author < ours else "B")


def test_a_text_that_does_not_parse_has_no_pairs(corpus):
    clone = corpus / "owner" / "name"
    (clone / "kernels.py").write_text(AUTHOR + "(\n")
    git(clone, "commit", "-q", "-a", "-m", "broken")

    assert list(find_pairs(corpus)) == []
