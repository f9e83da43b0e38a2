"""Pages of large kernels: size, time to write, and what is left out."""

from __future__ import annotations

import time

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


@pytest.mark.thorough
def test_a_page_of_100_000_instructions_is_small_and_quick(tmp_path):
    with nki_runtime.use(nki="0.7", target="trn2"):
        timeline = estimate(stream_of(tmp_path, 100_000), skip_periods=False, verified=True)
    reporter = Reporter("test", tmp_path / "page.html")
    reporter.add("timelines", [timeline])
    start = time.process_time()
    reporter.write()

    assert time.process_time() - start <= 6
    assert (tmp_path / "page.html").stat().st_size <= 5_000_000


def test_iterations_that_are_not_played_are_named(browser, tmp_path):
    with nki_runtime.use(nki="0.7", target="trn2"):
        timeline = estimate(stream_of(tmp_path, 1_000_000), verified=True)
    reporter = Reporter("test", tmp_path / "page.html")
    reporter.add("timelines", [timeline])
    reporter.write()
    browser.open(tmp_path / "page.html")

    assert "Not drawn are iterations" in browser.run("document.body.innerText")
    assert browser.problems == []
