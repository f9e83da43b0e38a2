"""Accesses of more than five dimensions, sums over loops: converted or left, the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

import nki_runtime
from nki_migrate.engine.migration import migrate_source
from nki_migrate.settings.request import Request

HEAD = """\
import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((4, 8, 8, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    a = nl.load(x[0:4, 0:8, 0:8, 0:8], dtype=nl.float32)
    t = nl.ndarray((4, 8, 8, 8), dtype=nl.float32, buffer=nl.sbuf)
"""
TAIL = "    nl.store(out, t)\n    return out\n"
GRID = """
p, ix, jx, kx, iy, jy, ky = nl.mgrid[0:4, 0:2, 0:2, 0:2, 0:4, 0:4, 0:4]
i, j, k = 2 * iy + ix, 2 * jy + jx, 2 * ky + kx
"""
SPREAD = GRID + "t[p, i, j, k] = 2 * a[p, iy + 4 * ix, j, k] + a[p, i, 4 * jx + jy, k]"
STORED = """
for n in nl.affine_range(2):
    t[0:4, n, 0:8, 0:8] = 1.0
    for m in nl.affine_range(3):
        b = nl.load(x[0:4, m, 0:8, 0:8])
        t[0:4, n, 0:8, 0:8] = nl.loop_reduce(b, np.maximum, loop_indices=[m])
for n in nl.affine_range(6):
    t[0:4, n + 2, 0:8, 0:8] = nl.load(x[0:4, n, 0:8, 0:8])
"""
ZEROS = """
t = nl.zeros((4, 8, 8, 8), dtype=nl.float32, buffer=nl.sbuf)
for n in nl.affine_range(3):
    b = nl.load(x[0:4, 0:8, n, 0:8])
    t[0:4, 0:8, 1, 0:8] = nl.loop_reduce(b, np.add, loop_indices=[n])
"""


def _old(lines):
    return HEAD + "".join(f"    {line}\n" for line in lines.strip().split("\n")) + TAIL


def _run(text, folder, name, **choice):
    file = folder / f"{name}.py"
    file.write_text(text)
    namespace: dict = {"__name__": name}
    x = np.random.default_rng(0).integers(-3, 4, (4, 8, 8, 8)).astype(np.float32)
    with nki_runtime.use(**choice, shadow=True):
        exec(compile(text, str(file), "exec"), namespace)
        return np.asarray(namespace["kernel"](x))


@pytest.mark.parametrize("lines", [SPREAD, STORED, ZEROS], ids=["grid", "set before", "zeros"])
def test_old_and_new_give_the_same(lines, tmp_path):
    result = migrate_source(_old(lines), "k.py", Request())
    assert "TODO" not in result.after

    before = _run(result.before, tmp_path, "old", backend="beta1")
    after = _run(result.after, tmp_path, "new", backend="beta2", nki="0.6")

    np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize(
    "statement",
    ["t[p, i, j, k] = t[p, i, j, k] + a[p, i, j, k]", "t[p, iy + ix, j, k] = 2 * a[p, i, j, k]"],
    ids=["it reads what it writes", "an element may be written twice"],
)
def test_loops_that_might_change_the_result_are_left(statement):
    result = migrate_source(_old(GRID + statement), "k.py", Request())

    assert "NKI1153" in {f.rule for f in result.findings if not f.applied}


def test_a_sum_into_what_may_hold_nothing_is_left():
    lines = ZEROS.replace("nl.zeros", "nl.ndarray")

    result = migrate_source(_old(lines), "k.py", Request())

    assert "NKI1253" in {f.rule for f in result.findings if not f.applied}


@pytest.mark.parametrize("is_read", [False, True])
def test_a_one_dimensional_allocation_that_nothing_reads_goes(is_read):
    lines = "row = nl.ndarray((4,), dtype=nl.float32, buffer=nl.sbuf)\n"
    lines += "print(row)\n" * is_read + "row = nl.load(x[0:4, 0, 0, 0])"
    result = migrate_source(_old(lines), "k.py", Request())

    left = [f.rule for f in result.findings if not f.applied]
    assert left == (["NKI1149"] if is_read else [])
    assert ("nl.ndarray((4,)" in result.after) is is_read
