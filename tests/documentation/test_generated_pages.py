"""Generated pages are what their generators write today."""

from __future__ import annotations

import pytest
from pages import PAGES, main, part, rendered


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


def test_a_page_that_is_not_generated_is_an_error(capsys):
    assert main(["README.md"]) == 2
    assert "README.md: not generated; expected" in capsys.readouterr().err
