"""Products are added in PSUM to what a tile holds, however it came there (trap T4).

From 0.2 on the first product at a place replaces what is there.
"""

from __future__ import annotations

import importlib.util
import textwrap
from pathlib import Path

import numpy as np
import pytest

import nki_runtime
from nki_migrate.engine.migration import migrate_source
from nki_migrate.settings.request import Request

WORDS = {
    "ZEROS": "nl.zeros((nl.par_dim(16), 16), dtype=nl.float32, buffer=nl.psum)",
    "BARE": "nl.ndarray((nl.par_dim(16), 16), dtype=nl.float32, buffer=nl.psum)",
    "PRODUCT": "nisa.nc_matmul(a, b)",
}
IMPORTS = """
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
"""
HELPERS = {
    "add": """
def add(t, a, b):
    t[...] += PRODUCT
""",
    "put": """
def put(t, a, b):
    t[...] = PRODUCT
""",
    "fill": """
def fill(t, a):
    t[...] = nl.multiply(a, 3.0)
""",
    "add_to_all": """
def add_to_all(tiles, a, b):
    for t in tiles:
        t[...] += PRODUCT
""",
    "filled": """
def filled(a):
    t = BARE
    t[...] = nl.copy(a)
    return t
""",
}
HEAD = """
@nki.jit
def kernel(x, y):
    out = nl.ndarray((2, 16, 16), dtype=nl.float32, buffer=nl.shared_hbm)
    a = nl.load(x)
    b = nl.load(y)
"""
STORED = """
nl.store(out[0], value=nl.copy(t))
nl.store(out[1], value=nl.copy(t))
"""
X, Y = np.random.default_rng(14).integers(-4, 5, (2, 16, 16)).astype(np.float32)
XY = X.T @ Y

