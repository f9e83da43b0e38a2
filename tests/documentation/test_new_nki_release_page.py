"""docs/new-nki-release.md: every command in it runs and prints what the page shows."""

from __future__ import annotations

import shutil

from members import ROOT
from nki_coverage import NAMES
from tests.coverage.test_draft_rules import NOT_IN_SIGNATURES
from tests.documentation.test_migrating_page import run, says, steps

PAGE = (ROOT / "docs" / "new-nki-release.md").read_text(encoding="utf-8")


def test_every_command_of_the_page_prints_what_the_page_shows(tmp_path):
    shutil.copy(NAMES, tmp_path / "names.json")

    for command, shown in steps(PAGE):
        printed = run(command, tmp_path)
        assert says(shown, printed), f"$ {command}\n" + "\n".join(printed)


def test_the_page_counts_the_changes_that_no_draft_names():
    assert len(NOT_IN_SIGNATURES) == 4 and "hold but four" in PAGE
