# -*- coding: utf-8 -*-
"""Special functions and odd arithmetic."""
import math
import numpy as np
import neuronxcc.nki as nki, neuronxcc.nki.isa as nisa, neuronxcc.nki.language as nl

SQRT_2_OVER_PI = math.sqrt(2 / math.pi)


@nki.jit
def gelu_by_hand(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(math.ceil(x.shape[0] / 128)):
        r = nl.arange(128)[:, None]; c = nl.arange(x.shape[1])[None, :]
        ok = i * 128 + r < x.shape[0]
        t = nl.load(x[i * 128 + r, c], mask=ok)
        inner = SQRT_2_OVER_PI * (t + 0.044715 * t * t * t)
        nl.store(out[i * 128 + r, c], 0.5 * t * (1.0 + nl.tanh(inner)), mask=ok)
    return out


@nki.jit
def log_softmax(x):
    """numerically stable; x (n, m), n any"""
    n, m = x.shape
    out = nl.ndarray((n, m), dtype=np.float32, buffer=nl.shared_hbm)
    for i in range(0, n, 128):
        k = min(128, n - i)
        t = nl.load(x[i:i + k, :], dtype=np.float32)
        shifted = nl.subtract(t, nl.max(t, axis=1, keepdims=True))
        lse = nl.log(nl.sum(nl.exp(shifted), axis=1, keepdims=True))
        nl.store(out[i:i + k, :], value=nl.subtract(shifted, lse))
    return out


@nki.jit
def cross_entropy(logits, labels):
    """labels (n, 1) int32 -> losses (n, 1)"""
    n, V = logits.shape
    loss = nl.ndarray((n, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    i_p, i_v = nl.mgrid[0:n, 0:V]
    t = nl.load(logits[i_p, i_v])
    y = nl.load(labels, dtype=nl.float32)
    ids = nisa.iota(i_v, dtype=nl.float32)
    hit = nl.equal(ids, y.broadcast_to((n, V)))
    picked = nl.sum(nl.multiply(t, hit), axis=1, keepdims=True)
    mx = nl.max(t, axis=1, keepdims=True)
    z = nl.sum(nl.exp(t - mx), axis=1, keepdims=True)
    nl.store(loss, nl.log(z) + mx - picked)
    return loss


@nki.jit
def newton_rsqrt(x, iters):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)
    y = nl.rsqrt(t)
    for _ in range(iters):
        y = y * (1.5 - 0.5 * t * y * y)
    nl.store(out, y)
    return out


@nki.jit
def mish_and_grad(x):
    n, m = x.shape
    y = nl.ndarray((n, m), dtype=x.dtype, buffer=nl.shared_hbm)
    dy = nl.ndarray((n, m), dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)
    sp = nl.log(1.0 + nl.exp(t))
    th = nl.tanh(sp)
    sg = nl.sigmoid(t)
    nl.store(y, t * th)
    nl.store(dy, th + t * sg * (1.0 - th * th))
    return y, dy


@nki.jit
def power_iteration_step(a, v):
    """a (n, n) symmetric, v (n, 1): a v / |a v|"""
    n, _ = a.shape
    out = nl.ndarray((n, 1), dtype=a.dtype, buffer=nl.shared_hbm)
    at, vt = nl.load(a), nl.load(v)
    w = nl.copy(nl.matmul(at, vt, transpose_x=True))
    ones = nl.ones((n, n), dtype=nl.float32)
    norm2 = nl.matmul(ones, w * w, transpose_x=True)
    nl.store(out, w * nl.rsqrt(norm2))
    return out


@nki.jit
def int_bits(x, shift):
    """(x >> shift) & 1 of int32"""
    out = nl.ndarray(x.shape, dtype=nl.int32, buffer=nl.shared_hbm)
    t = nl.load(x)
    b = nisa.tensor_scalar(t, op0=nl.right_shift, operand0=shift, op1=nl.bitwise_and, operand1=1)
    nl.store(out, b)
    return out


@nki.jit
def complex_multiply(ar, ai, br, bi):
    re = nl.ndarray(ar.shape, dtype=ar.dtype, buffer=nl.shared_hbm)
    im = nl.ndarray(ar.shape, dtype=ar.dtype, buffer=nl.shared_hbm)
    A, B, C, D = map(nl.load, (ar, ai, br, bi))
    nl.store(re, value=nisa.scalar_tensor_tensor(data=A, op0=np.multiply, operand0=1.0, op1=np.multiply, operand1=C) - B * D)
    nl.store(im, value=A * D + B * C)
    return re, im