# What a sum starts from → the kernel, and what its tile holds in the end
KERNELS = {
    "a fill that is not zero": (
        """
        t = nl.full((nl.par_dim(16), 16), 3.0, dtype=nl.float32, buffer=nl.psum)
        for i in nl.affine_range(2):
            t[...] += PRODUCT
        """,
        3 + 2 * XY,
    ),
    "a fill of zero by its number": (
        """
        t = nl.full((nl.par_dim(16), 16), 0.0, dtype=nl.float32, buffer=nl.psum)
        for i in nl.affine_range(2):
            t[...] += PRODUCT
        """,
        2 * XY,
    ),
    "ones assigned to a tile": (
        """
        t = ZEROS
        t[...] = nl.ones((nl.par_dim(16), 16), dtype=nl.float32, buffer=nl.psum)
        t[...] += PRODUCT
        """,
        1 + XY,
    ),
    "a branch further down comes first": (
        """
        t = BARE
        for i in nl.static_range(3):
            if i > 0:
                t[...] += PRODUCT
            else:
                t[...] = nl.multiply(a, 2.0)
        """,
        2 * X + 2 * XY,
    ),
    "a number is given further down in the loop": (
        """
        t = ZEROS
        for i in nl.static_range(3):
            if i != 0:
                t[...] += PRODUCT
            if i == 0:
                t[...] = 5.0
        """,
        5 + 2 * XY,
    ),
    "a helper adds to what its caller gave": (
        """
        t = ZEROS
        t[...] = nl.copy(a)
        add(t, a, b)
        """,
        X + XY,
    ),
    "a helper adds to a fresh tile twice": (
        """
        t = ZEROS
        add(t, a, b)
        add(t, a, b)
        """,
        2 * XY,
    ),
    "a helper adds after its caller did": (
        """
        t = ZEROS
        t[...] += PRODUCT
        add(t, a, b)
        """,
        2 * XY,
    ),
    "a helper replaces what a loop left": (
        """
        t = ZEROS
        for i in nl.static_range(3):
            put(t, a, b)
        """,
        XY,
    ),
    "a helper replaces what its caller had": (
        """
        t = ZEROS
        t[...] += PRODUCT
        put(t, a, b)
        """,
        XY,
    ),
    "a helper gives what is added to": (
        """
        t = BARE
        fill(t, a)
        t[...] += PRODUCT
        """,
        3 * X + XY,
    ),
    "another name gives it": (
        """
        t = ZEROS
        u = t
        u[...] = nl.copy(a)
        t[...] += PRODUCT
        """,
        X + XY,
    ),
    "one of two tiles, by a branch": (
        """
        if True:
            t = BARE
            t[...] = nl.copy(a)
        else:
            t = ZEROS
        t[...] += PRODUCT
        """,
        X + XY,
    ),
    "the tile of the iteration before": (
        """
        t = ZEROS
        for i in nl.static_range(2):
            t[...] += PRODUCT
            held = nl.copy(t)
            t = BARE
            t[...] = nl.multiply(held, 2.0)
        """,
        6 * XY,
    ),
    "a function inside adds": (
        """
        t = BARE
        def more():
            t[...] += PRODUCT
        t[...] = nl.copy(a)
        more()
        more()
        """,
        X + 2 * XY,
    ),
    "a function inside gives": (
        """
        t = ZEROS
        def give():
            t[...] = nl.copy(a)
        give()
        t[...] += PRODUCT
        """,
        X + XY,
    ),
    "a reshaped name gives it": (
        """
        t = ZEROS
        u = t.reshape((16, 16))
        u[...] = nl.copy(a)
        t[...] += PRODUCT
        """,
        X + XY,
    ),
    "the sum is scaled between": (
        """
        t = ZEROS
        for i in nl.sequential_range(3):
            t[...] += PRODUCT
            t[...] = nl.multiply(t, 2.0)
        """,
        14 * XY,
    ),
    "what a helper returned": (
        """
        t = filled(a)
        t[...] += PRODUCT
        """,
        X + XY,
    ),
    "tiles in a list": (
        """
        t = ZEROS
        t[...] = nl.copy(a)
        tiles = [t]
        for m in range(1):
            tiles[m][...] += PRODUCT
        """,
        X + XY,
    ),
}
# The shape of these tiles is unknown: a human decides
LEFT_TO_HUMANS = {
    "tiles in a list for a helper": (
        """
        t = ZEROS
        t[...] = nl.copy(a)
        add_to_all([t], a, b)
        """,
        X + XY,
    ),
}
# Zeros first, then the product
ZEROS_STAY = {
    "zeros are read before the product": """
        t = ZEROS
        nl.store(out[0], value=nl.copy(t))
        t[...] += PRODUCT
        nl.store(out[1], value=nl.copy(t))
        """,
    "the product is made in one iteration only": """
        for i in nl.static_range(2):
            t = ZEROS
            if i == 1:
                t[...] += PRODUCT
            nl.store(out[i], value=nl.copy(t))
        """,
    "a loop of no iteration": """
        for i in nl.static_range(2):
            t = ZEROS
            for k in nl.static_range(i):
                t[...] += PRODUCT
            nl.store(out[i], value=nl.copy(t))
        """,
    "an iteration that goes on before the product": """
        for i in nl.static_range(2):
            t = ZEROS
            for k in nl.static_range(1):
                if i == 0:
                    continue
                t[...] += PRODUCT
            nl.store(out[i], value=nl.copy(t))
        """,
}
ONES_IN_BLOCKS = {
    "one after the other": """
        t = nl.ones((2, nl.par_dim(16), 16), dtype=nl.float32, buffer=nl.psum)
        for k in nl.affine_range(2):
            for m in nl.affine_range(2):
                t[m] += PRODUCT
        for m in nl.affine_range(2):
            nl.store(out[m], value=nl.copy(t[m]))
        """,
    "each in its place": """
        t = nl.ones((2, nl.par_dim(16), 16), dtype=nl.float32, buffer=nl.psum)
        for m in nl.affine_range(2):
            t[m] += PRODUCT
            t[m] += PRODUCT
            nl.store(out[m], value=nl.copy(t[m]))
        """,
}
LEFT, TOP = XY * (np.arange(16) < 8), XY * (np.arange(16) < 8)[:, None]
PARTS = {
    "half of the columns": (
        """
        t = ZEROS
        t[:, 0:8] += nisa.nc_matmul(a, b[:, 0:8])
        """,
        LEFT,
    ),
    "half of the columns by index tensors": (
        """
        ip, jf = nl.arange(16)[:, None], nl.arange(8)[None, :]
        t = ZEROS
        t[ip, jf] += nisa.nc_matmul(a, b[ip, jf])
        """,
        LEFT,
    ),
    "half of the rows, in a loop": (
        """
        t = ZEROS
        for k in nl.affine_range(2):
            t[0:8, :] += nisa.nc_matmul(a[:, 0:8], b)
        """,
        2 * TOP,
    ),
    "both halves in a loop": (
        """
        t = ZEROS
        for j in nl.affine_range(2):
            t[:, nl.ds(j * 8, 8)] += nisa.nc_matmul(a, b[:, nl.ds(j * 8, 8)])
        """,
        XY,
    ),
    "half of them, then all": (
        """
        t = ZEROS
        t[:, 0:8] += nisa.nc_matmul(a, b[:, 0:8])
        t[...] += PRODUCT
        """,
        XY + LEFT,
    ),
    "half of them assigned": (
        """
        t = ZEROS
        t[:, 0:8] = nisa.nc_matmul(a, b[:, 0:8])
        """,
        LEFT,
    ),
    "half of a block": (
        """
        blocks = nl.zeros((2, nl.par_dim(16), 16), dtype=nl.float32, buffer=nl.psum)
        for m in nl.affine_range(2):
            blocks[m, 0:16, 0:8] += nisa.nc_matmul(a, b[:, 0:8])
        t = nl.ndarray((nl.par_dim(16), 16), dtype=nl.float32, buffer=nl.sbuf)
        t[...] = nl.copy(blocks[1])
        """,
        LEFT,
    ),
}


