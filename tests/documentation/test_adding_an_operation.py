"""The page's diff is how expm1 was added: taken back it is gone, applied it is there and tested."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.documentation.guides import Guide, touched

PAGE = "adding-an-operation.md"
PACKAGE = "packages/nkigen_lite"
RECORD = f"{PACKAGE}/src/nkigen_lite/ops/expm1.py"
CALL = """
import numpy as np
import nkigen_lite

kernel = nkigen_lite.compile(np.expm1, "f32[128, 64]")
assert "expm1" in str(kernel.graph)
"""


@pytest.fixture
def guide(tmp_path: Path) -> Guide:
    return Guide.on_copy(PAGE, PACKAGE, tmp_path)


def test_the_diff_is_one_record_and_one_test():
    assert touched(PAGE) == [RECORD, f"{PACKAGE}/tests/ops/test_expm1.py"]


def test_taken_back_the_operation_is_gone_and_applied_it_is_there(guide: Guide):
    guide.apply("--reverse")
    gone = guide.run("-c", CALL)
    assert "np.expm1 is not translated" in gone.stderr

    guide.apply()
    there = guide.run("-c", CALL)
    assert there.returncode == 0, there.stderr


def test_the_new_test_passes_with_the_record_and_not_without(guide: Guide):
    green = guide.run_new_test()
    assert green.returncode == 0, green.stdout

    guide.replace(RECORD, 'choose(x.call("abs") < 0.5, near, d)', "d")
    assert guide.run_new_test().returncode == 1
