"""NumPy functions that become baseline kernels, and the same in float64."""

from __future__ import annotations

from typing import Any

import numpy as np


def matmul(lhs_t: Any, rhs: Any) -> Any:
    return lhs_t.T @ rhs


def product(x: Any, w: Any) -> Any:
    return x @ w


def product_transposed(x: Any, w: Any) -> Any:
    return x @ w.T


def tensor_add(x: Any, y: Any) -> Any:
    return x + y


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def rmsnorm_matmul(x: Any, g: Any, w: Any) -> Any:
    scale = np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.float32(2**-20))
    return (x / scale * g) @ w


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = q @ np.swapaxes(k, -1, -2) * np.float32(0.125)
    return softmax(scores) @ v


def gated_mlp(x: Any, gate: Any, up: Any, down: Any) -> Any:
    g = x @ gate
    return (g / (1 + np.exp(-g)) * (x @ up)) @ down


def relu_of_product(x: Any, w: Any, bias: Any) -> Any:
    return np.maximum(x @ w + bias, 0)


def product_of_products(x: Any, v: Any, w: Any) -> Any:
    return (x @ v) @ w


def both(x: Any, y: Any) -> Any:
    return x + y, x * y


def product_and_sums(x: Any, w: Any) -> Any:
    made = x @ w
    return made, np.sum(made, axis=-1, keepdims=True)


def layer_norm_mlp(x: Any, g: Any, b: Any, up: Any, down: Any) -> Any:
    d = x - np.mean(x, axis=-1, keepdims=True)
    normal = d / np.sqrt(np.mean(d * d, axis=-1, keepdims=True) + np.float32(2**-16)) * g + b
    return np.maximum(normal @ up, 0) @ down + x


def self_attention(x: Any, wq: Any, wk: Any, wv: Any) -> Any:
    scores = (x @ wq) @ (x @ wk).T
    return softmax(scores * np.float32(2**-8)) @ (x @ wv)


def softmax_and_sums(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    sums = np.sum(e, axis=-1, keepdims=True)
    return e / sums, sums


def used_twice(x: Any, w: Any) -> Any:
    made = np.maximum(x @ w, 0)
    return made, made @ w


def batches(x: Any, y: Any) -> Any:
    return np.swapaxes(x, -1, -2) @ y


def matrices_of_batches(x: Any, w: Any) -> Any:
    return x @ w


def product_of_product_and_sum(x: Any, v: Any, w: Any) -> Any:
    made = x @ v
    return made @ w + made


def gram(x: Any, w: Any) -> Any:
    made = x @ w
    return made @ made.T


def three_products(x: Any, a: Any, b: Any, c: Any) -> Any:
    made = x @ a, x @ b, x @ c
    return tuple(np.sum(m, axis=-1, keepdims=True) for m in made)
