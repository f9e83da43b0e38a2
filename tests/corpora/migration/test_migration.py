"""The corpus migrated, and its harness on a repository made up here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.corpora.beta1.catalog import CorpusFile, read_corpus, read_files
from tests.corpora.migration.__main__ import chosen, main
from tests.corpora.migration.cache import Cache
from tests.corpora.migration.fixing import Fixed
from tests.corpora.migration.form import form_lines, form_of
from tests.corpora.migration.harness import FileTried, Migration, Tried, counts, try_all
from tests.corpora.migration.runs import Runner
from tests.corpora.migration.table import classes, classes_text, closing_lines, general, markdown
from tests.corpora.migration.unchanged import touched_unasked

CORPUS = os.environ.get("NKI_CORPUS")
needs_clones = pytest.mark.skipif(
    not CORPUS, reason="NKI_CORPUS is not set: no clones of the public kernels to migrate"
)

KERNEL = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import torch
from .parts import ONCE


@nki.jit
def double(x):
    rows,   columns = x.shape  # spaces that no edit changes
    out = nl.ndarray((nl.par_dim(4), 8), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(ONCE):
        tile = nl.load(x[0:4, 0:8])
        nl.store(out[0:4, 0:8], nl.multiply(tile, 2.0))
    return out


@nki.jit
def private(x):
    out = nl.ndarray((4, 8), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x[0:4, 0:8])
    nl.store(out[0:4, 0:8], nl.no_such_function(tile))
    return out
"""
PARTS = """\
import neuronxcc.nki.language as nl


ONCE = nl.tile_size.pmax // 128
"""
CASE = """
[[case]]
kernel = "{kernel}"
reference = "ours.py:{reference}"
[[case.arg]]
name = "x"
dtype = "float32"
shape = [4, 8]
"""
HEAD = 'schema = "nki-corpus-cases/1"\nrepo = "project/kernels"\nfile = "lib/doubles.py"\n'


def git(clone: Path, *arguments: str) -> str:
    command = ("git", "-C", str(clone), "-c", "user.name=n", "-c", "user.email=e", *arguments)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def clones(tmp_path: Path) -> Path:
    clone = tmp_path / "clones" / "project" / "kernels"
    (clone / "lib").mkdir(parents=True)
    (clone / "lib" / "doubles.py").write_text(KERNEL)
    (clone / "lib" / "parts.py").write_text(PARTS)
    git(clone, "init", "-q")
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "-m", "kernels")
    return tmp_path / "clones"


@pytest.fixture
def catalog(tmp_path: Path, clones: Path) -> Path:
    folder = tmp_path / "catalog"
    for name in ("cases", "references", "setups"):
        (folder / name).mkdir(parents=True)
    commit = git(clones / "project/kernels", "rev-parse", "HEAD")
    (folder / "corpus.toml").write_text(
        f'[[file]]\nrepo = "project/kernels"\ncommit = "{commit}"\npath = "lib/doubles.py"\n'
        'blob = ""\nkernels = ["double", "private"]\n'
    )
    (folder / "references/ours.py").write_text("def twice(x):\n    return 2.0 * x\n")
    (folder / "cases/doubles.toml").write_text(
        HEAD + CASE.format(kernel="double", reference="twice")
    )
    return folder


def test_a_kernel_with_a_part_elsewhere_is_migrated_run_and_compared(catalog, clones, tmp_path):
    kernels = read_corpus(catalog)
    (file,) = read_files(catalog)
    runner = Runner(Cache(tmp_path / "cache"))

    migration = Migration(clones, runner, with_facts=False, keep=tmp_path / "kept")
    (tried,) = try_all([(file, kernels)], migration)

    assert (tried.crash, tried.unparsable, tried.unstable, tried.astray) == ("", "", "", "")
    assert [(k.kernel, k.word) for k in tried.kernels] == [
        ("double", "verified"),
        ("private", "no case"),
    ]
    (new,) = (tmp_path / "kept").rglob("new/lib/parts.py")
    assert "neuronxcc" not in new.read_text()


# -- untouched lines ------------------------------------------------------------------------------

BEFORE = b"import a\n\n\nx = (1,\n     2)\nfor i in b:\n    y =  i\n"


def finding(line: int, *, applied: bool = True, rule: str = "NKI1101") -> dict[str, object]:
    return {"rule": rule, "line": line, "end_line": line, "edits": [], "applied": applied}


