"""Views that 0.1 took from any partition on start at one that instructions access."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

import nki_runtime
from nki_migrate.engine.migration import migrate_source
from nki_migrate.settings.request import Request
from nki_runtime import recording

HEAD = """
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    t = nl.load(x[0:64, 0:8])
    out = nl.ndarray((64, 8), dtype=nl.float32, buffer=nl.shared_hbm)
"""
ROWS = np.arange(64 * 8, dtype=np.float32).reshape(64, 8)


def migrated(body):
    result = migrate_source(
        HEAD + textwrap.indent(textwrap.dedent(body), "    "), "k.py", Request()
    )
    return result.after, result.kernels[0].complete


def run(text, folder):
    """What a migrated kernel returns, where no view may start at another partition."""
    file = folder / "k.py"
    file.write_text(text)
    with nki_runtime.use("beta2", nki="0.7", start_partition="error"):
        return nki_runtime.simulate(recording.load(file).kernel)(ROWS.copy())


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("range(64)", ROWS),
        ("range(0, 64, 32)", None),
    ],
)
@pytest.mark.parametrize(
    "statement",
    [
        "nl.store(out[b:b + 1, 0:8], t[b:b + 1, 0:8])",
        "row = nl.ndarray((1, 8), dtype=nl.float32, buffer=nl.sbuf)\n"
        "    nisa.dma_copy(dst=row, src=t[b:b + 1, 0:8])\n"
        "    nl.store(out[b:b + 1, 0:8], row)",
        "row = nisa.tensor_copy(t[b:b + 1, 0:8])\n    nl.store(out[b:b + 1, 0:8], row)",
        "row = nl.exp(nl.log(t[b:b + 1, 0:8] + 1.0)) - 1.0\n    nl.store(out[b:b + 1, 0:8], row)",
    ],
    ids=["store", "dma_copy", "tensor_copy", "operators"],
)
def test_a_row_that_a_loop_counts_is_read_by_way_of_hbm(statement, rows, expected, tmp_path):
    text, complete = migrated(f"for b in nl.static_{rows}:\n    {statement}\nreturn out\n")

    assert complete
    assert ("hbm = nl.ndarray" in text) == (expected is not None)
    if expected is not None:
        np.testing.assert_allclose(run(text, tmp_path), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "statement", ["t[b:b + 1, 0:8] = nl.load(x[b:b + 1, 0:8])", "t[b:b + 1, 0:8] = t[0:1, 0:8] * 2"]
)
def test_a_result_in_a_row_that_a_loop_counts_is_left(statement):
    text, complete = migrated(f"for b in nl.static_range(64):\n    {statement}\nreturn out\n")

    assert not complete
    assert "start at 0, 32, 64 or 96" in text
