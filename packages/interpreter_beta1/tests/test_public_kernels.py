"""Public 0.1 kernels of other projects, read from a clone named by NKI_CORPUS.

NKI_CORPUS/aws-neuron/nki-samples is a git clone; files are read at commit c9c0ab0.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from neuroncore.machine.backend import Choice
from nki_beta1 import BACKEND

COMMIT = "c9c0ab0"
TUTORIALS = "src/nki_samples/tutorials"


@pytest.fixture
def read(monkeypatch):
    """A module of the clone by its path, imported with our modules under `neuronxcc`."""
    corpus = os.environ.get("NKI_CORPUS", "")
    if not corpus:
        pytest.skip(
            "NKI_CORPUS is not set: it names a folder with a clone of aws-neuron/nki-samples"
        )
    for name, found in BACKEND.modules(Choice("beta1", "0.1")).items():
        monkeypatch.setitem(sys.modules, name, found)

    def load(path: str) -> Any:
        clone = Path(corpus) / "aws-neuron" / "nki-samples"
        text = subprocess.run(
            ["git", "-C", str(clone), "show", f"{COMMIT}:{path}"],
            check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        module = ModuleType(Path(path).stem)
        module.__file__ = path
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(compile(text, path, "exec"), vars(module))
        return module

    return load


def test_tensor_addition(read, rng):
    a, b = rng.random((2, 256, 1024), dtype=np.float32).astype(np.float16)
    module = read(f"{TUTORIALS}/tensor_addition/tensor_addition_nki_kernels.py")

    np.testing.assert_array_equal(module.nki_tensor_add(a, b), a + b)


def test_spmd_tensor_addition_on_two_cores(read, rng):
    a, b = rng.random((2, 512, 1024), dtype=np.float32).astype(np.float16)
    read(f"{TUTORIALS}/tensor_addition/spmd_tensor_addition_nki_kernels.py")
    module = read(f"{TUTORIALS}/tensor_addition/spmd_multiple_nc_tensor_addition_nki_kernels.py")

    np.testing.assert_array_equal(module.nki_tensor_add_nc2(a, b), a + b)


def test_transpose2d(read):
    a = np.arange(5 * 12, dtype=np.int8).reshape(5, 12)
    module = read(f"{TUTORIALS}/transpose2d/transpose2d_nki_kernels.py")

    expected = a.reshape(5, 3, 4).transpose(0, 2, 1).reshape(5, 12)
    np.testing.assert_array_equal(module.tensor_transpose2D_kernel_(a, (3, 4)), expected)


def test_average_pool2d(read):
    x = np.arange(2 * 6 * 6, dtype=np.float16).reshape(2, 6, 6)
    module = read(f"{TUTORIALS}/average_pool2d/average_pool2d_nki_kernels.py")

    expected = x.astype(np.float64).reshape(2, 3, 2, 3, 2).mean((2, 4))
    np.testing.assert_array_equal(module.tensor_avgpool_kernel(x, 2), expected)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_attention_of_one_tile(version, read, rng):
    q, k, v = rng.standard_normal((3, 128, 128)).astype(np.float32)
    module = read(f"{TUTORIALS}/attention_fwd_performance/attention_kernels.py")

    check_attention(getattr(module, f"attn_fwd_{version}")(q, k, v), q, k, v, 2.0**-24)


@pytest.mark.parametrize(
    ("version", "rounding"),
    [("v3", 2.0**-24), ("v4", 2.0**-24), ("v5", 2.0**-24), ("v6", 2.0**-24), ("v7", 2.0**-9),
     ("v8", 2.0**-9), ("v8a", 2.0**-9), ("v11", 2.0**-9)],
    ids=lambda v: v if isinstance(v, str) else "",
)  # fmt: skip
def test_tiled_attention(version, rounding, read, rng):
    q, k, v = rng.standard_normal((3, 128, 512)).astype(np.float32)
    module = read(f"{TUTORIALS}/attention_fwd_performance/attention_kernels.py")

    check_attention(getattr(module, f"attn_fwd_{version}")(q, k, v), q, k, v, rounding)


def check_attention(result, q, k, v, rounding):
    """Softmax(qᵀk) · vᵀ in float64.

    Scores reach 60 and round at 60 · 128 · 2^-24 each in float32, which is an exponential's
    relative error; values and weights round at `rounding`, and averages stay below max |v|.
    """
    scores = q.astype(np.float64).T @ k
    weights = np.exp(scores - scores.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    tolerance = (60 * 128 * 2.0**-24 + 4 * rounding) * np.abs(v).max()
    np.testing.assert_allclose(
        result.astype(np.float64), weights @ v.astype(np.float64).T, rtol=0, atol=tolerance
    )
