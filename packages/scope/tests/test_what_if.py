"""What-if: the page plays a kernel again; the rest was played by the model."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

import nki_runtime
from neuroncore.program import Program
from neuroncore.timeline import constants, estimate

DOUBLE = """
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(8):
        tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[:, nl.ds(i * 64, 64)])
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=out[:, nl.ds(i * 64, 64)], src=tile)
    return out
"""
VIEW = "document.querySelector('[data-view=\"What if\"]')"


def double(page_of, columns: int = 512, mode: str = "device") -> tuple[Path, Program]:
    """The page of the kernel, and the kernel as a program."""
    file = page_of(DOUBLE.replace("range(8)", f"range({columns // 64})"), "double",
                   np.ones((128, columns), np.float32), mode=mode)  # fmt: skip
    scope = runpy.run_path(str(file.with_name("kernels.py")))
    return file, nki_runtime.program_of(scope["double"], ((128, columns), np.float32))


@pytest.fixture(autouse=True)
def language():
    with nki_runtime.use(nki="0.7", target="trn2"):
        yield


def test_modes_and_costs_of_micro_ops_have_the_totals_of_the_model(page_of, data_of):
    file, program = double(page_of)
    rows = {(w["kind"], w["to"]): w for w in data_of(file)[0]["kernels"][0]["whatIf"]}
    least = constants().at("trn2")["ACCESS_OVERHEAD"]
    doubled = constants().but("ACCESS_OVERHEAD", "trn2", 2 * least)

    written = estimate(program, mode="as_written")
    assert rows["mode", "as_written"]["totalNs"] == written.total_ns
    assert (
        rows["cost", f"{least:g} x 2"]["totalNs"] == estimate(program, constants=doubled).total_ns
    )


def shown_at(browser, file: Path) -> None:
    browser.open(file)
    tabs = "[...document.querySelectorAll('[role=tab]')]"
    browser.run(f"{tabs}.find(t => t.textContent === 'What if').click()")
    browser.run("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")


def press(browser, button: str) -> None:
    buttons = f"[...{VIEW}.querySelectorAll('button')]"
    browser.run(f"{buttons}.find(b => b.textContent === {button!r}).click()")


def enter(browser, field: str, value: str) -> str:
    """What the view reports once a field has another value."""
    browser.run(f"{{const f = {VIEW}.querySelector({f'#what-{field}'!r}); f.value = {value!r};"
                "f.dispatchEvent(new Event('change'))}")  # fmt: skip
    return report(browser)


def report(browser) -> str:
    return browser.run(f"{VIEW}.querySelector('p.details').textContent")


def microseconds(timeline) -> str:
    return f"{timeline.total_ns / 1e3:.2f} µs instead of"


MODES = pytest.mark.parametrize("mode", ["device", "as_written"])


@MODES
def test_a_cost_and_a_target_are_changed_in_the_page(page_of, browser, mode):
    file, program = double(page_of, mode=mode)
    shown_at(browser, file)
    slow = constants().but("DMA_START", "trn2", 2000)

    assert "Nothing is changed" in report(browser)
    assert microseconds(estimate(program, constants=slow, mode=mode)) in enter(
        browser, "DMA_START", "2000"
    )
    assert microseconds(estimate(program, "trn3", mode=mode)) in enter(browser, "target", "trn3")
    assert browser.problems == []


@pytest.mark.parametrize(
    ("mode", "copies", "sign"), [("device", "1", "+"), ("as_written", "2", "\u2212")]
)
def test_fewer_queues_and_other_copies_change_the_end(page_of, browser, mode, copies, sign):
    file, _ = double(page_of, mode=mode)
    shown_at(browser, file)

    assert "Nothing" not in enter(browser, "DMA-queues", "1")
    press(browser, "Reset")
    assert "Nothing is changed" in report(browser)
    assert f": {sign}" in enter(browser, "Copies-of-tile", copies)


@MODES
def test_a_wait_is_dragged_away_and_restored(page_of, browser, mode):
    file, _ = double(page_of, mode=mode)
    shown_at(browser, file)
    canvas = f"{VIEW}.querySelector('canvas')"
    browser.run(f"{canvas}.focus()")
    browser.press("ArrowDown")
    browser.run("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    browser.run(DRAG % canvas)
    assert "does not wait for" in browser.run(f"{VIEW}.innerText")
    assert ": \u2212" in report(browser)
    press(browser, "Restore")
    assert "Nothing is changed" in report(browser)
    assert browser.problems == []


DRAG = """(canvas => {
    const at = (type, x, y) => canvas.dispatchEvent(new PointerEvent(type, {bubbles: true,
        pointerId: 1, clientX: canvas.getBoundingClientRect().x + x,
        clientY: canvas.getBoundingClientRect().y + y}));
    canvas.setPointerCapture = () => 0;
    const [x, y] = canvas.dataset.handle.split(",").map(Number);
    at("pointerdown", x, y); at("pointermove", x, y + 40); at("pointerup", x, y + 40);
})(%s)"""


def test_a_kernel_as_its_toolchain_makes_it_is_played(page_of, browser, data_of):
    file = page_of(DOUBLE, "double", np.ones((128, 512), np.float32))
    program = nki_runtime.program_of(
        runpy.run_path(str(file.with_name("kernels.py")))["double"], ((128, 512), np.float32)
    )
    shown_at(browser, file)
    slow = constants().but("DMA_START", "trn2", 20_000)

    assert report(browser).startswith(f"{estimate(program).total_ns / 1e3:.2f} µs")
    assert microseconds(estimate(program, constants=slow)) in enter(browser, "DMA_START", "20000")
    press(browser, "Reset")
    assert microseconds(estimate(program, "trn3")) in enter(browser, "target", "trn3")
    press(browser, "Reset")
    select_a_transfer(browser)
    assert "takes the queue that is free first" in browser.run(f"{VIEW}.innerText")
    assert ": +" in enter(browser, "Time-of-the-selected-instruction-times", "30")
    assert "takes 30 times as long" in browser.run(f"{VIEW}.innerText")
    assert browser.problems == []


def select_a_transfer(browser) -> None:
    """Select the first bar of the first queue, by keys."""
    browser.run(f"{VIEW}.querySelector('canvas').focus()")
    for _ in range(60):
        browser.press("ArrowDown")
        if "transfer on" in browser.run(f"{VIEW}.innerText"):
            return
        browser.press("c")


def test_what_the_page_does_not_play_is_disabled_with_the_reason(page_of, browser):
    file, _ = double(page_of)
    shown_at(browser, file)

    assert "MIN_II: not played in the page" in browser.run(f"{VIEW}.textContent")
    assert not browser.run(f"{VIEW}.querySelector('#what-MIN_II')")
