"""The page of checks has the rules of `subset` as they are."""

from __future__ import annotations

import subprocess
import sys

from members import ROOT

PAGE = ROOT / "docs" / "checks.md"
COMMAND = (sys.executable, "-m", "neuroncore.checks.subset")


def test_the_table_of_subset_is_up_to_date():
    """When this fails: put what python -m neuroncore.checks.subset prints into docs/checks.md"""
    printed = subprocess.run(COMMAND, capture_output=True, encoding="utf-8", check=True).stdout

    assert printed.count("\n") > 40
    assert printed in PAGE.read_text(encoding="utf-8")
