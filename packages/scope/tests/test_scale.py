"""Pages of large kernels: size, time to write, and what is left out."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

import nki_runtime
from neuroncore.timeline import estimate
from nki_scope import Reporter

STREAM = """
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def stream(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(x.shape[1] // 4):
        tile = nl.ndarray((16, 4), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[:, nl.ds(i * 4, 4)])
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=out[:, nl.ds(i * 4, 4)], src=tile)
    return out
"""


def stream_of(tmp_path, instructions: int):
    """The timeline of the stream, every micro-op played."""
    path = tmp_path / "stream.py"
    path.write_text(STREAM)
    scope = {}
    exec(compile(STREAM, str(path), "exec"), scope)
    columns = 4 * (instructions // 3)
    return nki_runtime.program_of(scope["stream"], ((16, columns), np.float32))


def page_of_stream(tmp_path, instructions: int) -> tuple[Path, float]:
    """The page of the stream, every micro-op in it, and the seconds of CPU that it took."""
    with nki_runtime.use(nki="0.7", target="trn2"):
        timeline = estimate(
            stream_of(tmp_path, instructions), skip_periods=False, verified=True, mode="as_written"
        )
    reporter = Reporter("test", tmp_path / "page.html")
    reporter.add("timelines", [timeline])
    start = time.process_time()
    reporter.write()
    return reporter.file, time.process_time() - start


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
def test_a_change_is_played_at_once(browser, tmp_path, instructions, seconds):
    browser.open(page_of_stream(tmp_path, instructions)[0])
    browser.run("[...document.querySelectorAll('[role=tab]')]"
                ".find(t => t.textContent === 'What if').click()")  # fmt: skip
    field = "document.querySelector('#what-DMA_START')"
    browser.run(f"{field}.value = '900'; {field}.dispatchEvent(new Event('change'))")
    taken = browser.run("+document.querySelector('[data-milliseconds]').dataset.milliseconds")

    assert taken <= 1000 * seconds


@pytest.mark.thorough
def test_a_page_of_100_000_instructions_opens_moves_and_selects_at_once(browser, tmp_path):
    opened = browser.open(page_of_stream(tmp_path, 100_000)[0])

    assert opened <= 2
    assert browser.run(FRAMES) <= 1000 / 30
    assert browser.run(SELECTION) <= 50
    assert browser.problems == []


FRAMES = """(async () => {
    const canvas = document.querySelector("canvas"), times = [];
    const frame = () => new Promise(done => requestAnimationFrame(done));
    for (let n = 0; n < 60; n++) {
        const start = performance.now(), deltaY = n < 30 ? -60 : 60;
        canvas.dispatchEvent(new WheelEvent("wheel", {deltaY, cancelable: true}));
        await frame();
        times.push(performance.now() - start);
    }
    return times.sort((a, b) => a - b)[30];
})()"""
"""Median milliseconds of a frame while the timeline is zoomed."""
SELECTION = """(async () => {
    const tabs = [...document.querySelectorAll("[role=tab]")];
    tabs.find(t => t.textContent === "Source").click();
    tabs.find(t => t.textContent === "Timeline").click();
    const canvas = document.querySelector("canvas"), start = performance.now();
    canvas.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowDown"}));
    if (!document.querySelector(".line[aria-pressed=true]")) throw new Error("no line is selected");
    return performance.now() - start;
})()"""
"""Milliseconds from a bar that is selected to its line."""


def test_iterations_that_are_not_played_are_named(browser, tmp_path):
    with nki_runtime.use(nki="0.7", target="trn2"):
        timeline = estimate(stream_of(tmp_path, 1_000_000), verified=True, mode="as_written")
    reporter = Reporter("test", tmp_path / "page.html")
    reporter.add("timelines", [timeline])
    reporter.write()
    browser.open(tmp_path / "page.html")

    assert "Not drawn are iterations" in browser.run("document.body.innerText")
    assert browser.problems == []
