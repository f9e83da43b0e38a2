"""Kernels over tiles for both targets, each with its NumPy reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tokenplan.tile_ir import TileKernel


def gemm(m=256, n=256, k=256, tile=(128, 128, 64), dtype="f32", layout=None, **hints):
    """c = a @ b, a tile of c per instance."""
    rows, columns, depth = tile
    kernel = TileKernel("gemm")
    a = kernel.array("a", layout or (m, k), dtype)
    b = kernel.array("b", (k, n), dtype)
    c = kernel.array("c", (m, n))
    i, j = kernel.grid("i", m // rows), kernel.grid("j", n // columns)
    zero = kernel.full((rows, columns), 0.0)
    with kernel.loop("k", k // depth) as step:
        total = kernel.carry(zero)
        left = kernel.load(a, (i, step), (rows, depth), name="load_a", hints=hints)
        right = kernel.load(b, (step, j), (depth, columns), name="load_b", hints=hints)
        result = kernel.update(total, kernel.compute("mma", left, right, total))
    kernel.store(c, (i, j), result)
    return kernel


def gemm_reference(a, b, c):
    return {"c": a @ b}


def attention(queries=128, keys=512, width=64, block=128, keys_block=128, dtype="f32", layout=None):
    """o = softmax(q kᵀ) v, block by block of keys with a running maximum; `layout` is that of k."""
    kernel = TileKernel("attention")
    q = kernel.array("q", (queries, width), dtype)
    k, v = (kernel.array(name, found or (keys, width), dtype)
            for name, found in (("k", layout), ("v", None)))  # fmt: skip
    o = kernel.array("o", (queries, width))
    i = kernel.grid("i", queries // block)
    loaded = kernel.load(q, (i, 0), (block, width), name="load_q")
    most, total = kernel.full((block, 1), -1e30), kernel.full((block, 1), 0.0)
    weighted = kernel.full((block, width), 0.0)
    with kernel.loop("j", keys // keys_block) as j:
        most_in, total_in, sum_in = (kernel.carry(x) for x in (most, total, weighted))
        key = kernel.compute(
            "transpose", kernel.load(k, (j, 0), (keys_block, width), name="load_k")
        )
        scores = kernel.compute("mma", loaded, key, kernel.full((block, keys_block), 0.0))
        now = kernel.compute("maxf", most_in, kernel.compute("max", scores, axis=1))
        scale = kernel.compute("exp", kernel.compute("subf", most_in, now))
        weights = kernel.compute("exp", kernel.compute("subf", scores, now))
        most_out = kernel.update(most_in, now)
        sums = kernel.compute("sum", weights, axis=1)
        total_out = kernel.update(
            total_in, kernel.compute("addf", kernel.compute("mulf", total_in, scale), sums)
        )
        value = kernel.load(v, (j, 0), (keys_block, width), name="load_v")
        factor = weights if dtype == "f32" else kernel.compute("cast", weights, dtype=dtype)
        old = kernel.compute("mulf", sum_in, scale)
        sum_out = kernel.update(sum_in, kernel.compute("mma", factor, value, old))
    del most_out
    kernel.store(o, (i, 0), kernel.compute("divf", sum_out, total_out))
    return kernel


def attention_reference(q, k, v, o):
    scores = q @ k.T
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return {"o": weights / weights.sum(axis=1, keepdims=True) @ v}


def transpose(rows=256, columns=256, tile=64):
    """b = aᵀ, tile (m, n) of a at (n, m) of b."""
    kernel = TileKernel("transpose")
    a, b = kernel.array("a", (rows, columns)), kernel.array("b", (columns, rows))
    with kernel.loop("m", rows // tile) as m, kernel.loop("n", columns // tile) as n:
        kernel.store(b, (n, m), kernel.compute("transpose", kernel.load(a, (m, n), (tile, tile))))
    return kernel


def transpose_reference(a, b):
    return {"b": a.T}


def stream(rows=1024, columns=128, tile=64):
    """Odd tiles of a become exp of the even tiles before them, and b a copy of these."""
    kernel = TileKernel("stream")
    a, b = kernel.array("a", (rows, columns)), kernel.array("b", (rows // 2, columns))
    with kernel.loop("k", rows // tile // 2) as k:
        x = kernel.load(a, (2 * k, 0), (tile, columns))
        kernel.store(b, (k, 0), x, name="copy")
        kernel.store(a, (2 * k + 1, 0), kernel.compute("exp", x))
    return kernel


def stream_reference(a, b, tile=64):
    tiles = a.reshape(-1, 2, tile, a.shape[1]).copy()
    tiles[:, 1] = np.exp(tiles[:, 0])
    return {"a": tiles.reshape(a.shape), "b": tiles[:, 0].reshape(b.shape)}


def layernorm(rows=256, columns=512, tile=(64, 128)):
    """y = (x - mean) / sqrt(variance + 1e-5) by rows, in two passes over each row."""
    kernel = TileKernel("layernorm")
    x, y = kernel.array("x", (rows, columns)), kernel.array("y", (rows, columns))
    i = kernel.grid("i", rows // tile[0])
    zero, steps = kernel.full((tile[0], 1), 0.0), columns // tile[1]
    with kernel.loop("j", steps) as j:
        first, second = kernel.carry(zero), kernel.carry(zero)
        part = kernel.load(x, (i, j), tile)
        squares = kernel.compute("mulf", part, part)
        total = kernel.update(
            first, kernel.compute("addf", first, kernel.compute("sum", part, axis=1))
        )
        square = kernel.update(
            second, kernel.compute("addf", second, kernel.compute("sum", squares, axis=1))
        )
    mean = kernel.compute("mulf", total, 1 / columns)
    power = kernel.compute("mulf", square, 1 / columns)
    variance = kernel.compute("subf", power, kernel.compute("mulf", mean, mean))
    scale = kernel.compute("rsqrt", kernel.compute("addf", variance, 1e-5))
    with kernel.loop("l", steps) as j:
        part = kernel.compute("subf", kernel.load(x, (i, j), tile, name="load_again"), mean)
        kernel.store(y, (i, j), kernel.compute("mulf", part, scale))
    return kernel


def layernorm_reference(x, y):
    mean, variance = x.mean(axis=1, keepdims=True), x.var(axis=1, keepdims=True)
    return {"y": (x - mean) / np.sqrt(variance + 1e-5)}


def gemm_choice(rows=128, columns=128, depth=64, latency=None):
    """The matrix product of 1024 rows and columns in float16, for `tokenplan sweep`."""
    hints = {} if latency is None else {"latency": latency}
    return gemm(1024, 1024, 1024, (rows, columns, depth), "f16", **hints)


def attention_choice(block=128, keys_block=128):
    """Attention over 1024 keys in float16, for `tokenplan sweep`."""
    return attention(1024, 1024, 64, block, keys_block, "f16")


@dataclass(frozen=True)
class Example:
    """A kernel, and what it returns from arrays in float64."""

    make: Callable[..., TileKernel]
    reference: Callable[..., dict[str, np.ndarray]]


EXAMPLES = {
    "gemm": Example(gemm, gemm_reference),
    "attention": Example(attention, attention_reference),
    "transpose": Example(transpose, transpose_reference),
    "stream": Example(stream, stream_reference),
    "layernorm": Example(layernorm, layernorm_reference),
}
