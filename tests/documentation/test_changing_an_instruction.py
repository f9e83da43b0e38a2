"""The page's diff gives max8 an option from 0.6 on, on a copy of the package; its test passes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.documentation.guides import Guide, touched

PAGE = "changing-an-instruction.md"
PACKAGE = "packages/neuroncore"
SURFACE = f"{PACKAGE}/src/neuroncore/surface/isa.txt"
RECORD = f"{PACKAGE}/src/neuroncore/instructions/max8.py"


@pytest.fixture
def guide(tmp_path: Path) -> Guide:
    guide = Guide.on_copy(PAGE, PACKAGE, tmp_path)
    guide.apply()
    return guide


def test_the_diff_is_the_surface_the_record_and_one_test():
    new_test = f"{PACKAGE}/tests/instructions/test_max8_smallest.py"
    assert touched(PAGE) == [SURFACE, RECORD, new_test]


def test_the_new_test_passes_with_the_change(guide: Guide):
    green = guide.run_new_test()
    assert green.returncode == 0, green.stdout


def test_the_new_test_sees_an_earlier_version_with_the_option(guide: Guide):
    guide.replace(SURFACE, "0.2-0.5 (dst, src, name", "0.2-0.5 (dst, src, smallest=False, name")
    assert guide.run_new_test().returncode == 1


def test_the_new_test_sees_an_option_without_effect(guide: Guide):
    guide.replace(RECORD, "-1 if c.smallest else 1", "1")
    assert guide.run_new_test().returncode == 1
