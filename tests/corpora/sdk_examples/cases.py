"""Every kernel under nki/examples of the public Neuron SDK: its arguments and what to expect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from tests.corpora.sdk_examples import references as ref
from tests.corpora.sdk_examples.references import Expected

BF16 = np.dtype(ml_dtypes.bfloat16)


def normal(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def ramp(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel of a file, on arguments; `rejected`: a part of the error that it must end in."""

    file: str
    kernel: str
    arguments: Callable[[], tuple[Any, ...]]
    reference: Callable[..., Expected | tuple[Expected, ...]] | None
    rejected: str = ""
    target: str = "trn2"

    @property
    def name(self) -> str:
        return f"{self.file}:{self.kernel}"


def _both_columns(x: np.ndarray) -> tuple[Expected, Expected]:
    return ref.even_columns(x), ref.odd_columns(x)


def _matrices(m: int, k: int, n: int, dtype: Any = BF16) -> Callable[[], tuple[np.ndarray, ...]]:
    return lambda: (normal(k, m, dtype=dtype), normal(k, n, dtype=dtype, seed=1))


def _scanned() -> tuple[np.ndarray, ...]:
    """Batch 1, 256 channels, 4 states, 512 steps; A is negative, so that states decay."""
    delta = np.abs(normal(1, 256, 512)) + np.float32(0.1)
    return (
        delta, normal(1, 256, 512, seed=1), -np.abs(normal(256, 4)) - np.float32(0.1),
        normal(1, 4, 512), normal(1, 4, 512, seed=2),
    )  # fmt: skip


_ADD, _EXP = "nki_tensor_add_kernel", "tensor_exp_kernel_"
_MATMULS = "matrix_multiplication/matrix_multiplication_nki_kernels.py"
_MAMBA = "fused_mamba/mamba_nki_kernels.py"
_TWO_HALVES = lambda: (normal(4, 3, dtype=np.float16), normal(4, 3, dtype=np.float16, seed=1))  # noqa: E731


CASES = (
    Case("getting_started_baremetal.py", _ADD, _TWO_HALVES, ref.add),
    Case("getting_started_torch.py", _ADD, _TWO_HALVES, ref.add),
    Case("getting_started_jax.py", _ADD, _TWO_HALVES, ref.add),
    Case("simulate/nki_simulate_example.py", "add_kernel",
         lambda: (normal(128, 512), normal(128, 512, seed=1)), ref.add),
    Case("tensor_addition/tensor_addition_nki_kernels.py", "nki_tensor_add",
         lambda: (normal(256, 1024, dtype=BF16), normal(256, 1024, dtype=BF16, seed=1)), ref.add,
         target="trn1"),
    Case("layout-pass.py", _EXP, lambda: (normal(128, 512, dtype=BF16),), ref.exponential),
    Case("layout-violation.py", _EXP, lambda: (normal(256, 512, dtype=BF16),), None,
         rejected="256 partitions in SBUF"),
    Case("index-case-1.py", "tensor_split_kernel_", lambda: (ramp(4, 5, dtype=BF16),),
         _both_columns),
    Case("index-case-3.py", "tensor_maxpool_kernel_", lambda: (normal(2, 6, 6, dtype=BF16), 2),
         ref.max_pool),
    Case("average_pool2d/average_pool2d_nki_kernels.py", "tensor_avgpool_kernel",
         lambda: (normal(2, 6, 6, dtype=np.float16), 2), ref.mean_pool),
    Case("transpose2d/transpose2d_nki_kernels.py", "tensor_transpose2D_kernel_",
         lambda: (ramp(5, 12, dtype=np.int8), (3, 4)), ref.transposed_rows),
    Case(_MATMULS, "nki_matmul_basic_", _matrices(64, 128, 512), ref.matmul),
    Case(_MATMULS, "nki_matmul_tiled_", _matrices(256, 256, 1024), ref.matmul),
    Case(_MATMULS, "nki_matmul_hoist_load_", _matrices(256, 256, 1024), ref.matmul),
    Case(_MATMULS, "nki_matmul_block_free_dimension_", _matrices(512, 256, 2048), ref.matmul),
    Case(_MATMULS, "nki_matmul_fully_optimized_", _matrices(2048, 1024, 1024), ref.matmul),
    Case(_MAMBA, "mamba_v1", _scanned, ref.state_space),
    Case(_MAMBA, "mamba_v2", _scanned, ref.state_space),
    Case(_MAMBA, "mamba_v3", _scanned, ref.state_space),
)  # fmt: skip

NOT_PYTHON = {
    "layout-dynamic-loop.py": "a bracket is never closed: SyntaxError",
    "layout-loop.py": "`from torch_neuronx import nki_jit`, and the name `i_f` is never bound",
}
"""Files whose kernel no Python runs as published, and why."""
