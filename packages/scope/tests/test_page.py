"""What is in the file of a page, read without a browser."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from members import ROOT

import nki_runtime
from neuroncore.errors import KernelError
from nki_scope import page

COPY = """
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def copy(x):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x, name="<b>&load</b>")
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out

@nki.jit
def too_large(x):
    tile = nl.ndarray((128, 16), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=1.0)
    nisa.dma_copy(dst=tile, src=x)
    return x
"""


def test_a_page_loads_nothing_from_anywhere(attention):
    text = attention.read_text("utf-8")

    assert not re.findall(r"""(?:src|href)\s*=\s*["']""", text.split("<body>")[0])
    assert "default-src 'none'" in text
    assert not re.findall(
        r"https?://[^\s\"']+", re.sub(r"<script.*?</script>", "", text, flags=re.S)
    )


def test_a_page_of_the_attention_example_is_small(attention):
    assert attention.stat().st_size <= 400_000


def test_bars_are_those_of_the_estimate(attention, data_of):
    document, columns = data_of(attention)
    assert [kernel["mode"] for kernel in document["kernels"]] == ["device", "as_written"]
    for kernel in document["kernels"]:
        start, end = (columns[kernel["bars"][name]["column"]] for name in ("start", "end"))
        path = columns[kernel["path"]["ticks"]["column"]]

        assert kernel["numOps"] == len(start)
        assert end.max() / kernel["perNs"] == kernel["totalNs"]
        assert path.sum() / kernel["perNs"] == kernel["totalNs"]


def test_a_page_shows_the_kernel_as_its_toolchain_makes_it_first(page_of, data_of):
    shapes = (1, 64, 512), (1, 64, 512), (1, 512, 64)
    arrays = [np.ones(shape, np.float32) for shape in shapes]
    path = Path("examples/beta2/attention.py")
    document, columns = data_of(page_of(path, "attention_kernel", *arrays, 0.125))
    made, written = document["kernels"]

    with nki_runtime.use(nki="0.7", target="trn2"):
        kernel = runpy.run_path(str(ROOT / path))["attention_kernel"]
        expected = nki_runtime.estimate(kernel, *arrays, 0.125)
    assert made["totalNs"] == expected.total_ns
    assert columns[made["bars"]["end"]["column"]].max() / made["perNs"] == expected.total_ns
    assert [name for name, _ in made["assumed"]] == [each.name for each in expected.changes]
    assert (made["mode"], written["mode"]) == ("device", "as_written")
    orders = [
        [each["reorders"] for each in kernel["replay"]["candidates"]["trn2"]]
        for kernel in document["kernels"]
    ]
    assert orders == [[True, False], [False]]


def test_every_instruction_has_its_line(attention, data_of):
    document, _ = data_of(attention)

    for call in document["kernels"][0]["calls"]:
        file, line = call["at"]
        assert call["instruction"] in document["files"][file]["lines"][line - 1]


