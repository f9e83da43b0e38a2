"""docs/programs.md: a kernel, its program text, its timeline and its emitted source."""

from __future__ import annotations

from members import ROOT
from tests.documentation.test_code_in_documents import test_the_code_of_a_document_runs as run

PAGE = ROOT / "docs/programs.md"


def test_the_page_shows_what_happens():
    run(PAGE)


def test_the_page_shows_text_timeline_and_source():
    text = PAGE.read_text(encoding="utf-8")

    assert all(shown in text for shown in (">>> print(program", "estimate(", "emit(program"))
