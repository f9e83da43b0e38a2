"""The page's diff is how NKI2009 came in: taken back it is gone, applied it is there and tested."""

from __future__ import annotations

from pathlib import Path

import pytest
from members import ROOT
from tests.documentation.guides import Guide, touched

PAGE = "adding-a-rule.md"
PACKAGE = "tools/nki_migrate"
RULES = f"{PACKAGE}/src/nki_migrate/rules"
HOOKS = f"{RULES}/nki2009_register_move.py"
EXPLAIN = ("-m", "nki_migrate", "explain", "NKI2009")


@pytest.fixture
def guide(tmp_path: Path) -> Guide:
    return Guide.on_copy(PAGE, PACKAGE, tmp_path)


def test_the_diff_is_the_two_files_of_one_rule():
    assert touched(PAGE) == [f"{RULES}/nki2009.toml", HOOKS]


def test_taken_back_the_rule_is_gone_and_applied_it_is_there(guide: Guide):
    guide.apply("--reverse")
    assert guide.run(*EXPLAIN).returncode == 2

    guide.apply()
    assert "register_move" in guide.run(*EXPLAIN).stdout


def test_the_examples_of_the_rule_run_as_tests(guide: Guide):
    tests = str(ROOT / PACKAGE / "tests/rules/test_examples.py")
    examples = ("-m", "pytest", "-q", "-k", "NKI2009", "-c", str(ROOT / "pyproject.toml"), tests)

    green = guide.run(*examples)
    assert green.returncode == 0, green.stdout
    guide.replace(HOOKS, "register_alloc(", "register_load(")
    assert guide.run(*examples).returncode == 1
