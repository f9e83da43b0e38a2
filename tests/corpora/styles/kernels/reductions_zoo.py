import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import neuronxcc.nki.isa as nisa
import numpy as np
from neuronxcc.nki.language import float32 as f32, load, store


@nki.jit
def logsumexp(x):
    n, m = x.shape
    o = nl.ndarray((n, 1), dtype=f32, buffer=nl.shared_hbm)
    xt = load(x)
    mx = nl.max(xt, axis=[1], keepdims=True)
    store(o, nl.log(nl.sum(nl.exp(xt - mx), axis=[1], keepdims=True)) + mx)
    return o


@nki.jit
def row_argmax(x):
    """index of the largest element of every row, as uint32"""
    n, m = x.shape
    o = nl.ndarray((n, 1), dtype=nl.uint32, buffer=nl.shared_hbm)
    xt = load(x)
    top = nisa.max8(src=xt)
    idx = nisa.nc_find_index8(data=xt, vals=top)
    store(o, idx[:, 0])
    return o


@nki.jit
def sum_middle_axis(x):
    """x (p, a, b) -> (p, b)"""
    p, a, b = x.shape
    o = nl.ndarray((p, b), dtype=x.dtype, buffer=nl.shared_hbm)
    xt = load(x)
    i_p = nl.arange(p)[:, None, None]
    i_b = nl.arange(b)[None, :, None]
    i_a = nl.arange(a)[None, None, :]
    s = nl.sum(xt[i_p, i_a, i_b], axis=[2])
    store(o, s)
    return o


@nki.jit
def max_axis1_of_3d(x):
    p, a, b = x.shape
    o = nl.ndarray((p, b), dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)
    m = nl.max(t, axis=1)
    nl.store(o, value=m)
    return o


@nki.jit
def two_axes_at_once(x):
    p, a, b = x.shape
    o = nl.ndarray((p, 1), dtype=f32, buffer=nl.shared_hbm)
    t = nl.load(x)
    nl.store(o, nisa.tensor_reduce(np.add, t, axis=[1, 2], dtype=f32, keepdims=False))
    return o


@nki.jit
def sum_over_partitions(x):
    """(n, m) -> (1, m), n <= 128"""
    n, m = x.shape
    o = nl.ndarray((1, m), dtype=x.dtype, buffer=nl.shared_hbm)
    one = nl.ones((n, 1), dtype=x.dtype)
    for j in nl.affine_range((m + 511) // 512):
        f = nl.arange(512)[None, :]
        p = nl.arange(n)[:, None]
        t = nl.load(x[p, j * 512 + f], mask=(j * 512 + f < m))
        r = nisa.nc_matmul(one, t, mask=(j * 512 + f < m))
        nl.store(o[nl.arange(1)[:, None], j * 512 + f], value=r, mask=(j * 512 + f < m))
    return o


@nki.jit
def mean_and_std(x):
    """returns two tensors"""
    n, m = x.shape
    mean_out = nl.ndarray((n, 1), dtype=f32, buffer=nl.shared_hbm)
    std_out = nl.ndarray((n, 1), dtype=f32, buffer=nl.shared_hbm)
    for i in range((n + 127) // 128):
        lo, hi = i * 128, min(n, (i + 1) * 128)
        t = nl.load(x[lo:hi])
        mu = nl.mean(t, axis=1, keepdims=True)
        var = nl.var(t, axis=1)
        nl.store(mean_out[lo:hi], mu)
        nl.store(std_out[lo:hi], nl.sqrt(var))
    return mean_out, std_out


@nki.jit
def running_max_chunks(x, chunk=64):
    n, m = x.shape
    out = nl.ndarray((n, m // chunk), dtype=x.dtype, buffer=nl.shared_hbm)
    best = nl.full((n, 1), -3.4e38, dtype=x.dtype)
    history = nl.ndarray((n, m // chunk), dtype=x.dtype)
    for c in nl.sequential_range(m // chunk):
        here = nl.max(nl.load(x[:, nl.ds(c * chunk, chunk)]), axis=1, keepdims=True)
        best[...] = nl.maximum(best, here)
        history[:, c] = nl.copy(best)
    nl.store(out, history)
    return out


@nki.jit
def min_max_scale(x):
    n, m = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)
    lo = nl.min(t, axis=1, keepdims=True)
    hi = nl.max(t, axis=1, keepdims=True)
    nl.store(out, (t - lo) / (hi - lo))
    return out


@nki.jit
def any_above(x, limit):
    n, m = x.shape
    out = nl.ndarray((n, 1), dtype=nl.uint8, buffer=nl.shared_hbm)
    flags = nl.greater(nl.load(x), limit, dtype=nl.uint8)
    nl.store(out, nl.max(flags, axis=1, keepdims=True))
    return out


@nki.jit
def cosine_similarity(a, b):
    n, m = a.shape
    out = nl.ndarray((n, 1), dtype=f32, buffer=nl.shared_hbm)
    at, bt = nl.load(a), nl.load(b)
    dot = nl.sum(at * bt, axis=1, keepdims=True)
    na = nl.sum(at * at, axis=1, keepdims=True)
    nb = nl.sum(bt * bt, axis=1, keepdims=True)
    nl.store(out, dot * nl.rsqrt(na * nb))
    return out
