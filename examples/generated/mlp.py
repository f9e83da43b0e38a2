"""The gated feed-forward network of Llama and its kin."""

import numpy as np


def mlp(x, gate, up, down):
    """x: (tokens, D); gate and up: (D, F); down: (F, D)."""
    gated = x @ gate
    silu = gated / (1 + np.exp(-gated))
    return (silu * (x @ up)) @ down
