"""Instructions whose operands moved between 0.1 and 0.2 compute what they did."""

from __future__ import annotations

import importlib.util
import textwrap
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import nki_runtime
from nki_migrate.engine.migration import migrate_source
from nki_migrate.settings.request import Request

HEAD = """
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl

@nki.jit
def kernel(x):
    out = nl.ndarray({shape}, dtype={dtype}, buffer=nl.shared_hbm)
"""


def run(path: Path, text: str, x: np.ndarray, **backend) -> np.ndarray:
    path.write_text(text)
    with nki_runtime.use(**backend):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)  # pyrefly: ignore
        spec.loader.exec_module(module)  # pyrefly: ignore
        return np.asarray(module.kernel(x.copy()))


def both(folder: Path, body: str, x: np.ndarray, shape: str, dtype: str) -> tuple:
    body = textwrap.indent(textwrap.dedent(body).strip("\n") + "\nreturn out\n", "    ")
    text = HEAD.format(shape=shape, dtype=dtype) + body
    result = migrate_source(text, "k.py", Request())
    assert [k.complete for k in result.kernels] == [True], result.after
    old = run(folder / "old.py", text, x, backend="beta1")
    return old, run(folder / "new.py", result.after, x, backend="beta2", nki="0.6")


def test_a_shuffle_by_position_has_its_sides_swapped(tmp_path):
    x = np.arange(32 * 8, dtype=np.float32).reshape(32, 8)
    body = """
        tile = nl.load(x[0:32, 0:8])
        shuffled = nl.ndarray((32, 8), dtype=x.dtype, buffer=nl.sbuf)
        nisa.nc_stream_shuffle(tile, shuffled, [31] + list(range(31)))
        nl.store(out, shuffled)
        """

    old, new = both(tmp_path, body, x, "(32, 8)", "x.dtype")

    assert np.array_equal(new, np.roll(x, 1, axis=0))
    assert np.array_equal(old, new)


def test_a_dma_transpose_turns_and_a_copy_casts(tmp_path):
    x = np.arange(32 * 16).reshape(32, 16).astype(ml_dtypes.bfloat16)
    body = """
        tile = nl.load(x[0:32, 0:16])
        wide = nl.ndarray((16, 32), dtype=nl.float32, buffer=nl.sbuf)
        wide[...] = nisa.dma_transpose(tile)
        nl.store(out, wide)
        """

    old, new = both(tmp_path, body, x, "(16, 32)", "nl.float32")

    assert np.array_equal(new, x.astype(np.float32).T)
    assert np.array_equal(old, new)


def test_searches_find_what_they_found(tmp_path):
    x = np.random.default_rng(1).permutation(16 * 64).reshape(16, 64).astype(np.float32)
    body = """
        tile = nl.load(x[0:16, 0:64])
        largest = nisa.max8(src=tile)
        places = nisa.nc_find_index8(data=tile, vals=largest)
        rest = nisa.nc_match_replace8(data=tile, vals=largest, imm=-1.0)
        nl.store(out[0:16, 0:8], largest)
        nl.store(out[0:16, 8:16], nl.copy(places, dtype=nl.float32))
        nl.store(out[0:16, 16:80], rest)
        """

    old, new = both(tmp_path, body, x, "(16, 80)", "x.dtype")

    order = np.argsort(-x, axis=1)[:, :8]
    assert np.array_equal(new[:, :8], np.take_along_axis(x, order, 1))
    assert np.array_equal(new[:, 8:16], order)
    assert np.array_equal(old, new)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_predicated_copy_leaves_the_rest(tmp_path, reverse):
    x = np.arange(16 * 8).reshape(16, 8).astype(np.float32)
    body = f"""
        ip = nl.arange(16)[:, None]
        jf = nl.arange(8)[None, :]
        tile = nl.load(x[ip, jf])
        picked = nl.full((16, 8), fill_value=-1.0, dtype=nl.float32, buffer=nl.sbuf)
        even = nisa.tensor_scalar(tile, nl.less, 40.0, dtype=nl.uint8)
        nisa.tensor_copy_predicated(
            src=tile[ip, jf], dst=picked[ip, jf], predicate=even[ip, jf], reverse_pred={reverse}
        )
        nl.store(out, picked)
        """

    old, new = both(tmp_path, body, x, "(16, 8)", "x.dtype")

    assert np.array_equal(new, np.where((x < 40) != reverse, x, -1))
    assert np.array_equal(old, new)


@pytest.mark.parametrize("change", ["", "ones[...] = nl.copy(tile)", "more = ones\nmore += tile"])
def test_an_identity_is_not_loaded_and_not_changed(tmp_path, change):
    x = np.arange(8 * 8).reshape(8, 8).astype(np.float32)
    body = f"""
tile = nl.load(x[0:8, 0:8])
identity = nl.shared_identity_matrix(n=8, dtype=nl.float32)
ones = nl.load(identity)
{change}
again = nl.load(identity)
nl.store(out, nl.add(again, tile))
"""

    old, new = both(tmp_path, body, x, "(8, 8)", "x.dtype")

    assert np.array_equal(new, x + np.eye(8))
    assert np.array_equal(old, new)


def test_nested_subscripts_are_one(tmp_path):
    x = np.arange(32 * 16).reshape(32, 16).astype(np.float32)
    body = """
        tile = nl.load(x[8:32, 4:16][8:24, 2:10])
        nl.store(out, tile[0:12][0:8, 0:8][0:8, 4:8])
        """

    old, new = both(tmp_path, body, x, "(8, 4)", "x.dtype")

    assert np.array_equal(new, x[16:24, 10:14])
    assert np.array_equal(old, new)