def test_a_statement_that_a_finding_speaks_of_may_change():
    after = BEFORE.replace(b"x = (1,\n     2)", b"x = 3")

    assert touched_unasked(BEFORE, after, [finding(5)]) == []
    assert touched_unasked(BEFORE, after, [finding(5, applied=False)]) == [4, 5]


def test_the_body_of_a_loop_is_not_part_of_its_header():
    after = BEFORE.replace(b"y =  i", b"y = i")

    assert touched_unasked(BEFORE, after, [finding(6)]) == [7]


def test_line_endings_count():
    assert touched_unasked(b"a = 1\r\nb = 2\r\n", b"a = 1\r\nb = 2\n", [finding(1)]) == [2]


def test_lines_move_to_the_right_only_where_a_grid_became_loops():
    before, after = b"def f():\n    a = 1\n", b"def f():\n    for i in range(2):\n        a = 1\n"

    assert touched_unasked(before, after, []) == [2]
    assert touched_unasked(before, after, [finding(1, rule="NKI1118")]) == []


# -- tables ---------------------------------------------------------------------------------------

FILE = CorpusFile("a/b", "0", "c.py", "", ("k", "m", "n", "o"))
LEFT = (("NKI1172", "a mask `m > 3` of 128 rows"),)
TRIED = FileTried(
    FILE,
    astray="lines 3",
    kernels=(
        Tried("k", "verified"),
        Tried("m", "todo", "", LEFT),
        Tried("n", "todo", "", (*LEFT, ("NKI1253", "`nl.loop_reduce`"))),
        Tried("o", "not under beta1", "it fails", LEFT),
        Tried("p", "fails", "c.py:12:3: ShapeError: (128, 4)"),
    ),
)


def test_the_share_counts_kernels_that_run_under_beta1():
    numbers = counts([TRIED])

    assert (numbers["verified"], numbers["run under beta1"], numbers["share"]) == (1, 4, 0.25)
    assert "1 with untouched lines changed" in closing_lines([TRIED])
    assert "| c.py | n | todo | NKI1172 ×1, NKI1253 ×1 |" in markdown([TRIED])


def test_the_form_of_a_text_counts_lines_comments_and_names():
    before = "x = 1  # one\ny = 2  # two\n"
    after = f"x = 1  # one\n# TODO(nki-migrate NKI1134): more\ny_2 = '{'a' * 100}'\n"

    form = form_of(before, after)

    assert form is not None
    assert (form.lines, form.long_lines) == (1, 1)
    assert (form.comments, form.kept_comments) == (2, 1)
    assert (form.names, form.numbered_names) == (1, 1)
    assert form_of(before, before) is None
    assert "1 of 2 comments are there afterwards" in form_lines([form])


def test_classes_are_sorted_by_what_they_alone_hold_up():
    found = classes([TRIED])

    assert [(c.rule, len(c.alone), len(c.among)) for c in found] == [
        ("NKI1172", 1, 1),
        ("fails", 1, 0),
        ("NKI1253", 0, 1),
    ]
    assert classes_text(found).startswith("  1 alone   1 among  NKI1172  a mask `…` of N rows\n")


def test_a_message_is_general_without_places_names_and_numbers():
    assert general("c.py:12:3: ShapeError: (128, 4)") == "ShapeError: (N, N)"


def test_a_command_that_says_nothing_is_a_crash():
    assert Fixed(crash="exit code 1: boom").crash_of(Path("a.py")) == "exit code 1: boom"


def test_every_file_of_the_corpus_is_chosen_once():
    files = chosen([])

    assert len(files) == 123
    assert sum(len(kernels) for _, kernels in files) == 185
    assert len(chosen(["mamba_test.py:mamba_v3"])) == 1


def test_without_clones_the_command_says_where_to_put_them(monkeypatch, capsys):
    monkeypatch.delenv("NKI_CORPUS", raising=False)

    with pytest.raises(SystemExit) as left:
        main([])

    assert left.value.code == 2
    assert "NKI_CORPUS is not set" in capsys.readouterr().err


@needs_clones
@pytest.mark.thorough
@pytest.mark.timeout(7200)
def test_the_corpus_migrates(tmp_path):
    """The numbers of issue 9."""
    assert CORPUS is not None

    numbers = counts(try_all(chosen([]), Migration(Path(CORPUS), Runner(Cache(tmp_path)))))

    assert numbers["WRONG"] == 0
    assert [numbers[w] for w in ("crash", "unparsable", "second run changes")] == [0, 0, 0]
    assert numbers["untouched lines changed"] == 0
    assert numbers["verified"] >= 90
    assert numbers["share"] >= 0.75
