"""Which files are found, which are left out, and what is said about the rest."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from nki_migrate.files.discovery import Exclusion, Found, find_files
from nki_migrate.files.ignore_patterns import IgnoreRules, is_ignored


def tree(root: Path, *files: str) -> Path:
    for name in files:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("import nki\n")
    return root


def found_in(root: Path, *paths: Path, gitignore: bool = True) -> Found:
    return find_files(paths or (root,), lambda folder: Exclusion(root, gitignore=gitignore))


def names(found: Found, root: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in found.files]


def test_folders_are_searched_in_path_order_for_python_files(tmp_path):
    tree(tmp_path, "b.py", "a/z.py", "a/c/d.py", "notes.txt")

    assert names(found_in(tmp_path), tmp_path) == ["a/c/d.py", "a/z.py", "b.py"]


def test_default_excludes_hold_below_a_folder_but_not_for_a_file_named_by_itself(tmp_path):
    tree(tmp_path, "k.py", ".venv/lib/k.py", "pkg/build/k.py", "pkg/site-packages/k.py")
    named = tmp_path / "pkg/build/k.py"

    assert names(found_in(tmp_path), tmp_path) == ["k.py"]
    assert found_in(tmp_path, named).files == (named,)


def test_gitignore_counts_inside_a_repository_only(tmp_path):
    tree(tmp_path, "keep.py", "gen/out.py", "sub/local.py", "sub/kept.py")
    (tmp_path / ".gitignore").write_text("gen/\n")
    (tmp_path / "sub/.gitignore").write_text("*.py\n!kept.py\n")
    assert len(found_in(tmp_path).files) == 4

    (tmp_path / ".git").mkdir()

    assert names(found_in(tmp_path), tmp_path) == ["keep.py", "sub/kept.py"]
    assert len(found_in(tmp_path, gitignore=False).files) == 4


@pytest.mark.parametrize(
    ("pattern", "path", "ignored"),
    [
        ("build", "a/build", True),
        ("/build", "a/build", False),
        ("a/*.py", "a/k.py", True),
        ("a/*.py", "a/b/k.py", False),
        ("a/**", "a/b/k.py", True),
        ("**/gen/*.py", "gen/k.py", True),
        ("**/gen/*.py", "x/y/gen/k.py", True),
        ("k[0-9].py", "x/k7.py", True),
        ("k[!0-9].py", "x/k7.py", False),
        ("k?.py", "k/.py", False),
        ("k.py/", "k.py", False),
        ("# k.py", "k.py", False),
        ("\\#k.py", "#k.py", True),
    ],
)
def test_ignore_patterns_read_as_git_reads_them(tmp_path, pattern, path, ignored):
    rules = IgnoreRules.of(tmp_path, [pattern])

    assert is_ignored(tmp_path / path, False, [rules]) is ignored


def test_a_link_that_loops_is_reported_and_the_others_are_found(tmp_path):
    tree(tmp_path, "a/k.py", "z.py")
    (tmp_path / "a/loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "one.py").symlink_to(tmp_path / "two.py")
    (tmp_path / "two.py").symlink_to(tmp_path / "one.py")

    found = found_in(tmp_path)

    assert names(found, tmp_path) == ["a/k.py", "z.py"]
    reasons = {Path(problem.path).name: problem.reason for problem in found.problems}
    assert set(reasons) == {"loop", "one.py", "two.py"}
    assert "loops" in reasons["loop"] and "loops" in reasons["one.py"]


def test_a_link_to_nothing_and_a_missing_path_are_reported(tmp_path):
    (tmp_path / "gone.py").symlink_to(tmp_path / "never.py")

    found = found_in(tmp_path, tmp_path, tmp_path / "missing.py")

    assert [problem.reason for problem in found.problems] == [
        "a link to nothing",
        "no such file or directory",
    ]


def test_a_file_with_two_names_is_taken_once(tmp_path):
    tree(tmp_path, "k.py")
    (tmp_path / "other.py").symlink_to(tmp_path / "k.py")

    assert names(found_in(tmp_path), tmp_path) == ["k.py"]


def test_a_pipe_is_not_a_file(tmp_path):
    os.mkfifo(tmp_path / "k.py")

    assert [problem.reason for problem in found_in(tmp_path).problems] == ["not a regular file"]


@pytest.mark.skipif(sys.platform != "linux", reason="names of open files are of Linux")
def test_an_open_pipe_is_not_a_link_to_nothing(tmp_path):
    for descriptor in (pipe := os.pipe()):
        (problem,) = found_in(tmp_path, Path(f"/dev/fd/{descriptor}")).problems
        assert problem.reason == "not a regular file; - is stdin"
    for descriptor in pipe:
        os.close(descriptor)
