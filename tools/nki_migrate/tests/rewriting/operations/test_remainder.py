"""Whole numbers on tiles: remainders, index expressions as operands, rows beside slices."""

from __future__ import annotations

import importlib.util
import textwrap
from pathlib import Path

import numpy as np
import pytest

import nki_runtime
from nki_migrate.engine.migration import migrate_source
from nki_migrate.settings.request import Request

HEAD = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a, n):
"""


def kernel(body: str) -> str:
    return HEAD + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")


def migrated(text: str) -> str:
    result = migrate_source(text, "k.py", Request())
    assert [f.message for f in result.findings if not f.applied and f.severity != "note"] == []
    return result.after


def run(path: Path, text: str, a: np.ndarray, n: int, **backend) -> np.ndarray:
    path.write_text(text)
    with nki_runtime.use(**backend):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)  # pyrefly: ignore
        spec.loader.exec_module(module)  # pyrefly: ignore
        return np.asarray(module.kernel(a.copy(), n))


def both(folder: Path, text: str, a: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    old = run(folder / "old.py", text, a, n, backend="beta1")
    return old, run(folder / "new.py", migrated(text), a, n, backend="beta2", nki="0.6")


REMAINDER = """
    out = nl.ndarray((32, 64), dtype=nl.int32, buffer=nl.shared_hbm)
    tile = nl.load(a[0:32, 0:64], dtype=nl.int32)
    nl.store(out, nl.mod(tile, nl.int32(n)))
    return out
"""


@pytest.mark.parametrize("n", [1, 2, 3, 7, 48, 128, 1000, 65537, 1000003])
def test_remainders_are_exact_as_far_as_float32_goes(n, tmp_path):
    random = np.random.default_rng(n)
    most = 2**24 - 2 * n
    a = random.integers(-most, most, (32, 64)).astype(np.int32)
    multiples = random.integers(1 - most // n, most // n, (32, 32)) * n
    a[:, :32] = np.clip(multiples + random.integers(-1, 2, (32, 32)), -most, most)

    old, new = both(tmp_path, kernel(REMAINDER), a, n)

    np.testing.assert_array_equal(old, np.mod(a, n))
    np.testing.assert_array_equal(new, np.mod(a, n))


def test_a_remainder_by_no_positive_number_stops_the_kernel(tmp_path):
    text = migrated(kernel(REMAINDER))

    assert "assert n > 0" in text
    with pytest.raises(AssertionError):
        run(tmp_path / "new.py", text, np.ones((32, 64), np.int32), -3, backend="beta2", nki="0.6")


@pytest.mark.parametrize(
    "call",
    ["nl.mod(tile, 3)", "nl.mod(nl.copy(tile, dtype=nl.int32), 2.5)"],
    ids=["tile", "number"],
)
def test_remainders_that_may_have_fractions_are_left_to_a_human(call):
    text = kernel(f"""
        tile = nl.load(a[0:32, 0:64], dtype=nl.float32)
        rest = {call}
        """)
    result = migrate_source(text, "k.py", Request())

    assert "NKI1236" in {f.rule for f in result.findings if not f.applied}


PICKED = """
    out = nl.ndarray((8, 3), dtype=nl.float32, buffer=nl.shared_hbm)
    ip = nl.arange(8)[:, None]
    rows = nl.subtract(nl.add(ip, nl.int32(n)), 2)
    tile = nl.load(a[rows[ip, 0], 1:4])
    nl.store(out, tile)
    return out
"""


def test_numbers_of_an_index_expression_pick_rows_beside_a_slice(tmp_path):
    a = np.arange(64, dtype=np.float32).reshape(16, 4)

    old, new = both(tmp_path, kernel(PICKED), a, 5)

    np.testing.assert_array_equal(old, a[3:11, 1:4])
    np.testing.assert_array_equal(new, a[3:11, 1:4])