def source(*parts: str) -> str:
    body = "\n".join(textwrap.dedent(p).strip("\n") for p in parts)
    helpers = "".join(text for name, text in HELPERS.items() if f"{name}(" in body)
    text = IMPORTS + helpers + HEAD + textwrap.indent(f"{body}\nreturn out\n", "    ")
    for word, meaning in WORDS.items():
        text = text.replace(word, meaning)
    return text


def run(path: Path, text: str, **backend) -> np.ndarray:
    path.write_text(text)
    with nki_runtime.use(**backend):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)  # pyrefly: ignore
        spec.loader.exec_module(module)  # pyrefly: ignore
        return np.asarray(module.kernel(X.copy(), Y.copy()))


def run_both(folder: Path, text: str, **options) -> list[np.ndarray]:
    """What the old and the new kernel give; the new one has to be complete."""
    result = migrate_source(text, "k.py", Request(**options))
    assert "TODO(nki-migrate" not in result.after
    new = {"backend": "beta2", "nki": "0.6", "target": "trn2"}
    return [
        run(folder / "old.py", text, backend="beta1"),
        run(folder / "new.py", result.after, **new),
    ]


@pytest.mark.parametrize("name", KERNELS)
def test_a_product_is_added_to(name, tmp_path):
    body, expected = KERNELS[name]

    for result in run_both(tmp_path, source(body, STORED)):
        np.testing.assert_array_equal(result, np.stack([expected, expected]))


@pytest.mark.parametrize("name", LEFT_TO_HUMANS)
def test_a_product_is_added_by_request_to(name, tmp_path):
    body, expected = LEFT_TO_HUMANS[name]
    text = source(body, STORED)

    assert "TODO(nki-migrate" in migrate_source(text, "k.py", Request()).after
    for result in run_both(tmp_path, text, unsafe_fixes=True):
        np.testing.assert_array_equal(result, np.stack([expected, expected]))


@pytest.mark.parametrize("name", ZEROS_STAY)
def test_zeros_stay_where(name, tmp_path):
    for result in run_both(tmp_path, source(ZEROS_STAY[name])):
        np.testing.assert_array_equal(result, np.stack([0 * XY, XY]))


@pytest.mark.parametrize("name", ONES_IN_BLOCKS)
def test_products_are_added_to_ones_in_blocks(name, tmp_path):
    for result in run_both(tmp_path, source(ONES_IN_BLOCKS[name])):
        np.testing.assert_array_equal(result, np.stack([1 + 2 * XY, 1 + 2 * XY]))


@pytest.mark.parametrize("unsafe", [False, True], ids=["safe", "unsafe"])
@pytest.mark.parametrize("name", PARTS)
def test_zeros_stay_beside_a_product_of(name, unsafe, tmp_path):
    """No edit assumes that products fill a tile, where a slice says how much of it they do."""
    body, expected = PARTS[name]

    for result in run_both(tmp_path, source(body, STORED), unsafe_fixes=unsafe):
        np.testing.assert_array_equal(result, np.stack([expected, expected]))
