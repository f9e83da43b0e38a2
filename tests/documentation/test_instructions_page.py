"""The page of instructions says what the records say."""

from __future__ import annotations

import subprocess
import sys

from members import ROOT

PAGE = ROOT / "docs" / "instructions.md"
COMMAND = (sys.executable, "-m", "neuroncore.instructions")


def test_the_page_is_up_to_date():
    """When this fails: python -m neuroncore.instructions docs/instructions.md"""
    printed = subprocess.run(COMMAND, capture_output=True, encoding="utf-8", check=True).stdout

    assert PAGE.read_text(encoding="utf-8") == printed


def test_the_command_writes_the_page(tmp_path):
    subprocess.run([*COMMAND, "page.md"], cwd=tmp_path, check=True)

    assert (tmp_path / "page.md").read_text(encoding="utf-8").startswith("# Instructions\n")


def test_a_misused_command_says_how_to_use_it():
    done = subprocess.run([*COMMAND, "a", "b"], capture_output=True, text=True)

    assert done.returncode == 2
    assert "python -m neuroncore.instructions [FILE]" in done.stderr
