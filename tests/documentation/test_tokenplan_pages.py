"""The pages of tokenplan say what its code does."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from members import ROOT
from tests.tokenplan.kernels import program

from tokenplan import analyse
from tokenplan.report import explained

GUIDE = (ROOT / "docs" / "tokenplan.md").read_text(encoding="utf-8")
CODES = ROOT / "docs" / "tokenplan-codes.md"


def test_the_page_of_codes_is_up_to_date():
    """When this fails: python -m tokenplan.codes > docs/tokenplan-codes.md"""
    command = (sys.executable, "-m", "tokenplan.codes")
    printed = subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout
    assert printed == CODES.read_text(encoding="utf-8")


def flat(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("name", ["recurrence", "even_odd"])
def test_the_guide_shows_what_is_printed(name):
    blocks = re.findall(r"^```\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    shown = [block for block in blocks if f"({name}.py:" in block and "$ " not in block]
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
