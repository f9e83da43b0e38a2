"""The page's diff adds a check to a copy of the package; its test passes and sees a fault."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.documentation.guides import Guide, touched

PAGE = "adding-a-check.md"
PACKAGE = "packages/neuroncore"
MODULE = f"{PACKAGE}/src/neuroncore/checks/unread.py"
OFFERED = "from neuroncore.checks import CHECKS; print(*CHECKS)"


@pytest.fixture
def guide(tmp_path: Path) -> Guide:
    return Guide.on_copy(PAGE, PACKAGE, tmp_path)


def test_the_diff_is_one_module_and_one_test():
    assert touched(PAGE) == [MODULE, f"{PACKAGE}/tests/checks/test_unread.py"]


def test_applied_the_check_is_offered_and_its_test_sees_a_fault(guide: Guide):
    assert "unread" not in guide.run("-c", OFFERED).stdout.split()

    guide.apply()
    assert "unread" in guide.run("-c", OFFERED).stdout.split()
    green = guide.run_new_test()
    assert green.returncode == 0, green.stdout

    guide.replace(MODULE, "touched_by(event.call).reads", "touched_by(event.call).writes")
    assert guide.run_new_test().returncode == 1
