"""The page's diff is how jsonl came in: taken back it is gone, applied it is there and tested."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.documentation.guides import Guide, touched

PAGE = "adding-an-output-format.md"
PACKAGE = "packages/neuroncore"
MODULE = f"{PACKAGE}/src/neuroncore/findings/formats/jsonl.py"
TEST = f"{PACKAGE}/tests/findings/formats/test_jsonl.py"
OFFERED = "from neuroncore.findings.formats import FORMATS; print(*FORMATS)"


@pytest.fixture
def guide(tmp_path: Path) -> Guide:
    return Guide.on_copy(PAGE, PACKAGE, tmp_path)


def test_the_diff_is_one_module_and_one_test():
    assert touched(PAGE) == [MODULE, TEST]


def test_taken_back_the_format_is_gone_and_applied_it_is_offered_and_tested(guide: Guide):
    guide.apply("--reverse")
    assert "jsonl" not in guide.run("-c", OFFERED).stdout.split()

    guide.apply()
    assert "jsonl" in guide.run("-c", OFFERED).stdout.split()
    green = guide.run_new_test()
    assert green.returncode == 0, green.stdout
