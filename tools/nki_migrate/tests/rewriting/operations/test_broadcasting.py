"""Tiles that 0.1 repeats over partitions: old and new kernel give what NumPy gives."""

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
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt


@nki.jit
def kernel({}):
"""


def kernel(body: str, parameters: str = "a, b") -> str:
    return HEAD.format(parameters) + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")


def migrated(text: str) -> str:
    result = migrate_source(text, "k.py", Request())
    assert [f.message for f in result.findings if not f.applied and f.severity != "note"] == []
    return result.after


def run(path: Path, text: str, arrays: tuple[np.ndarray, ...], **backend) -> np.ndarray:
    path.write_text(text)
    with nki_runtime.use(**backend):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)  # pyrefly: ignore
        spec.loader.exec_module(module)  # pyrefly: ignore
        return np.asarray(module.kernel(*(array.copy() for array in arrays)))


MADE_ROW = """
    out = nl.ndarray({shape}, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(a[0:{p}, 0:16], dtype=nl.float32)
    row = nl.subtract(nl.load(b[0:1, 0:16], dtype=nl.float32), 1.0)
    nl.store(out, nl.multiply(tile, {row}))
    return out
"""
SYMBOLIC = """
    p, f = a.shape
    out = nl.ndarray((p, f), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(a[0:p, 0:f], dtype=nl.float32)
    row = nl.subtract(nl.load(b[0:1, 0:f], dtype=nl.float32), 1.0)
    nl.store(out, tile * nl.broadcast_to(row, shape=(p, f)))
    return out
"""
OTHER_ROW = """
    out = nl.ndarray((8, 16), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(a[0:8, 0:16], dtype=nl.float32)
    tall = nl.load(a[0:128, 0:16], dtype=nl.float32)
    nl.store(out, nl.add(tile, tall[64:65, 0:16]))
    return out
"""
FILLED_IN_PART = """
    out = nl.ndarray((8, 12), dtype=nl.float32, buffer=nl.shared_hbm)
    ip, jf = nl.arange(8)[:, None], nl.arange(16)[None, :]
    one = nl.arange(1)[:, None]
    tile = nl.load(a[ip, jf], mask=jf < 12, dtype=nl.float32)
    row = nl.load(b[one, jf], mask=jf < 12, dtype=nl.float32)
    scaled = nl.multiply(tile, row.broadcast_to((8, 16)), mask=jf < 12)
    nl.store(out[ip, jf], scaled, mask=jf < 12)
    return out
"""
POINT = """
    out = nl.ndarray((8, 16), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(a[0:8, 0:16], dtype=nl.float32)
    point = nl.load(b[0:1, 0:1], dtype=nl.float32)
    nl.store(out, nl.subtract({}))
    return out
"""
CROSS = """
    out = nl.ndarray((8, 16), dtype=nl.float32, buffer=nl.shared_hbm)
    column = nl.load(a[0:8, 0:1], dtype=nl.float32)
    row = nl.load(b[0:1, 0:16], dtype=nl.float32)
    nl.store(out, nl.subtract({}))
    return out
"""

A = np.arange(640, dtype=np.float32).reshape(40, 16) % 7 + 1
LONG = np.arange(128 * 16, dtype=np.float32).reshape(128, 16) % 5
B = np.arange(16, dtype=np.float32).reshape(1, 16) % 3 + 1
SMALL = A[:8]
SIZES = {"p": 8, "shape": "(8, 16)", "row": "row"}


@pytest.mark.parametrize(
    ("text", "arrays", "expected"),
    [
        (MADE_ROW.format(**SIZES), (SMALL, B), SMALL * (B - 1)),
        (MADE_ROW.format(p=40, shape="(40, 16)", row="row"), (A, B), A * (B - 1)),
        (MADE_ROW.format(p=128, shape="(128, 16)", row="row"), (LONG, B), LONG * (B - 1)),
        (SYMBOLIC, (A, B), A * (B - 1)),
        (SYMBOLIC, (LONG, B), LONG * (B - 1)),
        (OTHER_ROW, (LONG, B), LONG[:8] + LONG[64]),
        (FILLED_IN_PART, (SMALL, B), (SMALL * B)[:, :12]),
        (POINT.format("tile, point"), (SMALL, B), SMALL - B[0, 0]),
        (POINT.format("point, tile"), (SMALL, B), B[0, 0] - SMALL),
        (CROSS.format("column, row"), (SMALL, B), SMALL[:, :1] - B),
        (CROSS.format("row, column"), (SMALL, B), B - SMALL[:, :1]),
    ],
    ids=[
        *("one quadrant", "more than a quadrant", "four quadrants", "any number", "all partitions"),
        *("a row of a tile", "a row filled in part", "one element right", "one element left"),
        *("column and row", "row and column"),
    ],
)
def test_old_and_new_give_what_numpy_gives(text, arrays, expected, tmp_path):
    text = kernel(text)
    old = run(tmp_path / "old.py", text, arrays, backend="beta1")
    new = run(tmp_path / "new.py", migrated(text), arrays, backend="beta2", nki="0.6")

    np.testing.assert_array_equal(old, expected)
    np.testing.assert_array_equal(new, expected)


SCATTERED = """
    n, f = cache.shape
    ip, jf = nl.arange(8)[:, None], nl.arange(16)[None, :]
    at = nl.load(places[0:8, 0:1])
    rows = nl.load(a[0:8, 0:16])
    nl.store(cache[at[ip, 0], jf], value=rows[ip, jf])
    {}
"""


@pytest.mark.parametrize("mark", ["nt.mutable_tensor", "nt.tensor[nt.mutable]"])
def test_a_cache_that_is_changed_and_returned_stays_so(mark, tmp_path):
    text = kernel(SCATTERED.format("return cache"), f"a, cache: {mark}, places")
    places = np.array([[3], [1], [4], [15], [9], [2], [6], [5]], np.int32)
    cache = np.zeros((20, 16), np.float32)
    expected = cache.copy()
    expected[places[:, 0]] = SMALL
    arrays = (SMALL, cache, places)

    old = run(tmp_path / "old.py", text, arrays, backend="beta1")
    new = run(tmp_path / "new.py", migrated(text), arrays, backend="beta2", nki="0.6")

    assert "cache: nt.tensor, places" in migrated(text)
    np.testing.assert_array_equal(old, expected)
    np.testing.assert_array_equal(new, expected)


@pytest.mark.parametrize(
    ("parameters", "ending"),
    [
        ("a, cache: nt.mutable_tensor, places", "return a"),
        ("a, cache: nt.mutable_tensor, places", "cache = cache.reshape((16, 20))\nreturn cache"),
        ("a, cache, places", "return cache"),
        ("a, cache: nt.mutable_tensor, places", "if n > 3:\n    return a\nreturn cache"),
    ],
    ids=["not returned", "bound anew", "not marked", "not always returned"],
)
def test_other_stores_to_parameters_are_left_to_a_human(parameters, ending):
    text = kernel(SCATTERED.replace("    {}\n", textwrap.indent(ending, "    ")), parameters)
    result = migrate_source(text, "k.py", Request())

    assert "NKI1117" in {f.rule for f in result.findings if not f.applied}
    assert not result.kernels[0].complete


STILL_READ = """
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(a[0:128, 0:64], dtype=nl.float32)
    row = nl.load(b[0:1, 0:64], dtype=nl.float32)
    scaled = nl.multiply(tile, row.broadcast_to((128, 64)))
    {}
    nl.store(out, scaled)
    return out
"""


@pytest.mark.parametrize(
    "use",
    [
        "scaled = nl.sort(row.broadcast_to((128, 64)))",
        "scaled = scaled + nl.sort(row)",
        "print(row)",
        "row.shape",
    ],
)
def test_a_row_is_loaded_where_something_left_as_it_was_reads_it(use):
    result = migrate_source(kernel(STILL_READ.format(use)), "k.py", Request())

    assert "dma_copy(dst=row, src=b[0:1, 0:64])" in result.after
    assert use in result.after


def test_a_row_that_only_broadcasts_read_is_loaded_into_every_partition():
    after = migrated(kernel(STILL_READ.format("pass")))

    assert "dst=row," not in after
    assert "dst=row_bcast, src=b.ap(" in after


NAMED = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x, y):
    out = nl.ndarray((128, 8), dtype=x.dtype, buffer=nl.shared_hbm)
    row = nl.load(x[0:1, 0:8])
    wide = {}
    nl.store(out, value=wide)
    return out
"""


@pytest.mark.parametrize(
    "call", ["row.broadcast_to((128, 8))", "nl.broadcast_to(row, shape=(128, 8))"]
)
def test_a_repeated_row_is_stored_under_the_name_of_the_statement(call):
    result = migrate_source(NAMED.format(call), "kernel.py", Request())

    assert "nisa.dma_copy(dst=wide, src=x.ap(" in result.after
    assert "wide =" not in result.after.replace("wide = nl.ndarray(", "")
    assert "tensor_copy" not in result.after


LEFT = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(p, q):
    out = nl.ndarray((64, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    i, j, k = nl.arange(64)[:, None], nl.arange(p.shape[1])[None, :], nl.arange(q.shape[1])[None, :]
    nl.store(out, value=nl.add({left}, {right}))
    return out
"""


@pytest.mark.parametrize(
    ("left", "right", "message", "todo"),
    [
        ("nl.load(p)", "nl.load(q)", "`p` and `q`", "`p.shape == q.shape`"),
        (
            "nl.load(p[i, j])", "nl.load(q[i, k])",
            "a tile of (64, p.shape[1]) and a tile of (64, q.shape[1])",
            "`(64, p.shape[1]) == (64, q.shape[1])`",
        ),
    ],
)  # fmt: skip
def test_temporaries_are_named_after_what_they_hold(left, right, message, todo):
    text = LEFT.format(left=left, right=right)

    result = migrate_source(text, "kernel.py", Request())

    assert f"the shapes of {message} are not known to be equal" in [
        f.message for f in result.findings
    ]
    assert f"NKI1220): {todo} is not known; --unsafe-fixes assumes it" in result.after
