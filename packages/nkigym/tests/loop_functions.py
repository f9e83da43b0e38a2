"""NumPy functions whose baseline kernels tests schedule, with small and with real arguments."""

import ml_dtypes
import numpy as np

BF16 = ml_dtypes.bfloat16


def matmul(lhs_transposed, rhs):
    return (lhs_transposed.T @ rhs).astype(BF16)


def exponentials(x):
    return np.exp(x - x.max(axis=-1, keepdims=True))


def softmax(x):
    e = exponentials(x)
    return e / e.sum(axis=-1, keepdims=True)


def rmsnorm_matmul(x, w, right):
    y = x.astype(np.float32)
    scale = 1 / np.sqrt(np.mean(y * y, axis=-1, keepdims=True) + 1e-6)
    return ((y * scale * w).astype(BF16) @ right).astype(BF16)


def attention(q, k, v):
    scores = np.matmul(q, np.swapaxes(k, -1, -2)).astype(np.float32)
    e = exponentials(scores * np.float32(1 / np.sqrt(q.shape[-1])))
    sums = np.matmul(e.astype(BF16), v)
    return (sums / e.sum(axis=-1, keepdims=True)).astype(BF16)


def gated(x, gate, up, down):
    g = x @ gate
    return (((g / (1 + np.exp(-g))) * (x @ up)).astype(BF16) @ down).astype(BF16)


def sum_and_difference(a, b):
    return a + b, a - b


SMALL = {
    matmul: ("bf16[256, 256]", "bf16[256, 1024]"),
    softmax: ("f32[384, 96]",),
    rmsnorm_matmul: ("bf16[256, 256]", "bf16[256]", "bf16[256, 256]"),
    attention: ("bf16[2, 256, 64]",) * 3,
    gated: ("bf16[256, 256]", "bf16[256, 256]", "bf16[256, 256]", "bf16[256, 256]"),
    sum_and_difference: ("f32[256, 1024]", "f32[256, 1024]"),
}
"""Two or three tiles per loop."""

REAL = {
    matmul: ("bf16[2048, 2048]",) * 2,
    softmax: ("f32[4096, 2048]",),
    rmsnorm_matmul: ("bf16[2048, 2048]", "bf16[2048]", "bf16[2048, 2048]"),
    attention: ("bf16[8, 2048, 128]",) * 3,
    gated: ("bf16[512, 1024]", "bf16[1024, 4096]", "bf16[1024, 4096]", "bf16[4096, 1024]"),
}

HALFWAY = {
    matmul: ("bf16[256, 1024]", "bf16[256, 2048]"),
    softmax: ("f32[1024, 96]",),
    rmsnorm_matmul: ("bf16[512, 1024]", "bf16[1024]", "bf16[1024, 2048]"),
    attention: ("bf16[2, 2048, 64]",) * 3,
    gated: ("bf16[512, 256]", "bf16[256, 2048]", "bf16[256, 2048]", "bf16[2048, 1024]"),
}
"""The least sizes at which every step of the hand-written schedules applies."""
