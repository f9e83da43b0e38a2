"""Pages of large kernels: size, time to write, and what is left out."""

from __future__ import annotations

from math import inf

import pytest
from large_pages import FRAMES, SELECTION, page_of_stream, seconds_of_change

from neuroncore.program import parse_program
from neuroncore.timeline import estimate
from nki_scope import Reporter
from nki_scope.document import data_of, unpacked


@pytest.mark.thorough
def test_a_page_of_100_000_instructions_is_small_and_quick(tmp_path):
    file, seconds = page_of_stream(tmp_path, 100_000)

    assert seconds <= 6
    assert file.stat().st_size <= 5_000_000


@pytest.mark.parametrize(
    ("instructions", "seconds"),
    [
        (10_000, inf),  # benchmarks/scope.py prints the time
        pytest.param(10_000, 0.2, marks=pytest.mark.thorough),
        pytest.param(100_000, 2, marks=pytest.mark.thorough),
    ],
)
def test_a_change_is_played_and_drawn_at_once(browser, tmp_path, instructions, seconds):
    browser.open(page_of_stream(tmp_path, instructions)[0])

    assert 0 < seconds_of_change(browser) <= seconds
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


LONG = """program("trn2", "0.6")
def kernel(x: float32[128, 32000]):
    out = buffer(float32[128, 32000], shared_hbm)
    t = buffer(float32[128, 32000], sbuf)
    for i in range(7000):
        dma_copy(dst=t[:, :], src=x[:, :])
        dma_copy(dst=out[:, :], src=t[:, :])
    return out
"""


def test_bars_beyond_32_bits_of_ticks_keep_their_times(tmp_path, browser):
    timeline = estimate(parse_program(LONG), mode="as_written", verified=True, skip_periods=False)
    reporter = Reporter("test", tmp_path / "page.html", "as_written")
    reporter.add("timelines", [timeline])
    reporter.write()
    text = reporter.file.read_text("utf-8")
    (kernel,) = unpacked(data_of(text))["kernels"]
    last = round(timeline.bars[-1].end_ns * kernel["perNs"])
    browser.open(reporter.file)

    assert 2**31 < last == kernel["bars"]["end"][-1]
    assert kernel["bars"]["start"].min() >= 0
    end = "nkiScope.inflate(document.getElementById('data').textContent).then(nkiScope.parse)"
    assert browser.run(f"{end}.then(d => d.kernels[0].bars.end.at(-1))") == last
