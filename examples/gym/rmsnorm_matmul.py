"""Rows are normalised, scaled and multiplied with a matrix; nothing between goes through HBM.

    python examples/gym/rmsnorm_matmul.py            a minute's search at real sizes
    python examples/gym/rmsnorm_matmul.py --small    some candidates at small ones

Prints times, figures of the search, what was asked of the winner, its schedule and its source.
"""

from __future__ import annotations

import sys

import numpy as np

from nkigym import tune

SPECS = ("bf16[2048, 2048]", "bf16[2048]", "bf16[2048, 2048]")
SMALL = ("bf16[256, 256]", "bf16[256]", "bf16[256, 512]")


def rmsnorm_matmul(x: np.ndarray, gain: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """x (M, K), gain (K), weights (K, N) → (M, N)."""
    scale = np.sqrt((x * x).mean(axis=1, keepdims=True) + np.float32(1e-6))
    return (x / scale * gain) @ weights


if __name__ == "__main__":
    small = "--small" in sys.argv
    print(tune(rmsnorm_matmul, *(SMALL if small else SPECS), budget=200 if small else "60s"))
