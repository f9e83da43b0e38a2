"""`nki-scope compare`: two pages or two stores, as text, JSON and a page."""

from __future__ import annotations

import json
import subprocess
import sys
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from nki_scope.cli import main
from nki_scope.document import data_of as packed_of
from nki_scope.document import unpacked
from nki_scope.sections import compare_pages

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
SHORTER = "# a line more\n" + STREAM.replace("range(8)", "range(4)")
MLP = "import numpy as np\ndef mlp(x, w):\n    return np.maximum(x @ w, 0)\n"


@pytest.fixture
def pages(page_of, tmp_path) -> list[Path]:
    """Of a kernel, and of one with fewer iterations whose lines are further down."""
    x = np.ones((128, 512), np.float32)
    old = page_of(STREAM, "stream", x, mode="device").rename(tmp_path / "old.html")
    return [old, page_of(SHORTER, "stream", x, mode="device")]


def compared(capsys, *files: Path | str) -> dict:
    assert main(["compare", *map(str, files), "--output-format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_lines_are_aligned_by_their_text_and_summed(pages, data_of, capsys):
    documents = [data_of(page) for page in pages]
    found = compared(capsys, *pages)
    modes = [(each["first"]["mode"], each["second"]["mode"]) for each in found["kernels"]]
    (device, _) = found["kernels"]

    assert modes == [("device", "device"), ("as_written", "as_written")]
    assert found["only_first"] == found["only_second"] == []
    lines = {
        (row["first"], row["second"]): (row["micro_ops"], row["hbm_bytes"])
        for row in device["lines"]
    }
    each = 128 * 64 * 4
    assert lines == {
        ("kernels.py:9", "kernels.py:10"): ([8, 4], [8 * each, 4 * each]),
        ("kernels.py:10", "kernels.py:11"): ([8, 4], [8 * each, 4 * each]),
    }
    for side, (document, columns) in zip(("first", "second"), documents, strict=True):
        kernel = document["kernels"][0]
        assert device[side]["total_ns"] == kernel["totalNs"]
        number = ("first", "second").index(side)
        path = sum(row["critical_path_ns"][number] for row in device["lines"])
        assert path == pytest.approx(
            columns[kernel["path"]["ticks"]["column"]].sum() / kernel["perNs"]
        )
        busy = sum(row["busy_ns"][number] for row in device["lines"])
        assert busy == pytest.approx(
            columns[kernel["bars"]["busy"]["column"]].sum() / kernel["perNs"]
        )


def test_the_text_has_the_totals_and_the_lines_that_changed(pages, data_of, capsys):
    first, second = (data_of(page)[0]["kernels"][0]["totalNs"] / 1e3 for page in pages)

    assert main(["compare", *map(str, pages)]) == 0
    text = capsys.readouterr().out
    assert f"stream on trn2, device: {first:.2f} to {second:.2f} µs" in text
    assert "-131072 HBM bytes, -4 micro-ops   kernels.py:10  nisa.dma_copy(dst=tile" in text


def test_kernels_of_two_names_are_both_named(page_of, tmp_path, capsys):
    x = np.ones((128, 512), np.float32)
    old = page_of(STREAM, "stream", x).rename(tmp_path / "old.html")
    new = page_of(STREAM.replace("stream", "river"), "river", x)

    assert main(["compare", str(old), str(new)]) == 0
    assert capsys.readouterr().out.startswith("stream and river on trn2, ")


def test_the_page_of_both_has_the_same_differences(pages, browser, tmp_path):
    both = tmp_path / "both.html"

    assert main(["compare", *map(str, pages), "-o", str(both)]) == 0
    browser.open(both)
    text = browser.run("document.querySelector('[data-view=Compare]').innerText")
    assert text.count("\u22124") == 4
    names = browser.run("[...document.querySelectorAll('#kernel option')].map(o => o.text)")
    assert [name.split(":")[0] for name in names] == ["first", "first", "second", "second"]
    assert browser.barriers() == []
    assert browser.problems == []


def test_the_page_of_both_shows_the_differences_without_script(pages, tmp_path, capsys):
    both = tmp_path / "both.html"

    assert main(["compare", *map(str, pages), "-o", str(both)]) == 0
    printed, text = capsys.readouterr().out, both.read_text("utf-8")
    summary = text[text.index("<details") : text.index("</details>")]
    assert unescape(summary).endswith(f"<h2>Compare</h2><pre>{printed.strip()}</pre>")


def test_two_stores_are_compared(tmp_path, capsys, browser):
    (tmp_path / "mlp.py").write_text(MLP)
    for name, budget in (("short", 2), ("long", 60)):
        specs = ("--spec", "f32[64,128]", "--spec", "w=f32[128,256]")
        words = ("tune", "mlp.py:mlp", *specs, "--budget", str(budget), "--store", f"{name}.db")
        command = [Path(sys.executable).parent / "nkigym", *words]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    stores = [tmp_path / "short.db", tmp_path / "long.db"]
    before, after = compared(capsys, *stores)["kernels"]

    assert before["first"] == before["second"]
    assert after["second"]["total_ns"] < after["first"]["total_ns"]

    assert main(["compare", *map(str, stores), "-o", str(tmp_path / "both.html")]) == 0
    browser.open(tmp_path / "both.html")
    browser.run(
        "[...document.querySelectorAll('[role=tab]')].find(t => t.innerText == 'Schedule').click()"
    )
    assert "second: " in browser.run("document.querySelector('[data-view=Schedule]').innerText")
    assert browser.problems == []


@pytest.mark.parametrize("content", [b"<html></html>", b"", b"\xff\x00"])
def test_what_is_neither_a_page_nor_a_store_is_rejected(pages, tmp_path, capsys, content):
    (tmp_path / "other").write_bytes(content)

    with pytest.raises(SystemExit, match="2"):
        main(["compare", str(pages[0]), str(tmp_path / "other")])
    assert "other: not a page that --report wrote" in capsys.readouterr().err


def test_lines_without_their_text_are_aligned_by_their_instructions(pages):
    documents = [unpacked(packed_of(pages[0].read_text("utf-8"))) for _ in range(2)]
    for document, store in zip(documents, ("one.db", "two.db"), strict=True):
        document["files"] = [{"path": store, "lines": []}]

    for kernel in compare_pages(*documents)["kernels"]:
        assert all(row["first"] and row["second"] for row in kernel["lines"])
        assert all(before == after for row in kernel["lines"] for before, after in [row["busy_ns"]])
