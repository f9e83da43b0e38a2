"""The generated page of rules is the one in the repository."""

from __future__ import annotations

from pathlib import Path

from nki_migrate.report.pages import render_all
from nki_migrate.rules import all_rules

PAGE = Path(__file__).parents[3] / "docs" / "rules.md"


def test_the_page_of_rules_is_current():
    command = "nki-migrate rules --output-format md > docs/rules.md"

    assert PAGE.read_text(encoding="utf-8") == render_all(all_rules().values()), f"run {command}"
