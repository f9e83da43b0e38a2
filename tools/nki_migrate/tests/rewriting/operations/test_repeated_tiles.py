"""Operations whose tiles are repeated, chosen or gathered: old and new give what NumPy gives."""

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
import numpy as np


def twice(tile):
    return nl.multiply(tile, 2.0)


@nki.jit
def kernel(a, b):
    out = nl.ndarray({}, dtype={}, buffer=nl.shared_hbm)
"""
A = (np.arange(8 * 4 * 6, dtype=np.float32).reshape(8, 4, 6) % 11) - 4
B = (np.arange(8 * 1 * 6, dtype=np.float32).reshape(8, 1, 6) % 5) + 1
ROW = (np.arange(12, dtype=np.float32).reshape(1, 2, 6) % 5) + 1
COLUMN = (np.arange(32, dtype=np.float32).reshape(8, 4, 1) % 7) - 3
WIDE = np.arange(8 * 16, dtype=np.float32).reshape(8, 16) - 60
ROWS = np.array([[2], [0], [1], [2]], np.int32)
THIRD = np.array([[2]], np.int32)
WEIGHT = np.arange(1, 17, dtype=np.float32).reshape(1, 16)


def ran(path: Path, text: str, arrays: tuple[np.ndarray, ...], **backend) -> np.ndarray:
    path.write_text(text)
    with nki_runtime.use(**backend):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)  # pyrefly: ignore
        spec.loader.exec_module(module)  # pyrefly: ignore
        return np.asarray(module.kernel(*(array.copy() for array in arrays)))


def both(folder: Path, shape, body: str, arrays, dtype: str = "nl.float32") -> list[np.ndarray]:
    """What the old and the migrated kernel give; nothing of the latter is left to a person."""
    lines = textwrap.dedent(body).strip("\n") + "\nreturn out\n"
    text = HEAD.format(shape, dtype) + textwrap.indent(lines, "    ")
    result = migrate_source(text, "k.py", Request())
    assert [f.message for f in result.findings if not f.applied and f.severity != "note"] == []
    old = ran(folder / "old.py", text, arrays, backend="beta1")
    return [old, ran(folder / "new.py", result.after, arrays, backend="beta2", nki="0.7")]


LOADED = "x = nl.load(a[0:8, 0:4, 0:6], dtype=nl.float32)\ny = nl.load(b[{}], dtype=nl.float32)\n"


@pytest.mark.parametrize(
    ("index", "operation", "b", "expected"),
    [
        ("0:8, 0:1, 0:6", "x * y", B, A * B),
        ("0:8, 0:1, 0:6", "y - x", B, B - A),
        ("0:8, 0:1, 0:6", "x / y", B, A / B),
        ("0:8, 0:4, 0:1", "nl.maximum(y, x)", COLUMN, np.maximum(COLUMN, A)),
    ],
    ids=["a middle axis", "on the left", "a quotient", "the last axis"],
)
def test_a_tile_is_repeated_along_axes_of_one_element(index, operation, b, expected, tmp_path):
    body = LOADED.format(index) + f"nl.store(out, {operation})"
    for result in both(tmp_path, (8, 4, 6), body, (A, b)):
        np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_two_tiles_are_repeated_along_different_axes(tmp_path):
    body = """
        x = nl.load(a[0:8, 0:4, 0:1], dtype=nl.float32)
        y = nl.load(b[0:1, 0:1, 0:6], dtype=nl.float32)
        nl.store(out, nl.add(x, y))
    """
    b = ROW[:, :1]
    for result in both(tmp_path, (8, 4, 6), body, (COLUMN, b)):
        np.testing.assert_array_equal(result, COLUMN + b)


def test_an_element_is_repeated_over_partitions_and_columns(tmp_path):
    body = "nl.store(out, nl.broadcast_to(nl.load(a[0:1, 0:1]), shape=(8, 16)))"
    for result in both(tmp_path, (8, 16), body, (WIDE, WEIGHT)):
        np.testing.assert_array_equal(result, np.full((8, 16), WIDE[0, 0]))


@pytest.mark.parametrize(
    ("statement", "factor"), [("t[...] = twice(x)", 2), ("t[...] += twice(x)", 3)]
)
def test_what_a_helper_returns_is_assigned_to_a_part(statement, factor, tmp_path):
    body = f"""
        x = nl.load(a[0:8, 0:16])
        t = nl.ndarray((8, 16), dtype=nl.float32, buffer=nl.sbuf)
        t[...] = nl.copy(x)
        {statement}
        nl.store(out, t)
    """
    for result in both(tmp_path, (8, 16), body, (WIDE, WEIGHT)):
        np.testing.assert_array_equal(result, WIDE * factor)


RMS = WIDE / np.sqrt((WIDE.astype(np.float64) ** 2).sum(1, keepdims=True) / 16 + 1e-6)


@pytest.mark.parametrize("epsilon", ["", ", epsilon=1e-6", ", 1e-6"])
def test_rms_norm_is_a_root_and_products(epsilon, tmp_path):
    body = f"""
        x = nl.load(a[0:8, 0:16])
        w = nl.load(b[0:1, 0:16])
        nl.store(out, nl.rms_norm(x, w, 1, 16{epsilon}))
    """
    for result in both(tmp_path, (8, 16), body, (WIDE, WEIGHT)):
        np.testing.assert_allclose(result, RMS * WEIGHT, rtol=2e-6)


def test_rms_norm_of_some_rows_is_of_these_rows(tmp_path):
    body = """
        ip, jf = nl.arange(8)[:, None], nl.arange(16)[None, :]
        w = nl.load(b[0:1, 0:16])
        x = nl.load(a[ip, jf], mask=ip < 5)
        nl.store(out[ip, jf], nl.rms_norm(x, w, 1, 16, mask=ip < 5), mask=ip < 5)
    """
    for result in both(tmp_path, (5, 16), body, (WIDE[:5], WEIGHT)):
        np.testing.assert_allclose(result, (RMS * WEIGHT)[:5], rtol=2e-6)


QUARTERS = WIDE / 4


@pytest.mark.parametrize("function", ["floor", "ceil"])
def test_floor_and_ceil_are_whole_numbers_on_one_side(function, tmp_path):
    body = f"nl.store(out, nl.{function}(nl.load(a[0:8, 0:16]), dtype=nl.int32))"
    for result in both(tmp_path, (8, 16), body, (QUARTERS, WEIGHT), "nl.int32"):
        np.testing.assert_array_equal(result, getattr(np, function)(QUARTERS))


ABOVE = np.arange(16) >= np.arange(8)[:, None]


@pytest.mark.parametrize(
    ("mask", "other", "expected"),
    [
        ("0 * ip + jf < 12", "-1.0", np.where(np.arange(16) < 12, WIDE, -1)),
        ("0 * ip + jf < 12", "y", np.where(np.arange(16) < 12, WIDE, -WIDE)),
        ("jf >= ip", "y", np.where(ABOVE, WIDE, -WIDE)),
        ("(jf >= ip) & (jf < 12)", "y", np.where(ABOVE & (np.arange(16) < 12), WIDE, -WIDE)),
    ],
    ids=["a number", "a rectangle", "a triangle", "both"],
)
def test_a_choice_by_index_tensors_copies_a_part(mask, other, expected, tmp_path):
    body = f"""
        ip, jf = nl.arange(8)[:, None], nl.arange(16)[None, :]
        x = nl.load(a[0:8, 0:16])
        y = nl.multiply(x, -1.0)
        nl.store(out, nl.where({mask}, x, {other}))
    """
    for result in both(tmp_path, (8, 16), body, (WIDE, WEIGHT)):
        np.testing.assert_array_equal(result, expected)


def test_a_choice_repeats_its_smaller_tiles(tmp_path):
    body = """
        x = nl.load(a[0:8, 0:16])
        column = nl.load(a[0:8, 0:1])
        nl.store(out, nl.where(x > column + 3.0, x, column))
    """
    for result in both(tmp_path, (8, 16), body, (WIDE, WEIGHT)):
        np.testing.assert_array_equal(result, np.where(WIDE[:, :1] + 3 < WIDE, WIDE, WIDE[:, :1]))


TABLE = np.arange(3 * 4 * 5, dtype=np.float32).reshape(3, 4, 5)


@pytest.mark.parametrize(
    ("shape", "body", "numbers", "expected"),
    [
        ((4, 5), "nl.store(out, nl.load(a[at[0, 0], :, :]))", THIRD, TABLE[2]),
        ((4, 5), "nl.store(out, nl.load(a[at[0, 0], ip, jf]))", THIRD, TABLE[2]),
        ((4, 5), "part = a[at[0, 0], :, :]\nnl.store(out, nl.load(part))", THIRD, TABLE[2]),
        ((4, 5), "nl.store(out, nl.load(a[1, at[ip, 0], jf]))", ROWS, TABLE[1][ROWS[:, 0]]),
        ((4, 5), "nl.store(out, nl.load(a[at[ip, 0], 3, jf]))", ROWS, TABLE[ROWS[:, 0], 3]),
    ],
    ids=["slices", "indices", "under a name", "rows of a matrix", "rows"],
)
def test_numbers_on_the_device_choose_a_part(shape, body, numbers, expected, tmp_path):
    head = f"""
