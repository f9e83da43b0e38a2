"""What 0.1 rounds to a dtype of its own before it is assigned, the new kernel rounds as well.

Arithmetic of 16-bit tiles gives 16-bit results in 0.1, in a tile of any dtype; True and
False count as uint8. Every kernel here agrees bit for bit, or says what is left to a human.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import nki_runtime
from nki_migrate.engine.migration import migrate_source
from nki_migrate.settings.request import Request

INTO_FLOAT32 = """
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np

@nki.jit
def kernel(x):
    out = nl.ndarray((8, 16), dtype=nl.float32, buffer=nl.shared_hbm)
    p = nl.arange(8)[:, None]
    f = nl.arange(16)[None, :]
    a = nl.load(x[0:8, 0:16])
    t = nl.zeros((8, 16), dtype=nl.float32, buffer=nl.sbuf)
    {body}
    nl.store(out, t)
    return out
"""
OF_ITS_OWN = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

@nki.jit
def kernel(x):
    a = nl.load(x[0:8, 0:16], dtype=nl.{dtype})
    t = {body}
    out = nl.ndarray((8, 16), dtype=t.dtype, buffer=nl.shared_hbm)
    nl.store(out, t)
    return out
"""
X = (np.arange(128).reshape(8, 16) % 13 / 3 + 0.1).astype(ml_dtypes.bfloat16)


def run(path: Path, text: str, x: np.ndarray, **backend) -> np.ndarray:
    path.write_text(text)
    with nki_runtime.use(**backend):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)  # pyrefly: ignore
        spec.loader.exec_module(module)  # pyrefly: ignore
        return np.asarray(module.kernel(x.copy()))


def assert_same(folder: Path, text: str, x: np.ndarray) -> None:
    old = run(folder / "old.py", text, x, backend="beta1")
    after = migrate_source(text, "k.py", Request()).after
    assert "TODO(nki-migrate" not in after
    new = run(folder / "new.py", after, x, backend="beta2", nki="0.6", target="trn2")
    assert new.dtype == old.dtype
    np.testing.assert_array_equal(new, old)


@pytest.mark.parametrize(
    "body",
    [
        "t[...] = nl.exp(a)",
        "t[...] = nl.add(a, a)",
        "t[...] = nisa.activation(nl.exp, a, scale=0.3)",
        "t[...] = nisa.tensor_scalar(a, np.multiply, 3.3)",
        "t[0:8, 0:1] = nisa.tensor_reduce(np.add, a, axis=1, keepdims=True)",
        "t[...] = nisa.reciprocal(a)",
        "t[p, f] += nl.exp(a, mask=(f < 9))",
        "t[p, f] = nl.exp(a[p, f], mask=(f < 9))",
        "t[p, f] = nisa.activation(nl.exp, a[p, f], mask=(f < 9))",
        "t[p, f] = nisa.tensor_tensor(a[p, f], a[p, f], op=nl.multiply, mask=(f < 9))",
        "t[p, f] = nl.multiply(a[p, f], a[p, f], mask=(p < 5) & (f < 9))",
        "t[p, f] = nl.exp(a[p, f], mask=(x.shape[0] < 5))",
        "t[p, f] = nl.exp(a[p, f], mask=(x.shape[0] > 5) & (f < 9))",
        "t[0:8, 0:1] = nisa.tensor_reduce(np.add, a[p, f], 1, keepdims=True, mask=(p < 5))",
        "t[0:8, 0:1] = nl.max(a[p, f], axis=1, keepdims=True, mask=(f < 9))",
    ],
)
def test_a_result_of_a_dtype_known_at_run_time_is_rounded_first(body, tmp_path):
    assert_same(tmp_path, INTO_FLOAT32.format(body=body), X)


@pytest.mark.parametrize(
    "body",
    [
        "t[...] = nl.multiply(a, 3)",
        "t[p, 0:1] = nl.max(a, axis=1, keepdims=True, mask=(p < 9 - 4))",
    ],
)
def test_what_cannot_be_rounded_first_is_left_to_a_human(body):
    text = INTO_FLOAT32.format(body=body)

    assert "TODO(nki-migrate NKI1188)" in migrate_source(text, "k.py", Request()).after


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "bool_"])
@pytest.mark.parametrize("body", ["nl.add(a, True)", "False + a", "nl.multiply(a, True)"])
def test_truth_values_count_as_uint8(body, dtype, tmp_path):
    assert_same(tmp_path, OF_ITS_OWN.format(body=body, dtype=dtype), X.astype(np.float32))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_a_remainder_by_true_counts_it_as_uint8(dtype, tmp_path):
    text = OF_ITS_OWN.format(body="nl.mod(a, True)", dtype=dtype)

    assert_same(tmp_path, text, X.astype(np.float32))
