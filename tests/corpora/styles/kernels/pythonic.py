"""Kernels whose authors like Python."""
import functools
import itertools
import operator

import numpy as np
from neuronxcc import nki
import neuronxcc.nki.language as nl
import neuronxcc.nki.isa as nisa

TILE = 128
ACTIVATIONS = dict(relu=nl.relu, tanh=nl.tanh, gelu=nl.gelu)
run = nki.simulate_kernel


def tiles_of(n, size=TILE):
    for start in range(0, n, size):
        yield start, min(size, n - start)


def chunks(total, size=TILE):
    return [(s, min(size, total - s)) for s in range(0, total, size)]


class Accumulator:
    """Adds up tiles."""

    def __init__(self, shape, dtype=nl.float32):
        self.tile = nl.zeros(shape, dtype=dtype)
        self.count = 0

    def add(self, other):
        self.tile[...] = nl.add(self.tile, other)
        self.count += 1

    def mean(self):
        return self.tile * (1.0 / self.count)


@nki.jit
def mean_of_blocks(x):
    rows, cols = x.shape
    out = nl.ndarray((TILE, cols), dtype=x.dtype, buffer=nl.shared_hbm)
    acc = Accumulator((TILE, cols))
    for r in range(rows // TILE):
        acc.add(nl.load(x[r * TILE:(r + 1) * TILE, :]))
    nl.store(out, acc.mean())
    return out


@nki.jit
def polynomial(x, coeffs):
    """Horner; coeffs is a tuple of floats, highest power first"""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for start, size in chunks(x.shape[0]):
        t = nl.load(x[start:start + size])
        y = nl.full((size, x.shape[1]), coeffs[0], dtype=nl.float32)
        for c in coeffs[1:]:
            y = y * t + c
        nl.store(out[start:start + size], y)
    return out


@nki.jit
def sum_many(a, b, c, d):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    tiles = [nl.load(t) for t in (a, b, c, d)]
    total = functools.reduce(lambda p, q: nl.add(p, q), tiles)
    nl.store(out, value=total)
    return out


@nki.jit
def elementwise_by_name(x, name="relu", options={"scale": 1.0, "shift": 0.0}):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)
    t = nisa.activation(op=ACTIVATIONS[name], data=t, scale=options["scale"])
    if options["shift"]:
        t = t + options["shift"]
    nl.store(out, t)
    return out


@nki.jit
def taps_in_list(x, taps):
    n, m = x.shape
    k = len(taps)
    out = nl.ndarray((n, m - k + 1), dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)
    partial = [None] * k
    for i, w in enumerate(taps):
        partial[i] = nl.multiply(t[:, i:i + m - k + 1], w)
    acc = partial[0]
    for i in range(1, k):
        acc = nl.add(acc, partial[i])
    nl.store(out, acc)
    return out


@nki.jit
def two_or_three_dims(x):
    if x.ndim == 2:
        n, w = x.shape
        src = x
    else:
        b, n0, w = x.shape
        n = b * n0
        src = x.reshape((n, w))
    out = nl.ndarray((n, w), dtype=x.dtype, buffer=nl.shared_hbm)
    for s, k in chunks(n):
        nl.store(out[s:s + k, :], nl.abs(nl.load(src[s:s + k, :])))
    return out


@nki.jit
def pingpong_blocks(x, rounds):
    """repeatedly averages neighbouring halves, two buffers in turn"""
    n, m = x.shape
    out = nl.ndarray((n, m), dtype=x.dtype, buffer=nl.shared_hbm)
    bufs = [nl.ndarray((nl.par_dim(n), m), dtype=nl.float32) for _ in range(2)]
    bufs[0][...] = nl.load(x)
    h = m // 2
    for r in range(rounds):
        src, dst = bufs[r % 2], bufs[(r + 1) % 2]
        dst[:, 0:h] = nl.multiply(nl.add(src[:, 0:h], src[:, h:m]), 0.5)
        dst[:, h:m] = nl.multiply(nl.subtract(src[:, 0:h], src[:, h:m]), 0.5)
    nl.store(out, bufs[rounds % 2])
    return out


@nki.jit
def nested_functions(x, y):
    n, m = x.shape
    out = nl.ndarray((n, m), dtype=x.dtype, buffer=nl.shared_hbm)

    def fetch(t, i):
        return nl.load(t[i * 64:(i + 1) * 64, :])

    def combine(p, q):
        diff = nl.subtract(p, q)
        return nl.multiply(diff, diff)

    for i in nl.affine_range(n // 64):
        nl.store(out[i * 64:(i + 1) * 64, :], combine(fetch(x, i), fetch(y, i)))
    return out


def make_scaler(factor):
    @nki.jit
    def scaler(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load(x) * factor)
        return out
    return scaler


double = make_scaler(2.0)


@nki.jit
def long_expression(x, a, b, c):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    n, m = x.shape
    t = nl.load(x)
    y = (t * a + b) * (t - c) \
        / (nl.exp(-t) + 1.0)
    z = nl.maximum(y[:, 0: \
                     m], 0.0)
    nl.store(out, z)
    return out


@nki.jit
def while_halving(x):
    """sums the columns by halving, m a power of two"""
    n, m = x.shape
    out = nl.ndarray((n, 1), dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)
    width = m
    while width > 1:
        width //= 2
        t[:, 0:width] = nl.add(t[:, 0:width], t[:, width:2 * width])
    nl.store(out, t[:, 0:1])
    return out