at = nl.load(b[0:{len(numbers)}, 0:1])
ip, jf = nl.arange(4)[:, None], nl.arange(5)[None, :]
"""
    for result in both(tmp_path, shape, head + body, (TABLE, numbers)):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.filterwarnings("ignore:tensor_copy. src has . partitions and does not start")  # of 0.1
@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ("a[at[0, 0], :, :]", TABLE[2]),
        ("a[at[3, 0], :, :]", TABLE[2]),
        ("a[at[1, 0], :, :]", TABLE[0]),
        ("a[at[ip, 0], 3, jf]", None),
    ],
)
def test_numbers_of_another_dtype_are_copied_to_integers(index, expected, tmp_path):
    body = f"""
        at = nl.load(b[0:4, 0:1], dtype=nl.float32)
        ip, jf = nl.arange(4)[:, None], nl.arange(5)[None, :]
        nl.store(out, nl.load({index}))
    """
    wanted = TABLE[ROWS[:, 0], 3] if expected is None else expected
    for result in both(tmp_path, (4, 5), body, (TABLE, ROWS)):
        np.testing.assert_array_equal(result, wanted)


def test_limits_of_a_dtype_are_literals(tmp_path):
    body = """
        t = nl.full((8, 16), nl.finfo(nl.bfloat16).min, dtype=nl.bfloat16, buffer=nl.sbuf)
        u = nl.full((8, 16), nl.finfo(a.dtype).max, dtype=a.dtype, buffer=nl.sbuf)
        nl.store(out, nl.add(t, u, dtype=nl.float32))
    """
    lowest, highest = np.float32(-3.3895313892515355e38), np.finfo(np.float32).max
    for result in both(tmp_path, (8, 16), body, (WIDE, WEIGHT)):
        np.testing.assert_allclose(result, np.full((8, 16), lowest + highest), rtol=1e-6)


def test_gathered_elements_have_a_column_each(tmp_path):
    body = """
        source, index = nl.load(a[0:16, 0:4]), nl.load(b[0:16, 0:1])
        picked = nisa.local_gather(source, index, 1, 16)
        nl.store(out, picked.reshape((16, 16)))
    """
    source = np.arange(64, dtype=np.float32).reshape(16, 4)
    index = (np.arange(16, dtype=np.uint16) % 4).reshape(16, 1)
    for result in both(tmp_path, (16, 16), body, (source, index)):
        np.testing.assert_array_equal(result, source[:, index[:, 0]])


def test_a_name_that_a_number_had_is_bound_after_it_is_read(tmp_path):
    body = """
        x = nl.load(a[0:8, 0:16], dtype=nl.float32)
        k = 3.0
        k = nl.multiply(x, k)
        level = 2.0
        level = nl.full((8, 16), level, dtype=nl.float32)
        nl.store(out, k + level)
    """
    for result in both(tmp_path, (8, 16), body, (WIDE, WEIGHT)):
        np.testing.assert_array_equal(result, 3 * WIDE + 2)


@pytest.mark.parametrize("rows", [2, 4])
def test_lists_of_tiles_of_two_branches_are_one_list(rows, tmp_path):
    body = """
        n = out.shape[0] // 2
        if n > 1:
            parts = nl.ndarray((2, nl.par_dim(2), 16), dtype=nl.float32, buffer=nl.sbuf)
        else:
            parts = nl.ndarray((2, nl.par_dim(1), 16), dtype=nl.float32, buffer=nl.sbuf)
        for i in nl.static_range(2):
            parts[i, :, :] = nl.load(a[i * n:(i + 1) * n, 0:16], dtype=nl.float32)
            nl.store(out[i * n:(i + 1) * n, 0:16], parts[i, :, :])
    """
    for result in both(tmp_path, (rows, 16), body, (WIDE, WEIGHT)):
        np.testing.assert_array_equal(result, WIDE[:rows])


def test_a_part_of_a_tensor_in_hbm_is_reshaped_as_part_of_the_whole(tmp_path):
    body = """
        k, m, n = a.shape
        rows = a[1].reshape((m // 2, 2 * n))
        nl.store(out, nl.load(rows[0:2, 0:10]))
    """
    for result in both(tmp_path, (2, 10), body, (TABLE, WEIGHT)):
        np.testing.assert_array_equal(result, TABLE[1].reshape(2, 10))


@pytest.mark.parametrize(
    ("shape", "is_too_large"),
    [("(128, 70000)", True), ("(600, nl.par_dim(128), 128)", True), ("(128, 40000)", False)],
)
def test_a_tile_that_sbuf_has_no_room_for_is_reported(shape, is_too_large):
    lines = f"""
        t = nl.ndarray({shape}, dtype=nl.float32, buffer=nl.sbuf)
        for i in nl.affine_range(4):
            t[i] = nl.load(a)
        nl.store(out, t[0])
        return out
    """
    text = HEAD.format((128, 128), "nl.float32") + textwrap.indent(textwrap.dedent(lines), "    ")
    result = migrate_source(text, "k.py", Request())

    messages = [f.message for f in result.findings if not f.applied]
    assert any("more than SBUF has" in m for m in messages) is is_too_large
