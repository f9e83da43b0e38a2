"""Attention of several heads in bfloat16, softmax in float32; the scores of 128 rows stay on chip.

    python examples/gym/attention.py            a minute's search at real sizes
    python examples/gym/attention.py --small    some candidates at small ones

Prints times, figures of the search, what was asked of the winner, its schedule and its source.
"""

from __future__ import annotations

import sys

import ml_dtypes
import numpy as np

from nkigym import tune

SPECS = ("bf16[8, 2048, 128]", "bf16[8, 2048, 128]", "bf16[8, 2048, 128]")
SMALL = ("bf16[2, 256, 128]", "bf16[2, 256, 128]", "bf16[2, 256, 128]")


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """q, k, v (H, S, D) → (H, S, D)."""
    scores = (q @ k.transpose(0, 2, 1)).astype(np.float32) * np.float32(q.shape[-1] ** -0.5)
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    sums = raised.astype(ml_dtypes.bfloat16) @ v
    return (sums / raised.sum(axis=-1, keepdims=True)).astype(ml_dtypes.bfloat16)


if __name__ == "__main__":
    small = "--small" in sys.argv
    print(tune(attention, *(SMALL if small else SPECS), budget=200 if small else "60s"))
