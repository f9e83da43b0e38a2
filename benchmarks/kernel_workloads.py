"""The kernels that `kernels.py` times: arguments, and NumPy programs with the same dtypes between.

`between` names the dtypes of what is neither read nor returned, on both sides alike. The NumPy
programs are what a NumPy user would write; they compute in float32 and round where `between` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nki_dtypes import STORAGE_DTYPES

Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Workload:
    """A kernel below examples/, its arguments, and the NumPy program that means the same."""

    name: str
    dtype: str
    between: str
    file: str
    kernel: str
    reference: Callable[..., np.ndarray]
    shapes: Shapes
    terms: int
    """Of the longest sum of an element."""
    scale: float = 1.0
    more: dict[str, Any] = field(default_factory=dict)
    narrow: Shapes = field(default_factory=dict)
    """Other shapes of as many instructions and fewer elements, if there are any."""

    def arguments(self, narrow: bool = False) -> dict[str, Any]:
        rng, kind = np.random.default_rng(0), STORAGE_DTYPES[self.dtype]
        shapes = self.shapes | self.narrow if narrow else self.shapes
        arrays = {
            name: (rng.standard_normal(shape, np.float32) * self.scale).astype(kind)
            for name, shape in shapes.items()
        }
        return arrays | self.more

    def check(self, result: np.ndarray) -> None:
        """Both sides are the same program, whose sums may be in another order.

        In float32 each of `terms` additions rounds by at most 2⁻²⁴ of the largest number, as a
        random walk, on both sides: 2 √terms · 2⁻²⁴. In other dtypes a few ulps of the result.
        """
        sums = 2 * self.terms**0.5 * 2.0**-24
        ulp = {"float32": sums, "float16": 2.0**-9, "bfloat16": 2.0**-6}[self.dtype]
        expected = wide(self.reference(**self.arguments()))
        error, largest = np.abs(wide(result) - expected).max(), np.abs(expected).max()
        assert error <= ulp * largest, f"{self.name} {self.dtype}: {error} of {largest}"


def wide(array: np.ndarray) -> np.ndarray:
    """As float32; itself if it is that."""
    return array.astype(np.float32, copy=False)


def matmul(lhs_t: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    return (wide(lhs_t).T @ wide(rhs)).astype(lhs_t.dtype, copy=False)


def softmax(x: np.ndarray) -> np.ndarray:
    full = wide(x)
    exponentials = np.exp(full - full.max(axis=-1, keepdims=True))
    total = exponentials.sum(axis=-1, keepdims=True)
    return (exponentials / total).astype(x.dtype, copy=False)


def rmsnorm(x: np.ndarray, gain: np.ndarray) -> np.ndarray:
    full = wide(x)
    mean_square = np.mean(full * full, axis=-1, keepdims=True)
    inverse = 1 / np.sqrt(mean_square + np.float32(1e-6))
    return (full * inverse * wide(gain)).astype(x.dtype, copy=False)


def rope(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    full, half = wide(x), x.shape[-1] // 2
    a, b = full[..., :half], full[..., half:]
    c, s = wide(cos)[:, None, :], wide(sin)[:, None, :]
    return np.concatenate([a * c - b * s, b * c + a * s], axis=-1).astype(x.dtype, copy=False)


def mlp(x_t: np.ndarray, w1: np.ndarray, w2: np.ndarray) -> np.ndarray:
    return np.maximum(x_t.T @ w1, 0) @ w2


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float) -> np.ndarray:
    scores = np.swapaxes(wide(q), 1, 2) @ wide(k)
    scores *= np.float32(scale)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    total = weights.sum(axis=-1, keepdims=True)
    weighted = wide(weights.astype(v.dtype, copy=False)) @ wide(v)
    return (weighted / total).astype(q.dtype, copy=False)


def _matmuls(dtype: str) -> Iterator[Workload]:
    for n in (512, 1024, 2048):
        yield Workload(
            f"matmul {n}", dtype, "float32", "beta2/matmul.py", "matmul_kernel", matmul,
            {"lhs_t": (n, n), "rhs": (n, n)}, n,
        )  # fmt: skip


def _by_rows(dtype: str) -> Iterator[Workload]:
    yield Workload(
        "softmax 4096x2048", dtype, "float32", "beta2/softmax.py", "softmax_kernel", softmax,
        {"x": (4096, 2048)}, 2048, narrow={"x": (4096, 512)},
    )  # fmt: skip
    yield Workload(
        "rmsnorm 4096x2048", dtype, "float32", "beta2/rmsnorm.py", "rmsnorm_kernel", rmsnorm,
        {"x": (4096, 2048), "gain": (2048,)}, 2048,
        narrow={"x": (4096, 512), "gain": (512,)},
    )  # fmt: skip
    yield Workload(
        "rope b1 h8 s2048 d128", dtype, "float32", "beta2/rope.py", "rope_kernel", rope,
        {"x": (2048, 8, 128), "cos": (2048, 64), "sin": (2048, 64)}, 2,
        narrow={"x": (2048, 2, 128)},
    )  # fmt: skip


def _attentions(dtype: str) -> Iterator[Workload]:
    for n in (512, 2048):
        yield Workload(
            f"attention s{n} d128", dtype,
            "float32" if dtype == "float32" else f"float32, weights {dtype}",
            "beta2/attention.py", "attention_kernel", attention,
            {"q": (1, 128, n), "k": (1, 128, n), "v": (1, n, 128)}, n,
            more={"scale": 128**-0.5},
        )  # fmt: skip


_MLP = Workload(
    "mlp 1024^4", "float32", "float32", "beta2/mlp.py", "mlp_kernel", mlp,
    {"x_t": (1024, 1024), "w1": (1024, 1024), "w2": (1024, 1024)}, 1024,
    scale=0.2,
)  # fmt: skip

WORKLOADS: tuple[Workload, ...] = (
    *(w for dtype in ("float32", "bfloat16", "float16") for w in _matmuls(dtype)),
    *(w for dtype in ("float32", "bfloat16") for w in _by_rows(dtype)),
    _MLP,
    *(w for dtype in ("float32", "bfloat16") for w in _attentions(dtype)),
)
