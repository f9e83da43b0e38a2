"""Pages of large kernels: size, time to write, and what is left out."""

from __future__ import annotations

import pytest
from large_pages import FRAMES, SELECTION, page_of_stream, seconds_of_change


@pytest.mark.thorough
def test_a_page_of_100_000_instructions_is_small_and_quick(tmp_path):
    file, seconds = page_of_stream(tmp_path, 100_000)

    assert seconds <= 6
    assert file.stat().st_size <= 5_000_000


LIMITS = [
    pytest.param(10_000, 0.2, id="10,000"),
    pytest.param(100_000, 2, id="100,000", marks=pytest.mark.thorough),
]


@pytest.mark.parametrize(("instructions", "seconds"), LIMITS)
def test_a_change_is_played_and_drawn_at_once(browser, tmp_path, instructions, seconds):
    browser.open(page_of_stream(tmp_path, instructions)[0])

    assert seconds_of_change(browser) <= seconds
    assert browser.problems == []


@pytest.mark.thorough
def test_a_page_of_100_000_instructions_opens_moves_and_selects_at_once(browser, tmp_path):
    opened = browser.open(page_of_stream(tmp_path, 100_000)[0])

    assert opened <= 2
    assert browser.run(FRAMES) <= 1000 / 30
    assert browser.run(SELECTION) <= 50
    assert browser.problems == []


def test_iterations_that_are_not_played_are_named(browser, tmp_path):
    file, _ = page_of_stream(tmp_path, 1_000_000, skip_periods=True, mode="as_written")
    browser.open(file)

    assert "Not drawn are iterations" in browser.run("document.body.innerText")
    assert browser.problems == []
