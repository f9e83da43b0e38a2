"""A sum, which is nothing but loads and stores.

    python examples/gym/tensor_add.py            a minute's search at real sizes
    python examples/gym/tensor_add.py --small    some candidates at small ones

Prints times, figures of the search, what was asked of the winner, its schedule and its source.
"""

from __future__ import annotations

import sys

import numpy as np

from nkigym import tune

SPECS = ("f32[4096, 2048]", "f32[4096, 2048]")
SMALL = ("f32[512, 256]", "f32[512, 256]")


def tensor_add(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x, y (P, F) → (P, F)."""
    return x + y


if __name__ == "__main__":
    small = "--small" in sys.argv
    print(tune(tensor_add, *(SMALL if small else SPECS), budget=200 if small else "60s"))
