"""A matrix product whose left operand is given transposed.

    python examples/gym/matmul.py            a minute's search at real sizes
    python examples/gym/matmul.py --small    some candidates at small ones

Prints times, figures of the search, what was asked of the winner, its schedule and its source.
"""

from __future__ import annotations

import sys

import numpy as np

from nkigym import tune

SPECS = ("bf16[2048, 2048]", "bf16[2048, 2048]")
SMALL = ("bf16[256, 256]", "bf16[256, 1024]")


def matmul(lhs_t: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """lhs_t (K, M), rhs (K, N) → (M, N)."""
    return lhs_t.T @ rhs


if __name__ == "__main__":
    small = "--small" in sys.argv
    print(tune(matmul, *(SMALL if small else SPECS), budget=200 if small else "60s"))
