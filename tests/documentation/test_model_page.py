"""The page of the model holds the constants of today."""

from __future__ import annotations

import re

import pytest
from members import ROOT

from neuroncore.targets import TARGETS
from neuroncore.work import costs

PAGE = ROOT / "docs" / "model.md"


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
