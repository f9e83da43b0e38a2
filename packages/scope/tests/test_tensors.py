"""What a page says of the results of instructions is what NumPy says of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

SCALE = """
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def scale(x):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    doubled = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=doubled, data=tile, op0=nl.multiply, operand0=2.0)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=doubled)
    return out
"""


def results(page_of, data_of, x: np.ndarray, **kwargs):
    document, columns = data_of(page_of(SCALE, "scale", x, **kwargs))
    tensors = document["kernels"][0]["tensors"]
    return tensors, columns[tensors["pictures"]["column"]]


def test_results_come_in_order_with_their_counts(page_of, data_of):
    x = np.random.default_rng(1).standard_normal((128, 64)).astype(np.float32)
    x[3, 5], x[7, 9] = np.nan, np.inf
    tensors, _ = results(page_of, data_of, x)
    given, first, second, third = tensors["results"]
    finite = 2 * x[np.isfinite(x)].astype(np.float64)

    assert [r["tensor"] for r in (first, second, third)] == ["tile", "doubled", "out"]
    assert (given["tensor"], given["shape"]) == ("x", [128, 64])
    assert [r["step"] for r in tensors["results"]] == [-1, 0, 1, 2]
    assert (second["nans"], second["infinite"]) == (1, 1)
    assert (second["least"], second["greatest"]) == (finite.min(), finite.max())
    assert abs(second["mean"] - finite.mean()) <= 1e-12
    assert sum(second["histogram"]) == finite.size


def test_a_picture_shows_evenly_spaced_elements(page_of, data_of):
    x = np.arange(32 * 8, dtype=np.float32).reshape(32, 8)
    tensors, pictures = results(page_of, data_of, x)
    first = tensors["results"][0]
    levels = pictures[: first["rows"] * first["columns"]].reshape(first["rows"], first["columns"])

    assert levels.shape == x.shape
    assert np.array_equal(levels, np.rint(x / x.max() * tensors["levels"]))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("cells", [160 * 32 * 32, 3 * 16 * 8], ids=["whole", "reduced"])
def test_nan_and_inf_of_any_element_are_drawn(page_of, data_of, browser, monkeypatch, cells):
    monkeypatch.setattr("nki_scope.sections.tensors.CELLS", cells)
    x = np.random.default_rng(3).standard_normal((128, 100)).astype(np.float32)
    x[5, 3], x[77, 50], x[127, 99] = np.nan, np.inf, -np.inf
    file = page_of(SCALE, "scale", x)
    document, columns = data_of(file)
    tensors = document["kernels"][0]["tensors"]
    first = tensors["results"][0]
    rows, wide = first["rows"], first["columns"]
    levels = columns[tensors["pictures"]["column"]][: rows * wide].reshape(rows, wide)

    at = {mark: (levels == mark).nonzero() for mark in (255, 254, 253)}
    assert [len(at[mark][0]) for mark in at] == [1, 1, 1]
    for mark, (row, column) in zip(at, ((5, 3), (77, 50), (127, 99)), strict=True):
        assert (abs(at[mark][0][0] / rows - row / 128) <= 1 / rows
                and abs(at[mark][1][0] / wide - column / 100) <= 1 / wide)  # fmt: skip

    browser.open(file)
    browser.run(
        "[...document.querySelectorAll('[role=tab]')].find(t => t.innerText == 'Tensors').click()"
    )
    text = browser.run("document.querySelector('[data-view=Tensors]').innerText")
    assert f"Sampled: {rows} × {wide} cells for 128 × 100 elements" in text
    assert "−infinity" in text
    assert "the histogram counts evenly spaced elements" in text


PARTLY_WRITTEN = """
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def partly(x):
    tile = nl.ndarray((16, 8), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile[:, 0:6], src=x)
    out = nl.ndarray((16, 8), dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""


def test_elements_that_nothing_has_written_are_not_nan(page_of, data_of, browser):
    x = np.ones((16, 6), np.float32)
    x[3, 5] = np.nan
    file = page_of(PARTLY_WRITTEN, "partly", x)
    document, columns = data_of(file)
    tensors = document["kernels"][0]["tensors"]
    given, first, second = tensors["results"]
    levels = columns[tensors["pictures"]["column"]][2 * 16 * 6 :].reshape(16, 8)
    is_nan = np.zeros((16, 8), bool)
    is_nan[3, 5] = True

    assert (given["first"], first["first"], second["first"]) == ([], [0, 0], [])
    assert (first["nans"], first["unwritten"]) == (1, 0)
    assert (second["nans"], second["unwritten"], second["infinite"]) == (1, 32, 0)
    assert sum(second["histogram"]) == 16 * 6 - 1
    assert np.array_equal(levels == 255, is_nan)
    assert np.array_equal(levels == 252, np.arange(8) >= np.full((16, 1), 6))

    browser.open(file)
    browser.run(
        "[...document.querySelectorAll('[role=tab]')].find(t => t.innerText == 'Tensors').click()"
    )
    for _ in range(2):
        browser.run("[...document.querySelectorAll('button')].find("
                    "b => b.innerText == 'Step forward').click()")  # fmt: skip
    text = browser.run("document.querySelector('[data-view=Tensors]').innerText")
    assert "1 NaN, 0 infinite, 32 that nothing has written" in text


def test_a_result_is_compared_with_its_reference_in_ulps(page_of, data_of):
    x = np.linspace(1, 1.9, 128, dtype=np.float32).astype(ml_dtypes.bfloat16).reshape(16, 8)
    wrong = np.zeros(x.shape)
    wrong[3, 5], wrong[4, 0] = 1, -2
    eps = 2.0**-7

    def reference(x):
        return 2 * x.astype(np.float64) * 1.0 + 2 * eps * wrong  # numbers from 2 to 4

    tensors, _ = results(page_of, data_of, x, reference=reference)
    last = tensors["results"][-1]

    assert last["tensor"] == "result 0, ulps from the reference"
    assert (last["least"], last["greatest"], last["mean"]) == (0, 2, 3 / x.size)


IN_PLACE = (
    SCALE.replace("dma_copy(dst=out", "dma_copy(dst=x")
    + """
import numpy as np

def reference(x):
    return 2 * x

def two(x):
    return x, x

if __name__ == "__main__":
    scale(np.ones((16, 8), np.float32))
"""
)


def test_nki_run_compares_kernels_with_the_function_of_a_file(tmp_path, data_of):
    source = IN_PLACE.replace("return out", "return x").replace("multiply", "add")
    (tmp_path / "scale.py").write_text(source)
    done = reported(tmp_path, "--reference", "scale.py:reference")

    assert done.returncode == 0, done.stderr
    last = data_of(tmp_path / "page.html")[0]["kernels"][0]["tensors"]["results"][-1]
    assert last["tensor"] == "result 0, ulps from the reference"
    assert last["least"] == last["greatest"] == (3 - 2) / (2 * 2**-23)


WRONG = {
    "scale.py:missing": (2, "missing"),
    "absent.py:reference": (2, "can't open 'absent.py': no such file"),
    "scale.py:two": (1, "the reference has other results than the kernel"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_reference_that_does_not_fit_is_rejected(tmp_path, name):
    (tmp_path / "scale.py").write_text(IN_PLACE)
    done = reported(tmp_path, "--reference", name)

    assert done.returncode == WRONG[name][0]
    assert WRONG[name][1] in done.stderr


def test_a_reference_needs_a_page(tmp_path):
    command = (sys.executable, "-m", "nki_runtime", "--reference", "a.py:f", __file__)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    assert done.returncode == 2
    assert "expected: --report FILE.html" in done.stderr


def reported(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "nki_runtime", "--report", "page.html", *words, "scale.py")
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("size", [1, 16 * 8 * 4, 4 * 16 * 8 * 4])
def test_results_are_summarised_together_as_alone(page_of, data_of, monkeypatch, size):
    x = np.random.default_rng(4).standard_normal((16, 8)).astype(np.float32)
    x[3, 5] = 3e38
    before, pictures = results(page_of, data_of, x)
    monkeypatch.setattr("nki_scope.sections.tensors.BLOCK_BYTES", size)
    found, same = results(page_of, data_of, x)

    assert found == before
    assert np.array_equal(pictures, same)
    assert found["results"][0]["greatest"] == np.float32(3e38)
    assert [r["infinite"] for r in found["results"]] == [0, 0, 1, 1]


def test_the_mean_of_numbers_whose_sum_is_no_float32(page_of, data_of):
    tensors, _ = results(page_of, data_of, np.full((16, 8), 1.5e38, np.float32))

    assert tensors["results"][0]["mean"] == np.float64(np.float32(1.5e38))


def test_results_that_are_not_kept_are_named(page_of, data_of, monkeypatch, browser, tmp_path):
    array = np.ones((16, 8), np.float32)
    everything, _ = results(page_of, data_of, array)
    tensors, _ = results(page_of, data_of, array, results=2)
    browser.open(tmp_path / "scale.html")
    browser.run(
        "[...document.querySelectorAll('[role=tab]')].find(t => t.innerText == 'Tensors').click()"
    )

    assert everything["left"] == {}
    assert tensors["left"] == {"doubled": 1, "out": 1}
    text = browser.run("document.querySelector('[data-view=Tensors]').innerText")
    assert "Not kept: doubled (1), out (1). nki-run --results N" in text
