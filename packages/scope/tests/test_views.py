"""The views of a page in a real browser."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nki_scope.cli import main

TABS = "[...document.querySelectorAll('[role=tab]')]"
SHOWN = "document.querySelector('[role=tabpanel]:not([hidden])')"


def views(browser) -> list[str]:
    return browser.run(f"{TABS}.map(t => t.textContent)")


def show(browser, name: str) -> None:
    browser.run(f"{TABS}.find(t => t.textContent === {name!r}).click()")
    browser.run("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")


def choose_kernel(browser, number: int) -> None:
    choose = "document.querySelector('#kernel')"
    browser.run(f"({choose}.value = {number}, {choose}.dispatchEvent(new Event('change')))")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (400, False)])
def test_every_view_is_shown_without_an_error(browser, attention, width, dark):
    browser.open(attention, width=width, dark=dark)

    for name in views(browser):
        show(browser, name)
        assert browser.run(f"{SHOWN}.dataset.view") == name
        assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.problems == []


EXAMPLES = {
    "softmax": [(256, 512)],
    "rmsnorm": [(256, 512), (512,)],
    "matmul": [(256, 128), (256, 512)],
    "mlp": [(256, 128), (256, 512), (512, 128)],
    "tour": [(128, 128)],
}
"""Kernel of examples/beta2 → shapes of its arguments, beside the attention example."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_view_of_an_example_is_shown(browser, page_of, name):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in EXAMPLES[name]]
    kernel = "scalar_engine" if name == "tour" else f"{name}_kernel"
    browser.open(page_of(Path(f"examples/beta2/{name}.py"), kernel, *arrays))

    for view in views(browser):
        show(browser, view)
        assert browser.run(f"{SHOWN}.innerText.length") > 20
    assert browser.problems == []


def test_the_head_has_the_time_as_the_toolchain_makes_it(browser, attention, data_of):
    made, written = (f"{k['totalNs'] / 1e3:.2f} µs" for k in data_of(attention)[0]["kernels"])
    browser.open(attention)
    head = "document.querySelector('.figures').textContent"

    assert browser.run(head).startswith(f"{made} as the toolchain of NKI 0.7 makes it (")
    choose_kernel(browser, 1)
    assert browser.run(head).startswith(f"{made} as the toolchain of NKI 0.7 makes it; {written}")


