"""The generator's workloads: NumPy functions, what they are compiled for, and their bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nkigen_lite.numpy_extras import conv2d, conv3d, topk


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def rmsnorm(x: Any, w: Any) -> Any:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6) * w


def chain(x: Any, y: Any) -> Any:
    return np.sqrt(np.abs((np.exp(np.tanh(x) * y) + x) * (y - x)) + 1.0) * y


def line(x: Any) -> Any:
    return x * 2.0 + 1.0


def mm(a: Any, b: Any) -> Any:
    return np.matmul(a, b)


def attention(q: Any, k: Any, v: Any) -> Any:
    s = np.matmul(q, np.transpose(k, (0, 1, 3, 2))) * (1.0 / math.sqrt(q.shape[-1]))
    return np.matmul(softmax(s), v)


def gated(x: Any, wg: Any, wu: Any, wd: Any) -> Any:
    g = np.matmul(x, wg)
    return np.matmul(g / (1 + np.exp(-g)) * np.matmul(x, wu), wd)


def reverse_axes(x: Any) -> Any:
    return np.transpose(x, (3, 2, 1, 0))


def weight_transpose(x: Any) -> Any:
    return np.transpose(x, (0, 2, 3, 4, 1))


def strided(x: Any) -> Any:
    return x[:, :, 0:27:2, 0:27:2]


def convolution(x: Any, w: Any, b: Any) -> Any:
    return conv2d(x, w, b, padding=1)


def convolution_last(x: Any, w: Any, b: Any) -> Any:
    return conv2d(x, w, b, padding=1, layout="NHWC")


def depthwise(x: Any, w: Any) -> Any:
    return conv2d(x, w, padding=1, groups=256)


def patches(x: Any, w: Any) -> Any:
    return conv3d(x, w, strides=(2, 16, 16))


def top_8(x: Any) -> Any:
    return topk(x, 8, has_nan=False)


def embedding(table: Any, tokens: Any) -> Any:
    return np.take(table, tokens, 0)


def cache_write(cache: Any, position: Any, new: Any) -> None:
    cache[:, position] = new


def selective_scan(x: Any, dt: Any, a: Any, b: Any, c: Any) -> Any:
    h, left = np.zeros(a.shape, np.float32), []
    for t in range(x.shape[1]):
        h = np.exp(dt[:, t, None] * a) * h + (dt[:, t] * x[:, t])[:, None] * b[t]
        left.append(np.sum(h * c[t], -1))
    return np.stack(left, 1)


def dense_experts(x: Any, router: Any, w1: Any, w2: Any) -> Any:
    gates, total = softmax(x @ router), np.zeros(x.shape, np.float32)
    for e in range(w1.shape[0]):
        total = total + gates[:, e, None] * (np.maximum(x @ w1[e], 0) @ w2[e])
    return total


def _surprise(logits: Any) -> Any:
    top = np.max(logits, -1)
    return np.log(np.sum(np.exp(logits - top[:, None]), -1)) + top - np.diagonal(logits)


def clip_loss(images: Any, texts: Any, scale: Any) -> Any:
    a, b = (v / np.sqrt(np.sum(v * v, -1, keepdims=True)) for v in (images, texts))
    logits = a @ b.T * np.exp(scale)
    return (np.mean(_surprise(logits)) + np.mean(_surprise(logits.T))) / 2


def groupnorm(x: Any, w: Any, b: Any) -> Any:
    g = np.reshape(x, (x.shape[0], 32, -1))
    away = g - np.mean(g, -1, keepdims=True)
    g = away / np.sqrt(np.mean(away * away, -1, keepdims=True) + 1e-5)
    return np.reshape(g, x.shape) * w[:, None, None] + b[:, None, None]


def adamw(p: Any, g: Any, m: Any, v: Any) -> None:
    m[...] = 0.9 * m + 0.1 * g
    v[...] = 0.999 * v + 0.001 * g * g
    step = (m / (1 - 0.9**10)) / (np.sqrt(v / (1 - 0.999**10)) + 1e-8)
    p[...] = p - 1e-3 * (step + 0.01 * p)


def layernorm(x: Any, w: Any, b: Any) -> Any:
    away = x - np.mean(x, -1, keepdims=True)
    return away / np.sqrt(np.mean(away * away, -1, keepdims=True) + 1e-5) * w + b


def gpt_block(
    x: Any, w1: Any, b1: Any, wqkv: Any, wo: Any, w2: Any, b2: Any, up: Any, down: Any
) -> Any:
    rows, width = x.shape
    heads = np.reshape(layernorm(x, w1, b1) @ wqkv, (rows, 3, 4, width // 4))
    q, k, v = np.transpose(heads, (1, 2, 0, 3))
    scores = q @ np.transpose(k, (0, 2, 1)) / math.sqrt(width // 4)
    scores = np.where(np.tri(rows, dtype=bool), scores, np.float32(-1e9))
    x = x + np.reshape(np.transpose(softmax(scores) @ v, (1, 0, 2)), (rows, width)) @ wo
    h = layernorm(x, w2, b2) @ up
    return x + 0.5 * h * (1 + np.tanh(0.7978845608 * (h + 0.044715 * h * h * h))) @ down


def interleaved_rope(x: Any, cos: Any, sin: Any) -> Any:
    a, b = x[..., 0::2], x[..., 1::2]
    return np.reshape(np.stack([a * cos - b * sin, a * sin + b * cos], -1), x.shape)


def rotated(x: Any, cos: Any, sin: Any) -> Any:
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def llama_block(
    x: Any, position: Any, cos: Any, sin: Any, keys: Any, values: Any, w1: Any, wq: Any, wk: Any,
    wv: Any, wo: Any, w2: Any, gate: Any, up: Any, down: Any,
) -> Any:  # fmt: skip
    kind, (groups, length, width) = x.dtype, keys.shape
    cos, sin = cos[position], sin[position]
    h = rmsnorm(x.astype(np.float32), w1).astype(kind)
    q = rotated(np.reshape(h @ wq, (groups, -1, width)), cos, sin).astype(kind)
    keys[:, position] = rotated(np.reshape(h @ wk, (groups, width)), cos, sin)
    values[:, position] = np.reshape(h @ wv, (groups, width))
    scores = q @ np.transpose(keys, (0, 2, 1)) / math.sqrt(width)
    scores = np.where(np.arange(length) <= position, scores, -np.inf)
    heads = softmax(scores).astype(kind) @ values
    x = x + np.reshape(heads, x.shape).astype(kind) @ wo
    h = rmsnorm(x, w2).astype(kind)
    g = h @ gate
    return x + (g / (1 + np.exp(-g)) * (h @ up)).astype(kind) @ down


def mask_of(rows: int) -> np.ndarray:
    return np.random.default_rng(0).random(rows) < 0.5


def picked_rows(x: Any) -> Any:
    return x[mask_of(x.shape[0])]


def last_axes_swapped(x: Any) -> Any:
    return np.transpose(x, (0, 1, 3, 2))


HAND_WRITTEN = {
    "interleaved rope": ("interleaved_rope", ()),
    "last axes swapped": ("last_axes_swapped", ()),
    "rows of a mask": ("picked_rows", (tuple(map(int, np.flatnonzero(mask_of(1024)))),)),
    "int32 product": ("int32_product", ()),
}
"""Workload → its kernel in hand_written/kernels.py, and what that takes behind the arrays."""

ANY = math.inf


@dataclass(frozen=True, slots=True)
class Workload:
    """A function on arrays of these specs; bounds and least are (instructions, HBM MiB), ANY for a
    number that is not bounded."""

    name: str
    function: Callable[..., Any]
    specs: tuple[str, ...]
    at_most: tuple[float, float]
    least: tuple[float, float]
    in_place: bool = False


WORKLOADS = (
    Workload("softmax", softmax, ("f32[1024, 1024]",), (36, 8.1), (28, 8.0)),
    Workload("rmsnorm", rmsnorm, ("f32[1024, 1024]", "f32[1024]"), (38, 8.1), (34, 8.004)),
    Workload("chain", chain, ("f32[1024, 1024]",) * 2, (53, 12.1), (48, 12.0)),
    Workload("line", line, ("f32[1048576]",), (14, 8.1), (12, 8.0)),
    Workload("matmul", mm, ("f32[2048, 2048]",) * 2, (1500, 49.0), (1456, 48.0)),
    Workload("attention", attention, ("f32[1, 8, 512, 64]",) * 3, (430, 4.1), (390, 4.0)),
    Workload(
        "gated MLP", gated,
        ("f32[512, 1024]", "f32[1024, 4096]", "f32[1024, 4096]", "f32[4096, 1024]"),
        (1025, 53.0), (933, 52.0),
    ),
    Workload(
        "LM head", mm, ("bf16[1, 2048]", "bf16[2048, 128256]"), (5000, 511.0), (4801, 501.249)
    ),
    Workload("reverse axes", reverse_axes, ("f32[2, 8, 128, 64]",), (27, 1.1), (24, 1.0)),
    Workload(
        "weight transpose", weight_transpose, ("f32[1152, 3, 2, 16, 16]",), (30, 13.6), (27, 13.5)
    ),
    Workload("strided slice", strided, ("f32[1, 16, 32, 32]",), (3, 0.08), (1, 0.024)),
    Workload(
        "conv2d NCHW", convolution, ("f32[1, 64, 56, 56]", "f32[64, 64, 3, 3]", "f32[64]"),
        (100, 2.0), (86, 1.672),
    ),
    Workload(
        "conv2d NHWC", convolution_last, ("f32[1, 56, 56, 64]", "f32[64, 64, 3, 3]", "f32[64]"),
        (165, 2.0), (153, 1.672),
    ),
    Workload(
        "depthwise conv2d", depthwise, ("f32[1, 256, 56, 56]", "f32[256, 1, 3, 3]"), (80, 6.5),
        (28, 6.134),
    ),
    Workload(
        "conv3d of patches", patches, ("f32[64, 3, 2, 16, 16]", "f32[1152, 3, 2, 16, 16]"),
        (198, 7.5), (191, 7.406),
    ),
    Workload("top 8", top_8, ("f32[1024, 4096]",), (40, 16.2), (40, 16.063)),
    Workload("sort", np.sort, ("f32[128, 1024]",), (280, 1.1), (211, 1.0)),
    Workload("embedding", embedding, ("bf16[128256, 4096]", "i32[2048]"), (40, 33.0), (33, 32.008)),
    Workload(
        "cache write", cache_write, ("bf16[32, 2048, 128]", "i32[]", "bf16[32, 128]"), (8, 0.1),
        (2, 0.016), in_place=True,
    ),
    Workload(
        "Llama block", llama_block,
        (
            "bf16[1, 4096]", "i32[]", *("bf16[2048, 64]",) * 2, *("bf16[8, 2048, 128]",) * 2,
            "bf16[4096]", "bf16[4096, 4096]", *("bf16[4096, 1024]",) * 2, "bf16[4096, 4096]",
            "bf16[4096]", *("bf16[4096, 14336]",) * 2, "bf16[14336, 4096]",
        ), (ANY, 432.516), (ANY, 424.035), in_place=True,
    ),
    Workload(
        "selective scan", selective_scan,
        ("f32[128, 64]", "f32[128, 64]", "f32[128, 8]", "f32[64, 8]", "f32[64, 8]"), (296, 0.112),
        (208, 0.102),
    ),
    Workload(
        "dense experts", dense_experts,
        ("f32[128, 256]", "f32[256, 8]", "f32[8, 256, 512]", "f32[8, 512, 256]"), (186, 9.08),
        (124, 8.258),
    ),
    Workload("CLIP loss", clip_loss, ("f32[256, 512]",) * 2 + ("f32[]",), (102, 1.1), (68, 1.0)),
    Workload(
        "groupnorm", groupnorm, ("f32[4, 64, 32, 32]", "f32[64]", "f32[64]"), (18, 2.2), (12, 2.0)
    ),
    Workload(
        "AdamW step", adamw, ("f32[1024, 1024]",) * 4, (90, 30.8), (60, 28.0), in_place=True
    ),
    Workload(
        "GPT block", gpt_block,
        (
            "f32[128, 256]", *("f32[256]",) * 2, "f32[256, 768]", "f32[256, 256]",
            *("f32[256]",) * 2, "f32[256, 1024]", "f32[1024, 256]",
        ), (169, 3.579), (113, 3.254),
    ),
    Workload(
        "interleaved rope", interleaved_rope,
        ("f32[1024, 8, 128]", *("f32[1024, 1, 64]",) * 2), (88, 8.6), (80, 8.5),
    ),
    Workload("rows of a mask", picked_rows, ("f32[1024, 1024]",), (ANY, 3.9), (8, 3.805)),
    Workload(
        "int32 product", mm, ("i32[300, 513]", "i32[513, 200]"), (ANY, ANY), (ANY, 1.207)
    ),
    Workload(
        "last axes swapped", last_axes_swapped, ("f32[4, 16, 128, 64]",), (96, 4.1), (88, 4.0)
    ),
)  # fmt: skip
