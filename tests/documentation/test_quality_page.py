"""Figures that docs/quality.md takes from other pages are there, and are what the pages say."""

from __future__ import annotations

import pytest
from members import ROOT
from published_figures import FIGURES, Published, Ratios


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_a_figure_of_another_page_is_found_with_its_day(figure: Published | Ratios):
    value, day = figure.found()

    assert value[0].isdigit()
    assert day.startswith("20")


def test_a_ratio_is_the_geometric_mean_of_the_rows_that_have_both_numbers(tmp_path, monkeypatch):
    (tmp_path / "page.md").write_text("|a|b|b|\n|-|-|-|\n|2|1|9|\n|1,000|125|9|\n|3|–|9|\n")
    monkeypatch.setattr("published_figures.ROOT", tmp_path)

    assert Ratios("x", "page.md", "a", "b", "today", "").found() == ("4.00 (2 kernels)", "today")


def test_a_page_without_the_figure_is_an_error():
    page = ROOT.joinpath("README.md").relative_to(ROOT).as_posix()

    with pytest.raises(ValueError, match="no page has the figure moons"):
        Published("moons", page, r"(\d+) moons", "2026-01-01", "").found()