def test_gaps_are_marked_with_what_was_waited_for(browser, page_of):
    x = np.ones((256, 512), np.float32)
    file = page_of(Path("examples/beta2/softmax.py"), "softmax_kernel", x)
    browser.open(file)
    browser.run(RECTS)
    browser.run(
        "[...document.querySelectorAll('button')].find(b => b.innerText == 'Whole').click()"
    )
    browser.run("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    marked = browser.run("filled.filter(([color, height]) => height === 4).map(([c]) => c)")
    legend = browser.run(f"{SHOWN}.innerText")

    assert "#e15759" in marked
    assert "what the next instruction waited for: data" in legend.replace("\n", " ")


RECTS = """globalThis.filled = [], fillRect = CanvasRenderingContext2D.prototype.fillRect;
CanvasRenderingContext2D.prototype.fillRect = function (...at) {
    filled.push([this.fillStyle, at[3]]); return fillRect.apply(this, at);
}; 0"""


def test_byte_axes_have_steps_of_powers_of_two(browser, page_of):
    x = np.ones((128, 4096), np.float32)
    browser.open(page_of(Path("examples/beta2/softmax.py"), "softmax_kernel", x))
    browser.run(TEXTS)
    show(browser, "Memory")
    drawn = browser.run("drawn.filter(text => / (KiB|B)$/.test(text))")

    assert drawn
    assert not [text for text in drawn if ".5" in text or (".0" not in text and "KiB" in text)]


HOLES = """
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def holes(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    low = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    middle = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    high = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=low, value=1.0, engine=nisa.vector_engine)
    nisa.memset(dst=middle, value=2.0, engine=nisa.vector_engine)
    nisa.tensor_tensor(dst=high, data1=low, data2=middle, op=nl.add)
    nisa.tensor_tensor(dst=low, data1=low, data2=high, op=nl.multiply)
    nisa.dma_copy(dst=out, src=low)
    return out
"""


def test_memory_that_is_free_between_buffers_is_shown_at_each_moment(browser, page_of):
    browser.open(page_of(HOLES, "holes", np.ones((128, 512), np.float32)))
    show(browser, "Memory")
    details = f"{SHOWN}.querySelector('.details').textContent"
    rows = f"[...{SHOWN}.querySelectorAll('table')].map(t => t.innerText)"

    assert "6.0 KiB per partition held by 3 buffers, up to byte 6144" in browser.run(details)
    assert "nothing between them is free" in browser.run(details)
    browser.run(f"{SHOWN}.querySelector('canvas').focus()")
    seen = []
    for _ in range(8):
        browser.press("ArrowRight")
        seen.append(browser.run(details))
    assert any("held by 2 buffers" in text and "2.0 KiB between them are free (33.3%)" in text
               for text in seen)  # fmt: skip
    assert browser.run(rows)[-1].count("2048") == 3
    assert "The kernel has no buffer in PSUM." in browser.run(f"{SHOWN}.innerText")


def test_memory_and_roofline_show_the_selection(browser, page_of):
    browser.open(page_of(LOOPED, "looped", np.ones((128, 2048), np.float32)))
    show(browser, "Roofline")
    loop = f"{SHOWN}.querySelector('tbody button')"
    browser.run(f"{loop}.click()")
    details = f"{SHOWN}.querySelector('.details').textContent"

    marked = f"[...{SHOWN}.querySelectorAll('tr.picked')].map(r => r.innerText.split('\\t')[0])"
    assert browser.run(marked) == ["for i in range(4)"]
    assert "inside for i in range(4)" in browser.run(details)
    show(browser, "Memory")
    assert "The selected dma_copy starts here." in browser.run(details)
    show(browser, "Timeline")
    browser.run("[...document.querySelectorAll('button')].find(b => b.innerText == 'Next').click()")
    show(browser, "Memory")
    assert "starts here" in browser.run(details)


LOOPED = """
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def looped(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(4):
        tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[:, i * 512:(i + 1) * 512])
        nisa.dma_copy(dst=out[:, i * 512:(i + 1) * 512], src=tile)
    return out
"""


def test_a_finding_selects_its_line(browser, tmp_path):
    source = tmp_path / "twice.py"
    source.write_text(TWICE)
    page = tmp_path / "page.html"
    command = [sys.executable, "-m", "nki_runtime", "--check", "all", "--report", str(page)]
    done = subprocess.run([*command, str(source)], cwd=tmp_path, capture_output=True, text=True)
    assert page.is_file(), done.stderr
    browser.open(page)
    show(browser, "Findings")
    said = browser.run(f"{SHOWN}.innerText")
    assert [said.count(part) for part in (": src reads 32,768 of", "undefined]")] == [1, 1]
    text = browser.run(f"{SHOWN}.querySelector('.findings button').innerText")
    browser.run(f"{SHOWN}.querySelector('.findings button').click()")

    assert browser.run(f"{SHOWN}.dataset.view") == "Source"
    line = browser.run(f"{SHOWN}.querySelector('[aria-pressed=true] .num').innerText")
    assert text.endswith(f"twice.py:{line}")


TWICE = """
import numpy as np
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def twice(x):
    tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile[:, 0:256], src=x[:, 0:256])
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out

twice(np.ones((128, 512), np.float32))
"""


def test_bars_that_are_drawn_as_one_are_reported(browser, page_of):
    many = LOOPED.replace("512", "16").replace("range(4)", "range(4096)")
    many = many.replace(COPIED, CLEARED).replace("out[:, i * 16:(i + 1) * 16]", "out")
    browser.open(page_of(many, "looped", np.ones((128, 16), np.float32)))
    level = f"{SHOWN}.innerText.includes('narrower than a pixel are drawn as one')"
    drawn = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    show(browser, "Timeline")
    browser.run(f"{drawn}.then(() => 0)")
    assert browser.run(level)

    zoom = "[...document.querySelectorAll('button')].find(b => b.innerText == 'Zoom in')"
    for _ in range(10):
        browser.run(f"{zoom}.click()")
    browser.run(f"{drawn}.then(() => 0)")
    assert not browser.run(level)


COPIED = "nisa.dma_copy(dst=tile, src=x[:, i * 16:(i + 1) * 16])"
CLEARED = "nisa.memset(dst=tile, value=1.0, engine=nisa.vector_engine)"


TEXTS = """globalThis.drawn = [], original = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
    drawn.push(text); return original.call(this, text, ...at);
}; 0"""


def test_without_script_the_summary_is_the_page(attention):
    text = re.sub(r"<script.*?</script>", "", attention.read_text("utf-8"), flags=re.S)
    summary = text[text.index("<details") : text.index("</details>")]

    assert '<details id="summary" open>' in summary
    assert "critical path" in summary and "attention_kernel on trn2" in summary


def test_keys_alone_reach_every_view_and_an_instruction(browser, attention):
    browser.open(attention)
    browser.run(f"{TABS}[0].focus()")
    names = views(browser)

    seen = []
    for _ in names:
        browser.press("ArrowRight")
        seen.append(browser.run(f"{SHOWN}.dataset.view"))
    assert sorted(seen) == sorted(names)

    show(browser, "Timeline")
    browser.run("document.querySelector('canvas').focus()")
    for key in ("ArrowDown", "ArrowDown", "Enter", "c"):
        browser.press(key)
    assert "Starts at" in browser.run(f"{SHOWN}.querySelector('.details').textContent")


def test_a_line_that_is_selected_selects_its_instructions(browser, attention):
    browser.open(attention)
    show(browser, "Source")
    browser.run(f"{SHOWN}.querySelector('button.line').click()")
    show(browser, "Timeline")

    assert "Line " in browser.run(f"{SHOWN}.querySelector('.details').textContent")


def test_another_kernel_of_the_run_takes_over_all_views(browser, attention, page_of, tmp_path):
    one = attention.rename(tmp_path / "one.html")
    x = np.ones((256, 512), np.float32)
    two = page_of(Path("examples/beta2/softmax.py"), "softmax_kernel", x)
    assert main(["compare", str(two), str(one), "-o", str(tmp_path / "both.html")]) == 0
    browser.open(tmp_path / "both.html")
    for name in views(browser):
        show(browser, name)

    choose_kernel(browser, 2)
    show(browser, "Timeline")
    browser.run(f"{SHOWN}.querySelector('canvas').focus()")
    for key in ("ArrowDown", "c", "c", "ArrowDown"):
        browser.press(key)
    for name in views(browser):
        show(browser, name)
    assert "attention" in browser.run("document.querySelector('#kernel').selectedOptions[0].text")
    assert browser.problems == []


@pytest.mark.parametrize(
    ("data", "reason"),
    [("eJzLL8lILQIABnQCIw==", "another version"), ("AAAA", "damaged"), ("?", "damaged")],
)
def test_data_that_is_not_shown_leaves_the_summary(browser, attention, data, reason):
    text = attention.read_text("utf-8")
    first = text.index('id="data">') + len('id="data">')
    attention.write_text(text[:first] + data + text[text.index("<", first) :])
    browser.open(attention)

    shown = browser.run("document.getElementById('app').textContent")
    assert shown.startswith("The views cannot be shown: ") and reason in shown
    assert browser.run("document.getElementById('summary').open")


@pytest.mark.parametrize("dark", [False, True])
def test_no_serious_barrier_is_found(browser, attention, dark):
    browser.open(attention, dark=dark)

    for name in views(browser):
        show(browser, name)
        assert browser.barriers() == [], name


def test_a_search_selects_the_instructions_with_the_text_in_turn(browser, page_of):
    browser.open(page_of(LOOPED, "looped", np.ones((128, 2048), np.float32)))
    details = f"{SHOWN}.querySelector('.details').textContent"
    browser.run(f"{SHOWN}.querySelector('[type=search]').focus()")
    for key in "src=x":
        browser.press(key)

    seen = []
    for _ in range(5):
        browser.press("Enter")
        seen.append(browser.run(f"{SHOWN}.querySelector('.bar > span').textContent"))
        assert "src=x" in browser.run(details)
    assert seen == ["1 of 4", "2 of 4", "3 of 4", "4 of 4", "1 of 4"]


def test_a_gap_is_marked_where_no_bar_of_the_queue_is_played(browser, page_of):
    source = LOOPED.replace("512", "16").replace("range(4)", "range(128)")
    browser.open(page_of(source, "looped", np.ones((128, 2048), np.float32)))
    rows = browser.run(IDLE)

    assert any(rows)
    assert all(free <= start for row in rows for free, start in row)


IDLE = """(async () => {
    const {inflate, parse, rows} = nkiScope, of = document.getElementById("data").textContent;
    const {lane, start, busy} = parse(await inflate(of)).kernels[0].bars;
    const played = (queue, from, until) => [...lane.keys()].some(
        n => lane[n] === queue && start[n] < until && start[n] + busy[n] > from);
    return rows(parse(await inflate(of)).kernels[0]).map(row => [...row.bars.keys()]
        .map(n => [row.free[n], start[row.bars[n]]])
        .filter(([free, until]) => free < until)
        .map(([free, until]) => played(row.lane, free, until) ? [1, 0] : [free, until]));
})()"""


def test_a_page_is_printed_in_the_colors_of_paper(browser, attention):
    browser.open(attention, dark=True)
    show(browser, "Timeline")
    ink = "getComputedStyle(document.documentElement).getPropertyValue('--ink')"
    shown = browser.run(ink)
    browser.run("dispatchEvent(new Event('beforeprint'))")
    printed = browser.run(ink)
    browser.run("dispatchEvent(new Event('afterprint'))")

    assert (shown, printed, browser.run(ink)) == ("#e6edf3", "#1f2328", "#e6edf3")


def test_the_line_that_raised_is_marked_in_the_source(browser, page_of, tmp_path):
    with pytest.raises(Exception, match="tensor_copy"):
        page_of(RAISING, "looped", np.ones((128, 2048), np.float32))
    browser.open(tmp_path / "looped.html")
    show(browser, "Source")

    assert "dst=tile[:, 0:7]" in browser.run(f"{SHOWN}.querySelector('.raised').textContent")


RAISING = LOOPED.replace(
    "    return out", "    nisa.tensor_copy(dst=tile[:, 0:7], src=tile)\n    return out"
)
