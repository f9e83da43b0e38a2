"""A multi-layer perceptron whose hidden rows are gated by silu.

    python examples/gym/gated_mlp.py            a minute's search at real sizes
    python examples/gym/gated_mlp.py --small    some candidates at small ones

Prints times, figures of the search, what was asked of the winner, its schedule and its source.
"""

from __future__ import annotations

import sys

import numpy as np

from nkigym import tune

SPECS = ("bf16[512, 1024]", "bf16[1024, 4096]", "bf16[1024, 4096]", "bf16[4096, 1024]")
SMALL = ("bf16[128, 256]", "bf16[256, 512]", "bf16[256, 512]", "bf16[512, 256]")


def gated_mlp(x: np.ndarray, gate: np.ndarray, up: np.ndarray, down: np.ndarray) -> np.ndarray:
    """x (M, K), gate and up (K, H), down (H, N) → (M, N)."""
    gated = x @ gate
    return (gated / (1 + np.exp(-gated)) * (x @ up)) @ down


if __name__ == "__main__":
    small = "--small" in sys.argv
    print(tune(gated_mlp, *(SMALL if small else SPECS), budget=200 if small else "60s"))
