"""Softmax over rows.

    python examples/gym/softmax.py            a minute's search at real sizes
    python examples/gym/softmax.py --small    some candidates at small ones

Prints times, figures of the search, what was asked of the winner, its schedule and its source.
"""

from __future__ import annotations

import sys

import numpy as np

from nkigym import tune

SPECS = ("f32[4096, 2048]",)
SMALL = ("f32[512, 256]",)


def softmax(x: np.ndarray) -> np.ndarray:
    """x (P, F) → (P, F)."""
    raised = np.exp(x - x.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


if __name__ == "__main__":
    small = "--small" in sys.argv
    print(tune(softmax, *(SMALL if small else SPECS), budget=200 if small else "60s"))
