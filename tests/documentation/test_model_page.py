"""The page of the model holds the constants of today."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from members import ROOT

from neuroncore.targets import TARGETS
from neuroncore.work import costs

PAGE = ROOT / "docs" / "model.md"
COMMAND = (sys.executable, "-m", "neuroncore.timeline")


def run(*arguments: str, **more) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, encoding="utf-8", **more)


@pytest.mark.parametrize("name", [*costs()["machine"], *costs()["constants"]])
def test_a_constant_is_listed_with_its_values_confidence_and_source(name):
    row = (costs()["machine"] | costs()["constants"])[name]
    (line,) = re.findall(rf"^\| `{name}` \|.*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    cells = [cell.strip() for cell in line.strip("|").split("|")]

    values = [
        row["value"].get(t) if isinstance(row["value"], dict) else row["value"] for t in TARGETS
    ]
    assert [c for c, v in zip(cells[1:4], values, strict=True) if not isinstance(v, dict)] == [
        str(v) for v in values if not isinstance(v, dict)
    ]
    assert cells[-2] == row["confidence"] and row["source"] in cells[-1]
    assert cells[-1].startswith("fitted; its source: ") == ("published" in row)


def test_the_command_rewrites_the_tables_and_nothing_else(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A\n<!-- constants: begin -->\nold\n<!-- constants: end -->\nend\n")

    run(str(page), check=True)

    text = page.read_text(encoding="utf-8")
    assert text.startswith("# A\n<!-- constants: begin -->\nConstants of ")
    assert text.endswith("\n<!-- constants: end -->\nend\n") and "old" not in text


def test_a_page_without_a_place_for_them_is_left_alone(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A\n")

    done = run(str(page))

    assert (done.returncode, page.read_text()) == (2, "# A\n")
    assert "no place for the constants" in done.stderr


def test_a_misused_command_says_how_to_use_it():
    done = run("a", "b")

    assert done.returncode == 2
    assert "python -m neuroncore.timeline [FILE]" in done.stderr
