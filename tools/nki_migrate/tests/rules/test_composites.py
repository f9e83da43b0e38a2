"""Composite functions, transposing loads and masked products give the same numbers as before."""

from __future__ import annotations

import textwrap
from types import ModuleType

import numpy as np
import pytest

import nki_runtime
from nki_migrate.engine.processing import Task, process
from nki_migrate.settings.request import VERSIONS, Request

HEAD = """
import math
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    n, m = x.shape
    out = nl.ndarray((n, m), dtype=nl.float32, buffer=nl.shared_hbm)
    ip, jf = nl.mgrid[0:128, 0:m]
    for t in nl.affine_range({trip}):
        rows = t * 128 + ip < n
        tile = nl.load(x[t * 128 + ip, jf], mask=rows)
"""
TAIL = """
        nl.store(out[t * 128 + ip, jf], value=y, mask=rows)
    return out
"""
TRIPS = {
    "ceil": "math.ceil(n / 128)",
    "up": "(n + 127) // 128",
    "minus": "-(-n // 128)",
    "plus": "n // 128 + 1",
}
BODIES = {
    "softmax": "y = nl.softmax(tile, axis=1)",
    "softmax-last": "y = nl.softmax(tile * 2.0, axis=[-1])",
    "var": "y = tile - nl.var(tile, axis=1)",
    "mean": "y = tile - nl.mean(tile, axis=1, keepdims=True)",
    "upper-bound": "y = nl.copy(tile, mask=(-128 * t - ip + n - 1 >= 0))",
    "upper-bound-mirrored": "y = nl.copy(tile, mask=(n - 1 >= 128 * t + ip))",
}
PRODUCT = """
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((64, 100), dtype=nl.float32, buffer=nl.shared_hbm)
    k, n = nl.mgrid[0:128, 0:512]
    a = nl.load(x[0:128, 0:64])
    b = nl.load(x[k, n], mask=(n < 100))
    acc = nl.zeros((64, 512), dtype=nl.float32, buffer=nl.psum)
    for i in nl.affine_range(2):
        acc += nisa.nc_matmul(a, b, mask=(n < 100))
    ip, jf = nl.mgrid[0:64, 0:512]
    nl.store(out[ip, jf], value=acc, mask=(jf < 100))
    return out
"""
REPLACING = """
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((64, 100), dtype=nl.float32, buffer=nl.shared_hbm)
    m, n = nl.mgrid[0:64, 0:100]
    y = nl.full((64, 100), 7.0, dtype=nl.float32, buffer=nl.{buffer})
    a = nl.load(x[0:128, 0:64])
    b = nl.load(x[0:128, 64:164])
    for i in nl.affine_range(3):
        y[m, n] = nisa.nc_matmul(a, b, mask={mask})
    nl.store(out, value=y)
    return out
"""
MASKS = ["i * 2 < 3", "i > 2", "(n < 60)", "(m < 32)", "(i < 1) & (n < 60)"]
TRANSPOSED = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    nl.store(out, nl.load_transpose2d(x[0:128, 0:64]))
    return out
"""


def check(text: str, x: np.ndarray) -> None:
    """Migrate from the source alone; the kernel is complete and gives the same."""
    result = process(Task("k.py", text.encode(), Request(target=VERSIONS[-1])))
    assert result.error is None
    assert [k.complete for k in result.kernels] == [True], result.after
    with nki_runtime.use(backend="beta1"):
        expected = np.asarray(module_of(text).kernel(x))
    with nki_runtime.use(nki=VERSIONS[-1]):
        found = np.asarray(module_of(result.after).kernel(x))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def module_of(text: str) -> ModuleType:
    module = ModuleType("k")
    exec(compile(text, "k.py", "exec"), module.__dict__)
    return module


@pytest.mark.parametrize("trip", ["ceil", "minus"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_rows_of_partly_filled_tiles(body, trip):
    text = HEAD.format(trip=TRIPS[trip]) + textwrap.indent(body, " " * 8) + TAIL

    check(text, np.random.default_rng(0).standard_normal((200, 40), dtype=np.float32))


@pytest.mark.parametrize("trip", TRIPS)
def test_a_bound_stays_for_every_spelling_of_the_number_of_tiles(trip):
    text = HEAD.format(trip=TRIPS[trip]) + " " * 8 + "y = nl.exp(tile)" + TAIL

    for rows in (128, 200, 256, 300):
        check(text, np.random.default_rng(0).standard_normal((rows, 8), dtype=np.float32))


def test_a_masked_product_is_cut_on_its_operands():
    check(PRODUCT, np.random.default_rng(0).standard_normal((128, 512), dtype=np.float32))


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("buffer", ["sbuf", "psum"])
def test_a_masked_product_replaces_what_the_mask_selects(buffer, mask):
    text = REPLACING.format(mask=mask, buffer=buffer)

    check(text, np.random.default_rng(0).standard_normal((128, 164), dtype=np.float32))


def test_a_transposing_load_is_a_load_and_a_transpose():
    check(TRANSPOSED, np.random.default_rng(0).standard_normal((128, 64), dtype=np.float32))