def test_the_most_that_memory_holds_is_what_lives_then(attention, data_of):
    document, columns = data_of(attention)
    for memory in document["kernels"][0]["memory"].values():
        held = columns[memory["held"]["column"]]
        lives = {name: columns[ref["column"]] for name, ref in memory["lives"].items()}
        sizes = np.array([b["bytes"] for b in memory["buffers"]])[lives["buffer"]]
        units = -(-sizes // memory["unit"])
        at_once = [units[(lives["start"] <= t) & (t < lives["end"])].sum() for t in lives["start"]]

        assert held.max() == max(at_once)


def test_names_with_html_are_text(page_of):
    text = page_of(COPY, "copy", np.ones((128, 64), np.float32)).read_text("utf-8")

    assert "<b>&load" not in text


def test_a_kernel_that_raises_is_shown_until_there(page_of, tmp_path, data_of):
    with pytest.raises(KernelError):
        page_of(COPY, "too_large", np.ones((128, 64), np.float32))

    document, _ = data_of(tmp_path / "too_large.html")

    assert [call["instruction"] for call in document["kernels"][0]["calls"]] == ["memset"]
    assert "dma_copy" in document["errors"][0]


DIVIDED = COPY.replace("    return out", "    return 1 // (x.shape[0] - 128)")


def test_an_error_of_python_names_the_line_of_the_kernel(page_of, tmp_path, data_of, browser):
    (line,) = [n for n, text in enumerate(DIVIDED.splitlines(), 1) if "1 //" in text]
    with pytest.raises(ZeroDivisionError):
        page_of(DIVIDED, "copy", np.ones((128, 64), np.float32))

    (error,) = data_of(tmp_path / "copy.html")[0]["errors"]
    assert error.startswith(f"ZeroDivisionError: {tmp_path / 'kernels.py'}:{line}: ")
    assert error.endswith("\n    return 1 // (x.shape[0] - 128)")
    browser.open(tmp_path / "copy.html")
    browser.run("[...document.querySelectorAll('[role=tab]')][1].click()")
    raised = browser.run("document.querySelector('.raised code').textContent")
    assert raised.strip().startswith("return 1 //")


def test_a_file_name_that_is_not_utf_8_is_shown_escaped(tmp_path, data_of):
    script = tmp_path / os.fsdecode(b"caf\xe9.py")
    script.write_text(COPY + "import numpy as np; copy(np.ones((128, 64), np.float32))\n")
    file = tmp_path / "page.html"
    words = (sys.executable, "-m", "nki_runtime", "--report", str(file), str(script))
    done = subprocess.run(words, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    paths = [each["path"] for each in data_of(file)[0]["files"]]
    assert paths == [str(tmp_path / r"caf\udce9.py")]


def test_the_results_that_all_forms_of_a_kernel_have_are_stored_once(page_of, data_of):
    kernels = data_of(page_of(COPY, "copy", np.ones((128, 64), np.float32)))[0]["kernels"]
    made, written = (kernel["tensors"]["pictures"] for kernel in kernels)

    assert made["length"] > 0
    assert made == written


def test_nki_run_writes_the_page_with_findings(tmp_path, data_of):
    script = tmp_path / "script.py"
    script.write_text(COPY + "import numpy as np; copy(np.ones((128, 64), np.float32))\n")
    file = tmp_path / "page.html"
    words = ("nki_runtime", "--check", "memory", "--report", str(file), str(script))
    done = subprocess.run((sys.executable, "-m", *words), capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert f"--report wrote {file} (1 kernel, " in done.stderr
    assert data_of(file)[0]["kernels"][0]["name"] == "copy"


LONG = """
import sys, numpy as np, nki, nki.isa as nisa, nki.language as nl

@nki.jit
def long(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    at = 0
    for i in range(900):
        width = 4 + i * i % 13
        tile = nl.ndarray((16, 16), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile[:, 0:width], src=x[:, at : at + width])
        nisa.dma_copy(dst=out[:, at : at + width], src=tile[:, 0:width])
        at += width
    return out

long(np.ones((16, 14400), np.float32))
"""


@pytest.mark.parametrize(("words", "is_whole"), [((), False), (("--advice", "all"), True)])
def test_nki_run_plays_as_much_advice_and_keeps_as_many_results_as_it_is_told(
    words, is_whole, tmp_path, data_of
):
    script, file = tmp_path / "script.py", tmp_path / "page.html"
    script.write_text(LONG)
    options = ("--report", str(file), "--results", "10", *words)
    subprocess.run((sys.executable, "-m", "nki_runtime", *options, str(script)), check=True)
    kernel = data_of(file)[0]["kernels"][0]

    assert ("--advice all" not in kernel["summary"]) == is_whole
    assert len(kernel["tensors"]["results"]) == 10
    assert sum(kernel["tensors"]["left"].values()) == 1 + 2 * 900 - 10


TWO_CORES = """
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def halves(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    half = x.shape[1] // 2
    tile = nl.ndarray((128, half), dtype=x.dtype, buffer=nl.sbuf)
    at = nl.ds(nl.program_id(0) * half, half)
    nisa.dma_copy(dst=tile, src=x[:, at])
    nisa.dma_copy(dst=out[:, at], src=tile)
    return out
"""


def test_each_core_of_a_launch_has_its_own_entry(tmp_path, data_of):
    path = tmp_path / "kernels.py"
    path.write_text(TWO_CORES)
    with nki_runtime.use(nki="0.7", target="trn2"):
        kernel = runpy.run_path(str(path))["halves"]
        file = page(kernel[2], np.ones((128, 64), np.float32), file=tmp_path / "page.html")

    kernels = data_of(file)[0]["kernels"]
    entries = [(kernel["name"], kernel["mode"]) for kernel in kernels]
    assert sorted(entries) == [
        (f"halves, core {core}", mode) for core in (0, 1) for mode in ("as_written", "device")
    ]


@pytest.mark.parametrize("mode", ["device", "as_written"])
@pytest.mark.parametrize(
    ("example", "kernel", "shapes"),
    [
        ("examples/beta2/attention.py", "attention_kernel",
         ((1, 64, 512), (1, 64, 512), (1, 512, 64))),
        ("examples/beta2/softmax.py", "softmax_kernel", ((256, 512),)),
    ],
)  # fmt: skip
def test_the_head_counts_the_micro_ops_that_are_drawn(
    example, kernel, shapes, mode, page_of, data_of
):
    arrays = [np.ones(shape, ml_dtypes.bfloat16) for shape in shapes]
    scale = (0.125,) if len(shapes) > 1 else ()
    file = page_of(Path(example), kernel, *arrays, *scale, mode=mode)

    for shown in data_of(file)[0]["kernels"]:
        assert shown["numOps"] == shown["bars"]["lane"]["length"]
        assert f"; {shown['numOps']} micro-ops," in shown["summary"]
        assert " 0.00 µs" not in shown["summary"].partition("critical path")[2]


def test_a_read_of_unwritten_memory_does_not_keep_other_targets_from_being_played(page_of, data_of):
    text = COPY.replace('    nisa.dma_copy(dst=tile, src=x, name="<b>&load</b>")\n', "")
    kernel = data_of(page_of(text, "copy", np.ones((128, 64), np.float32)))[0]["kernels"][0]

    assert text != COPY
    assert all(isinstance(each, list) for each in kernel["replay"]["candidates"].values())


def test_a_script_that_runs_no_kernel_is_told_how_to_name_one(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(COPY)
    words = ("nki_runtime", "--report", str(tmp_path / "page.html"), str(script))
    done = subprocess.run((sys.executable, "-m", *words), capture_output=True, text=True)

    assert "(no kernel ran: name one as FILE.py:FUNCTION with its arrays, " in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "x"}, "mode: 'x' is not a choice"),
        ({"advice": "x"}, "advice: 'x' is not a choice"),
        ({"results": -1}, "results: -1 of them cannot be kept"),
        ({"file": "/nowhere/a.html"}, "file /nowhere/a.html: no such folder /nowhere"),
    ],
)
def test_options_that_are_no_choices_are_rejected_before_the_kernel_runs(options, message):
    def kernel(x):
        raise AssertionError("it ran")

    with pytest.raises(KernelError, match=re.escape(message)):
        page(kernel, np.ones(4, np.float32), **options)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_named(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(COPY + "import numpy as np; copy(np.ones((128, 64), np.float32))\n")
    words = ("nki_runtime", "--report", "/dev/full", str(script))
    done = subprocess.run((sys.executable, "-m", *words), capture_output=True, text=True)

    assert done.returncode == 2
    assert "nki-run: --report /dev/full: No space left on device" in done.stderr


NEST = """
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def nest(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for row in range(4):
        for column in range(8):
            at = column * 64
            tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x[row * 128:(row + 1) * 128, at:at + 64])
            nisa.dma_copy(dst=out[row * 128:(row + 1) * 128, at:at + 64], src=tile)
    return out
"""


def test_a_loop_has_the_line_of_its_for_statement(page_of, data_of):
    document, _ = data_of(page_of(NEST, "nest", np.ones((512, 512), np.float32)))
    kernel, _ = document["kernels"]
    lines = NEST.splitlines()

    found = {loop["name"]: lines[loop["at"][1] - 1].strip() for loop in kernel["loops"]}
    assert found == {
        "for row in range(4)": "for row in range(4):",
        "for column in range(8)": "for column in range(8):",
    }
