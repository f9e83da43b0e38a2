"""Masks select after the migration what they selected before it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import nki_runtime
from nki_migrate.engine.migration import migrate_source
from nki_migrate.settings.request import Request

KERNEL = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

@nki.jit
def kernel(x, k):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows, columns = x.shape
    i = nl.arange(rows)[:, None]
    j = nl.arange(columns)[None, :]
    t = nl.load(x)
    z = nl.full((rows, columns), -1.0, dtype=x.dtype)
    z[i, j] = {value}
    nl.store(out, z)
    return out
"""
ROW, COL = np.ogrid[:64, :96]
X = (ROW * 96.0 + COL + 1.0).astype(np.float32)
SELECTIONS = {
    "j >= k": lambda k: k <= COL,
    "j > k": lambda k: k < COL,
    "k <= j": lambda k: k <= COL,
    "(j >= k) & (j < 90)": lambda k: (k <= COL) & (COL < 90),
    "(j >= 3) & (j >= k)": lambda k: (COL >= 3) & (k <= COL),
    "j == k": lambda k: k == COL,
    "i >= k": lambda k: k <= ROW,
    "(i >= k) & (i < 60) & (j >= 2) & (j < k + 9)": lambda k: (
        (k <= ROW) & (ROW < 60) & (COL >= 2) & (k + 9 > COL)
    ),
    "i >= 32": lambda k: ROW >= 32,
    "i >= j": lambda k: ROW >= COL,
    "2 * i < j": lambda k: 2 * ROW < COL,
    "(i >= j) & (j - i + k > 0)": lambda k: (ROW >= COL) & (COL - ROW + k > 0),
    "(i >= j) & (k > 0)": lambda k: (ROW >= COL) & (k > 0),
    "-1 * i - j + 70 >= 0": lambda k: 70 - ROW - COL >= 0,
}


def run(path: Path, text: str, *arguments, **backend) -> np.ndarray:
    path.write_text(text)
    with nki_runtime.use(**backend):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)  # pyrefly: ignore
        spec.loader.exec_module(module)  # pyrefly: ignore
        return np.asarray(module.kernel(*arguments))


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("k", [5, 200, -3])
@pytest.mark.parametrize("value", ["nl.copy(t[i, j], mask={})", "nl.load(x[i, j], mask={})"])
@pytest.mark.parametrize("mask", SELECTIONS)
def test_a_mask_selects_what_it_selected(mask, value, k, tmp_path):
    text = KERNEL.format(value=value.format(mask))

    result = migrate_source(text, "k.py", Request())

    assert result.kernels[0].complete, result.findings
    new = run(tmp_path / "new.py", result.after, X, k, backend="beta2", nki="0.7")
    np.testing.assert_array_equal(new, np.where(SELECTIONS[mask](k), X, -1.0))


def test_a_mask_of_a_store_of_two_axes_stays():
    text = KERNEL.format(value="nl.copy(t[i, j])").replace(
        "nl.store(out, z)", "nl.store(out[i, j], z, mask=(i >= j))"
    )

    result = migrate_source(text, "k.py", Request())

    assert {f.rule for f in result.findings if not f.applied} == {"NKI1172"}


def test_a_mask_in_a_loop_that_counts_down_selects_what_it_selected(tmp_path):
    body = """for k in range(2, -1, -1):
        t = nl.load(x[k * 3 + i, j], mask=(k * 3 + i < rows))
        nl.store(out[k * 3 + i, j], t, mask=(k * 3 + i < rows))
    return out
"""
    head = KERNEL.partition("    t = ")[0].replace("i = nl.arange(rows)", "i = nl.arange(3)")
    x = X[:7]

    result = migrate_source(head + "    " + body, "k.py", Request())

    assert result.kernels[0].complete, result.findings
    new = run(tmp_path / "new.py", result.after, x, 0, backend="beta2", nki="0.7")
    np.testing.assert_array_equal(new, x)
