"""What-if rows are what the model gives for one change."""

from __future__ import annotations

import numpy as np

import nki_runtime
from neuroncore.timeline import constants, estimate
from nki_scope.cli import main

STREAM = """
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def stream(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(8):
        tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[:, nl.ds(i * 64, 64)])
        nisa.dma_copy(dst=out[:, nl.ds(i * 64, 64)], src=tile)
    return out
"""


def test_other_targets_and_costs_have_the_totals_of_the_model(page_of, data_of, tmp_path):
    file = page_of(STREAM, "stream", np.ones((128, 512), np.float32))
    rows = {(w["kind"], w["to"]): w for w in data_of(file)[0]["kernels"][0]["whatIf"]}
    scope = {}
    with nki_runtime.use(nki="0.7", target="trn2"):
        exec(compile(STREAM, str(tmp_path / "kernels.py"), "exec"), scope)
        program = nki_runtime.program_of(scope["stream"], ((128, 512), np.float32))
    start = constants().at("trn2")["DMA_START"]
    doubled = constants().but("DMA_START", "trn2", 2 * start)

    assert rows["target", "trn1"]["totalNs"] == estimate(program, "trn1").total_ns
    assert (
        rows["cost", f"{start:g} x 2"]["totalNs"] == estimate(program, constants=doubled).total_ns
    )


def test_two_pages_are_compared_line_by_line(page_of, browser, tmp_path):
    x = np.ones((128, 512), np.float32)
    old = page_of(STREAM, "stream", x).rename(tmp_path / "old.html")
    new = page_of(STREAM.replace("range(8)", "range(4)"), "stream", x)
    both = tmp_path / "both.html"

    assert main(["compare", str(old), str(new), "-o", str(both)]) == 0
    browser.open(both)
    text = browser.run("document.querySelector('[data-view=Compare]').innerText")
    assert text.count("\u22124") == 2
    assert browser.problems == []
