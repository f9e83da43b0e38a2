"""Generated pages are what their generators write today."""

from __future__ import annotations

import pytest
from members import ROOT
from pages import PAGES, main, part, rendered
from readme_figures import SHOWN, table


@pytest.mark.parametrize("page", PAGES)
def test_a_generated_page_is_up_to_date(page):
    text, expected = rendered(page)

    assert text == expected, "run: python workspace/pages.py"


def test_a_part_is_replaced_between_its_marks():
    page = "# A\n<!-- p: begin -->\nold\n<!-- p: end -->\nend\n"

    new = part("p", "-c", "print('new')")(page)

    assert new == "# A\n<!-- p: begin -->\nnew\n<!-- p: end -->\nend\n"


def test_a_page_without_the_marks_of_a_part_is_an_error():
    with pytest.raises(ValueError, match="has no lines <!-- p: begin --> and <!-- p: end -->"):
        part("p", "-c", "print('new')")("# A\n")


def test_a_figure_of_the_readme_that_the_page_of_figures_lacks_is_an_error():
    page = (ROOT / "docs" / "quality.md").read_text(encoding="utf-8")

    with pytest.raises(ValueError, match="has no figure tests"):
        table(page.replace("| tests |", "| checks |"))


def test_the_readme_shows_figures_with_their_dates_as_the_page_has_them():
    page = (ROOT / "docs" / "quality.md").read_text(encoding="utf-8")

    head, rule, *rows = table(page).splitlines()

    assert (head, rule) == ("| figure | value | date |", "|---|---|---|")
    assert [row.removeprefix("| ").split(" | ")[0] for row in rows] == [*SHOWN]
    assert all(row.removesuffix(" |") in page for row in rows)


def test_a_page_that_is_not_generated_is_an_error(capsys):
    assert main(["none.md"]) == 2
    assert "none.md: not generated; expected" in capsys.readouterr().err
