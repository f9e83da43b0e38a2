"""Pages of large kernels, and how quickly a browser shows them: for tests and benchmarks."""

from __future__ import annotations

import runpy
import time
from pathlib import Path

import numpy as np
from chromium import Chromium

import nki_runtime
from neuroncore.program import Program
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


def stream_of(folder: Path, instructions: int) -> Program:
    """The stream with so many instructions."""
    path = folder / "stream.py"
    path.write_text(STREAM)
    kernel = runpy.run_path(str(path))["stream"]
    return nki_runtime.program_of(kernel, ((16, 4 * (instructions // 3)), np.float32))


def page_of_stream(
    folder: Path, instructions: int, skip_periods: bool = False, mode: str = "device"
) -> tuple[Path, float]:
    """The page of the stream, and the seconds of CPU that it took beyond the estimate."""
    with nki_runtime.use(nki="0.7", target="trn2"):
        program = stream_of(folder, instructions)
        timeline = estimate(program, skip_periods=skip_periods, verified=True, mode=mode)
    reporter = Reporter("test", folder / f"{instructions}.html")
    reporter.add("timelines", [timeline])
    start = time.process_time()
    reporter.write()
    return reporter.file, time.process_time() - start


def seconds_of_change(browser: Chromium) -> float:
    """How long the What if view takes to play a change and to draw it: the median of five."""
    browser.run(
        "[...document.querySelectorAll('[role=tab]')].find(t => t.innerText == 'What if').click()"
    )
    return browser.run(CHANGE) / 1000


CHANGE = """(async () => {
    const frame = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));
    const times = [];
    await frame();
    for (const value of ["900", "800", "700", "600", "500"]) {
        const field = document.querySelector("#what-DMA_START"), start = performance.now();
        field.value = value; field.dispatchEvent(new Event("change"));
        await frame();
        times.push(performance.now() - start);
    }
    return times.sort((a, b) => a - b)[2];
})()"""
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
