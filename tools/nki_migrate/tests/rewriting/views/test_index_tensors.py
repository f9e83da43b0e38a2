"""Index tensors that are chosen by a conditional, against what NumPy selects."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import nki_runtime
from nki_migrate.engine.migration import migrate_source
from nki_migrate.settings.request import Request

KERNEL = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

@nki.jit
def kernel(a, split):
    out = nl.ndarray((8, 16), dtype=a.dtype, buffer=nl.shared_hbm)
    i, j = nl.arange(8)[:, None], nl.arange(16)[None, :]
    {}
    nl.store(out[i, j], tile)
    return out
"""
NAMED = "k = {}\n    tile = nl.load(a[i, k])"
EVERY_SECOND = "j if split else 2 * j"
SHIFTED = "16 + j if split else j"
BOTH = "j if split == 1 else 2 * j + 1"
COLUMNS = {EVERY_SECOND: [slice(0, 32, 2), slice(0, 16)], SHIFTED: [slice(0, 16), slice(16, 32)]}
COLUMNS[BOTH] = [slice(1, 32, 2), slice(0, 16)]


def migrated(body: str):
    return migrate_source(KERNEL.format(body), "k.py", Request())


@pytest.mark.parametrize("split", [0, 1])
@pytest.mark.parametrize("choice", COLUMNS)
@pytest.mark.parametrize("form", [NAMED, "tile = nl.load(a[i, {}])"], ids=["named", "inside"])
def test_a_conditional_of_index_tensors_is_a_conditional_slice(tmp_path, form, choice, split):
    result = migrated(form.format(choice))
    assert [f for f in result.findings if not f.applied] == []
    (tmp_path / "k.py").write_text(result.after)
    a = np.arange(8 * 32, dtype=np.float32).reshape(8, 32)

    with nki_runtime.use(backend="beta2"):
        spec = importlib.util.spec_from_file_location("conditional_kernel", tmp_path / "k.py")
        module = importlib.util.module_from_spec(spec)  # pyrefly: ignore
        spec.loader.exec_module(module)  # pyrefly: ignore
        got = np.asarray(module.kernel(a.copy(), split))

    np.testing.assert_array_equal(got, a[:, COLUMNS[choice][split]])


@pytest.mark.parametrize("choice", ["j if split else 3", "j if split else i"])
def test_index_tensors_of_other_shapes_are_not_a_number(choice):
    result = migrated(NAMED.format(choice))

    (left,) = [f for f in result.findings if not f.applied]
    assert left.message == f"`{choice}` is one of several index tensors"
    assert "tile = nl.load(a[i, k])" in result.after


def test_nothing_is_offered_for_index_tensors_that_stay_for_a_todo():
    first = migrated(NAMED.format("j if split else i"))

    again = migrate_source(first.after, "k.py", Request())

    assert again.after == first.after
    assert [f.message for f in again.findings if f.applied] == []


@pytest.mark.parametrize(
    ("words", "new"),
    [("(8, 1) == i.shape", "(8, 1) == (8, 1)"), ("i.shape[0] == 8", "8 == 8")],
)
def test_the_shape_of_an_index_tensor_is_its_extents(words, new):
    result = migrated(f"assert {words}\n    tile = nl.load(a[i, j])")

    assert f"    assert {new}\n" in result.after
    assert "arange" not in result.after
    assert [f for f in result.findings if not f.applied] == []


def test_a_name_that_an_extent_has_lost_is_not_repeated():
    body = "n = 4\n    k = nl.arange(n)[:, None]\n    n = 5\n    print(k.shape)\n    tile = 1.0"
    result = migrated(body)

    assert "print((n, 1))" not in result.after
