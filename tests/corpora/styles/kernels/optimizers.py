"""Fused optimizer steps; every kernel returns new tensors."""
import math
import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl

PMAX = 128


def n_tiles(rows): return math.ceil(rows / PMAX)


@nki.jit
def sgd_momentum(param, grad, velocity, lr, mu):
    rows, cols = param.shape
    new_param = nl.ndarray(param.shape, dtype=param.dtype, buffer=nl.shared_hbm)
    new_velocity = nl.ndarray(velocity.shape, dtype=velocity.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(n_tiles(rows)):
        p, f = nl.mgrid[0:PMAX, 0:cols]
        m = i * PMAX + p < rows
        w = nl.load(param[i * PMAX + p, f], mask=m)
        g = nl.load(grad[i * PMAX + p, f], mask=m)
        v = nl.load(velocity[i * PMAX + p, f], mask=m)
        v_new = nl.add(nl.multiply(v, mu, mask=m), g, mask=m)
        w_new = nl.subtract(w, nl.multiply(v_new, lr, mask=m), mask=m)
        nl.store(new_velocity[i * PMAX + p, f], value=v_new, mask=m)
        nl.store(new_param[i * PMAX + p, f], value=w_new, mask=m)
    return new_param, new_velocity


@nki.jit
def adamw(param, grad, m, v, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, wd=0.01, step=1):
    rows, cols = param.shape
    outs = [nl.ndarray(t.shape, dtype=t.dtype, buffer=nl.shared_hbm) for t in (param, m, v)]
    bc1 = 1 - beta1 ** step
    bc2 = 1 - beta2 ** step
    for i in nl.affine_range(rows // PMAX):
        sl = nl.ds(i * PMAX, PMAX)
        w, g, mt, vt = nl.load(param[sl, :]), nl.load(grad[sl, :]), nl.load(m[sl, :]), nl.load(v[sl, :])
        mt = beta1 * mt + (1 - beta1) * g
        vt = beta2 * vt + (1 - beta2) * (g * g)
        update = (mt / bc1) / (nl.sqrt(vt / bc2) + eps)
        w = w * (1 - lr * wd) - lr * update
        for o, t in zip(outs, (w, mt, vt)):
            nl.store(o[sl, :], t)
    return tuple(outs)


@nki.jit
def clip_by_value(x, lo, hi):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(x.shape[0] // 128):
        t = nl.load(x[i * 128:(i + 1) * 128])
        t = nl.minimum(nl.maximum(t, lo), hi)
        nl.store(out[i * 128:(i + 1) * 128], t)
    return out


@nki.jit
def global_norm_squared(x):
    rows, cols = x.shape
    out = nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    acc = nl.zeros((nl.par_dim(PMAX), 1), dtype=nl.float32)
    for i in nl.sequential_range(rows // PMAX):
        t = nl.load(x[i * PMAX:(i + 1) * PMAX, :])
        acc += nl.sum(nl.square(t), axis=1, keepdims=True)
    # across partitions with the tensor engine
    ones = nl.ones((nl.par_dim(PMAX), 1), dtype=nl.float32)
    nl.store(out, nl.matmul(acc, ones, transpose_x=True))
    return out


@nki.jit
def lion(param, grad, mom, lr, b1, b2):
    """sign of the interpolated momentum"""
    rows, cols = param.shape
    new_p = nl.ndarray((rows, cols), dtype=param.dtype, buffer=nl.shared_hbm)
    new_m = nl.ndarray((rows, cols), dtype=mom.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(rows // PMAX):
        r = slice(i * PMAX, (i + 1) * PMAX)
        w = nl.load(param[r]); g = nl.load(grad[r]); m = nl.load(mom[r])
        c = nl.sign(m * b1 + g * (1.0 - b1))
        nl.store(new_p[r], w - c * lr)
        nl.store(new_m[r], m * b2 + g * (1.0 - b2))
    return new_p, new_m
