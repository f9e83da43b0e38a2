"""Gather / scatter: embeddings, experts, paged caches."""
import math
import numpy as np
from neuronxcc.nki.isa import tensor_copy
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def embedding_lookup(table, ids):
    """table (V, D), ids (T, 1) int32 -> (T, D), T a multiple of 128 or less than it"""
    V, D = table.shape
    T = ids.shape[0]
    out = nl.ndarray((T, D), dtype=table.dtype, buffer=nl.shared_hbm)
    P = min(T, 128)
    i_p = nl.arange(P)[:, None]
    i_d = nl.arange(D)[None, :]
    for t in nl.affine_range(T // P):
        idx = nl.load(ids[t * P:(t + 1) * P, :])
        rows = nl.load(table[idx[i_p, 0], i_d])
        nl.store(out[t * P + i_p, i_d], value=rows)
    return out


@nki.jit
def scatter_rows(values, ids, capacity):
    """writes row r of values to row ids[r]; everything else is zero"""
    T, D = values.shape
    out = nl.ndarray((capacity, D), dtype=values.dtype, buffer=nl.shared_hbm)
    zero = nl.zeros((capacity, D), dtype=values.dtype)
    nl.store(out, zero)
    i_p = nl.arange(T)[:, None]
    i_d = nl.arange(D)[None, :]
    idx = nl.load(ids)
    vals = nl.load(values)
    nl.store(out[idx[i_p, 0], i_d], value=vals)
    return out


@nki.jit
def one_hot(ids, depth):
    T, _ = ids.shape
    out = nl.ndarray((T, depth), dtype=nl.float32, buffer=nl.shared_hbm)
    labels = nl.load(ids, dtype=nl.float32)
    cols = nisa.iota(nl.arange(depth)[None, :], dtype=nl.float32)
    wide = cols.broadcast_to((T, depth))
    hot = nisa.tensor_scalar(wide, np.equal, labels, dtype=nl.float32)
    nl.store(out, hot)
    return out


@nki.jit
def router_top1(x_t, w):
    """x_t (D, T), w (D, E): softmax over experts, keeps the largest probability, zero elsewhere"""
    D, T = x_t.shape
    E = w.shape[1]
    out = nl.ndarray((T, E), dtype=nl.float32, buffer=nl.shared_hbm)
    logits = nl.zeros((T, E), dtype=nl.float32, buffer=nl.psum)
    for d in nl.affine_range(D // 128):
        logits += nisa.nc_matmul(nl.load(x_t[d * 128:(d + 1) * 128]), nl.load(w[d * 128:(d + 1) * 128]))
    probs = nl.softmax(logits, axis=1)
    best = nl.max(probs, axis=1, keepdims=True)
    keep = nisa.tensor_scalar(probs, op0=np.equal, operand0=best, dtype=nl.float32)
    nl.store(out, nl.multiply(probs, keep))
    return out


@nki.jit
def paged_gather(pool, block_table, block):
    """pool (blocks, block, D); block_table (1, n) int32; -> (n * block, D) with block rows each"""
    nb, _, D = pool.shape
    _, n = block_table.shape
    out = nl.ndarray((n * block, D), dtype=pool.dtype, buffer=nl.shared_hbm)
    flat = pool.reshape((nb * block, D))
    bt = nl.load(block_table)
    i_p = nl.arange(block)[:, None]
    i_d = nl.arange(D)[None, :]
    for i in range(n):
        first = nl.multiply(bt[:, i], block, dtype=nl.int32)
        base = first.broadcast_to((block, 1))
        offs = nisa.iota(i_p, dtype=nl.int32)
        idx = nl.add(base, offs, dtype=nl.int32)
        t = nl.load(flat[idx[i_p, 0], i_d])
        nl.store(out[i * block + i_p, i_d], t)
    return out


@nki.jit
def expert_mix(x, gates, w):
    """sum over experts of gates[:, e] * (x @ w[e]); x given transposed (D, T)"""
    D, T = x.shape
    E, _, O = w.shape
    y = nl.ndarray((T, O), dtype=x.dtype, buffer=nl.shared_hbm)
    xt = nl.load(x)
    gt = nl.load(gates)
    acc = nl.zeros((nl.par_dim(T), O), dtype=nl.float32)
    for e in nl.sequential_range(E):
        part = nl.matmul(xt, nl.load(w[e]), transpose_x=True)
        acc[...] = nl.add(acc, nl.multiply(part, gt[:, e]))
    nl.store(y, value=acc)
    return y
