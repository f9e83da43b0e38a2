"""docs/migrating.md: every command in it runs, in a small repository, and prints what it shows."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from members import ROOT

PAGE = ROOT / "docs" / "migrating.md"
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
WORKFLOW = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
ANYTHING = "…"  # matches any number of lines, or for a part of one

CASES = """\
schema = "nki-cases/1"

[[case]]
file = "softmax.py"
kernel = "softmax_kernel"
reference = "references.py:softmax"
rtol = 1e-5
[[case.arg]]
name = "x"
dtype = "float32"
shape = [256, 512]
[[case.more]]
x = [300, 200]

[[case]]
file = "causal_softmax.py"
kernel = "causal_softmax_kernel"
reference = "references.py:causal_softmax"
rtol = 5e-6
[[case.arg]]
name = "scores"
dtype = "float32"
shape = [256, 256]
[[case.arg]]
name = "scale"
value = 0.125
"""


def steps(page: str) -> list[tuple[str, list[str]]]:
    """(command, the lines shown below it) of every console block, in order."""
    found: list[tuple[str, list[str]]] = []
    for block in CONSOLE.findall(page):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def make_repository(folder: Path) -> None:
    """A repository of a user: two kernels, their meaning, a notebook, other code."""
    kernels = folder / "kernels"
    kernels.mkdir(parents=True)
    shutil.copy(ROOT / "examples/beta1/softmax.py", kernels)
    shutil.copy(ROOT / "examples/beta1_todo/causal_softmax.py", kernels)
    (kernels / "references.py").write_text(
        "".join(
            (ROOT / "examples" / name / "references.py").read_text(encoding="utf-8")
            for name in ("beta1", "beta1_todo")
        ),
        encoding="utf-8",
    )
    (kernels / "cases.toml").write_text(CASES)
    (folder / "train.py").write_text("print('no kernel here')\n")
    source = (kernels / "softmax.py").read_text(encoding="utf-8").partition("\n\nif __name__")[0]
    cells = [
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": s}
        for s in (["%matplotlib inline\n"], source.splitlines(keepends=True))
    ]
    book = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (folder / "softmax.ipynb").write_text(json.dumps(book, indent=1) + "\n")
    git("init", "-q", folder=folder)
    git("add", ".", folder=folder)
    git("commit", "-qm", "kernels", folder=folder)


def git(*arguments: str, folder: Path) -> None:
    who = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True)


def run(command: str, folder: Path) -> list[str]:
    """What a terminal shows: both streams, and nothing of the environment that tests run in."""
    scripts = str(Path(sys.executable).parent)
    kept = {k: v for k, v in os.environ.items() if k not in ("CI", "PYTHONPATH")}
    environment = kept | {"PATH": f"{scripts}{os.pathsep}{kept['PATH']}", "COLUMNS": "100"}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        encoding="utf-8",
    )  # fmt: skip
    return [line.rstrip() for line in done.stdout.splitlines()]


def says(shown: list[str], printed: list[str]) -> bool:
    """Whether the page's lines are what was printed, `…` standing for lines left out."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == ANYTHING else f"{_one_line(line)}\n" for line in shown
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None


def _one_line(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.rstrip().split(ANYTHING))


def test_every_command_of_the_page_prints_what_the_page_shows(tmp_path: Path):
    make_repository(tmp_path)

    for command, shown in steps(PAGE.read_text(encoding="utf-8")):
        printed = run(command, tmp_path)
        assert says(shown, printed), f"$ {command}\n" + "\n".join(printed)


def test_the_page_shows_every_command_of_the_tool():
    shown = {command.split()[1] for command, _ in steps(PAGE.read_text(encoding="utf-8"))
             if command.startswith("nki-migrate ")}  # fmt: skip

    assert shown >= {"check", "diff", "fix", "detect", "explain", "verify"}


@pytest.mark.parametrize("printed", [["a", "b"], ["a"], ["a", "x", "c"]])
def test_a_page_that_shows_something_else_is_noticed(printed):
    assert not says(["a", "…", "b", "c"], printed)


def test_the_workflow_uploads_the_log_that_its_command_writes():
    (workflow,) = WORKFLOW.findall(PAGE.read_text(encoding="utf-8"))

    (command,) = re.findall(r"run: (nki-migrate .*)", workflow)
    (uploaded,) = re.findall(r"sarif_file: (.*)", workflow)
    assert f"--output-format sarif --output-file {uploaded}" in command
    assert "security-events: write" in workflow and "if: always()" in workflow
