"""The diff of the page is the transform as it is: reversed it is gone, applied it is tested."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.documentation.guides import Guide, touched

PAGE, PACKAGE = "adding-a-transform.md", "packages/nkigym"
MODULE = f"{PACKAGE}/src/nkigym/transforms/swap.py"
OFFERED = "from nkigym.transforms import TRANSFORMS; print('swap' in TRANSFORMS)"


@pytest.fixture
def guide(tmp_path: Path) -> Guide:
    """The guide on a copy of the package."""
    return Guide.on_copy(PAGE, PACKAGE, tmp_path)


def test_the_diff_is_one_module_and_one_test():
    assert touched(PAGE) == [MODULE, f"{PACKAGE}/tests/transforms/test_swap.py"]


def test_reversed_the_transform_is_gone_and_applied_it_is_offered(guide: Guide):
    guide.apply("--reverse")
    assert guide.run("-c", OFFERED).stdout == "False\n"

    guide.apply()
    assert guide.run("-c", OFFERED).stdout == "True\n"


def test_the_new_test_passes_with_the_module_and_fails_on_a_fault(guide: Guide):
    green = guide.run_new_test()
    assert green.returncode == 0, green.stdout

    guide.replace(MODULE, "block[m], first,", "first, block[m],")
    assert guide.run_new_test().returncode == 1
