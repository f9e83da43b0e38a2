"""The pages of tokenplan say what its code does."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys

import pytest
from members import ROOT
from tests.tokenplan.kernels import program

from tokenplan import analyse
from tokenplan.report import explained

GUIDE = (ROOT / "docs" / "tokenplan.md").read_text(encoding="utf-8")
CODES = ROOT / "docs" / "tokenplan-codes.md"


def flat(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def commands() -> list[str]:
    """Every command of the guide, continued lines joined."""
    blocks = re.findall(r"^```\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line.startswith(("tokenplan ", "dot "))]


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> dict[str, str]:
    """What each command prints, run one after the other where the examples are."""
    folder = tmp_path_factory.mktemp("guide")
    (folder / "examples").symlink_to(ROOT / "examples")
    found = {}
    for command in commands():
        program, *arguments = shlex.split(command)
        if program == "dot" and not shutil.which("dot"):
            continue
        module = (sys.executable, "-c", "from tokenplan.cli import main; raise SystemExit(main())")
        started = (program,) if program == "dot" else module
        done = subprocess.run(
            [*started, *arguments], cwd=folder, capture_output=True, encoding="utf-8", check=False
        )
        assert done.returncode == int("k=parallel" in arguments), command + done.stderr
        said = [line for line in done.stderr.splitlines() if ": -o wrote " not in line]
        assert said == [], command
        found[command] = done.stdout
    assert all(
        (folder / name).is_file() for name in ("orders.dot", "orders.trace.json", "plan.json")
    )
    return found


def test_every_command_of_the_guide_runs(printed):
    assert len(printed) >= 9


def test_what_the_guide_shows_is_what_its_commands_print(printed):
    blocks = re.findall(r"^```\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    shown = [block for block in blocks if not block.startswith(("tokenplan ", "dot "))]
    everything = flat(" ".join(printed.values()))
    assert len(shown) >= 4
    for block in shown:
        assert flat(block) in everything, block


@pytest.mark.parametrize("name", ["recurrence", "even_odd"])
def test_the_guide_shows_what_is_printed(name):
    blocks = re.findall(r"^```\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    shown = [block for block in blocks if f"({name}.py:" in block]
    assert shown
    assert flat(shown[0]) in flat(explained(analyse(program(name))))


def test_the_guide_counts_the_edges_of_the_examples():
    rows = re.findall(
        r"^\| (\w+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|", GUIDE, re.MULTILINE
    )
    assert len(rows) == 8
    for name, *numbers in rows:
        graph = analyse(program(name))
        counts = graph.counts
        assert counts is not None
        kept, implied = (len(graph.with_status(s)) for s in ("kept", "implied"))
        assert [int(n) for n in numbers] == [
            counts.total_order, counts.pairs, counts.removed, kept, implied,
        ]  # fmt: skip
