"""`--add-ignores`: comments where there were findings, and nothing else."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest
from tools.nki_migrate.tests.command_line import run

from neuroncore.findings import Finding, Region, Safety, Severity
from nki_migrate.engine.ignore_comments import add_comments

EXAMPLES = Path(__file__).parents[4] / "examples" / "beta1"
OLD = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def copy(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(4):  # tiles
        nisa.dma_copy(dst=out, src=x)
    return out
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    (tmp_path / "old.py").write_text(OLD)
    return tmp_path


def at(line: int, rule: str = "NKI1133") -> Finding:
    return Finding(rule, "says so", Region("k.py", line, 1, line, 2), Severity.ERROR, Safety.MANUAL)


def test_a_comment_is_added_and_nothing_else_changes(folder):
    result = run("fix", "--add-ignores", "old.py")

    assert result.exit_code == 0
    added = "# tiles  # nki-migrate: ignore[NKI5004]"
    assert (folder / "old.py").read_text() == OLD.replace("# tiles", added)
    assert run("check", "old.py").exit_code == 0
    assert "NKI0001" not in run("check", "old.py").stdout


@pytest.mark.parametrize("command", [("fix", "--diff"), ("diff",)])
def test_as_a_diff_it_writes_nothing(folder, command):
    patch = run(*command, "--add-ignores", "old.py").stdout
    assert (folder / "old.py").read_text() == OLD

    subprocess.run(["git", "apply", "-"], input=patch.encode(), check=True, cwd=folder)

    assert "ignore[NKI5004]" in (folder / "old.py").read_text()


def test_a_second_time_adds_nothing(folder):
    run("fix", "--add-ignores", "old.py")
    once = (folder / "old.py").read_text()

    run("fix", "--add-ignores", "old.py")

    assert (folder / "old.py").read_text() == once


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_old_file_is_silent_afterwards_and_its_code_is_the_same(folder, example):
    old = example.read_text(encoding="utf-8")
    (folder / "k.py").write_text(old, encoding="utf-8")

    run("fix", "--add-ignores", "k.py")

    new = (folder / "k.py").read_text(encoding="utf-8")
    assert ast.dump(ast.parse(new)) == ast.dump(ast.parse(old))
    again = run("fix", "k.py")
    assert (folder / "k.py").read_text(encoding="utf-8") == new, again.stdout
    assert again.exit_code == 0


def test_a_list_that_is_there_grows():
    text = "a = 1  # why  # nki-migrate: ignore[NKI1200]\n"

    assert add_comments(text, [at(1)]) == (
        "a = 1  # why  # nki-migrate: ignore[NKI1133, NKI1200]\n"
    )


def test_a_line_that_cannot_end_in_a_comment_is_enclosed():
    text = 'def k():\r\n    x = load("""\r\n    """)\r\n    y = 1 + \\\r\n        2'

    assert add_comments(text, [at(2), at(4)]) == (
        "def k():\r\n"
        '    # nki-migrate: off\r\n    x = load("""\r\n    """)\r\n    # nki-migrate: on\r\n'
        "    # nki-migrate: off\r\n    y = 1 + \\\r\n        2\r\n    # nki-migrate: on\r\n"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "--add-ignores", "."], "--add-ignores belongs to fix and diff"),
        (["fix", "--add-ignores", "--verify", "."], "--add-ignores migrates nothing"),
    ],
)
def test_where_it_makes_no_sense_it_is_rejected(folder, arguments, message):
    result = run(*arguments)

    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
