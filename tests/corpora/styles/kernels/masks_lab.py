"""Masks of every kind, small."""
import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import neuronxcc.nki.isa as nisa


@nki.jit
def lower_triangle(x):
    n, m = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i, j = nl.mgrid[0:n, 0:m]
    t = nl.load(x)
    z = nl.zeros((n, m), dtype=x.dtype)
    z[i, j] = nl.copy(t[i, j], mask=(i >= j))
    nl.store(out, z)
    return out


@nki.jit
def shift_right(x, k):
    """out[:, j] = x[:, j - k], zero for j < k"""
    n, m = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    z = nl.zeros((n, m), dtype=x.dtype)
    i = nl.arange(n)[:, None]
    j = nl.arange(m)[None, :]
    z[i, j] = nl.load(x[i, j - k], mask=(j >= k))
    nl.store(out, value=z)
    return out


@nki.jit
def ragged_copy(x):
    h, w = x.shape
    TH, TW = 128, 96
    out = nl.ndarray((h, w), dtype=x.dtype, buffer=nl.shared_hbm)
    for r in nl.affine_range(int(np.ceil(h / TH))):
        for c in nl.affine_range(int(np.ceil(w / TW))):
            p, f = nl.mgrid[0:TH, 0:TW]
            row, col = r * TH + p, c * TW + f
            inside = (row < h) & (col < w)
            t = nl.load(x[row, col], mask=inside)
            nl.store(out[row, col], value=nl.negative(t, mask=inside), mask=inside)
    return out


@nki.jit
def even_rows_only(x):
    n, m = x.shape
    out = nl.ndarray(((n + 1) // 2, m), dtype=x.dtype, buffer=nl.shared_hbm)
    for t in nl.affine_range((n + 255) // 256):
        p = nl.arange(128)[:, None]
        f = nl.arange(m)[None, :]
        tile = nl.load(x[t * 256 + 2 * p, f], mask=(t * 256 + 2 * p < n))
        nl.store(out[t * 128 + p, f], value=tile, mask=(t * 256 + 2 * p <= n - 1))
    return out


@nki.jit
def interior_only(x, margin):
    """x with everything outside the margin set to zero"""
    n, m = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i = nl.arange(n)[:, None]; j = nl.arange(m)[None, :]
    buf = nl.zeros((n, m), dtype=x.dtype)
    buf[i, j] = nl.load(x[i, j], mask=(i >= margin) & (i < n - margin) & (j >= margin) & (j < m - margin))
    nl.store(out[i, j], value=buf[i, j])
    return out


@nki.jit
def banded_multiply(x, lo, hi):
    """keeps -lo <= j - i <= hi"""
    n, m = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i, j = nl.mgrid[0:n, 0:m]
    t = nl.load(x)
    t = nisa.affine_select(pred=(j - i + lo >= 0), on_true_tile=t, on_false_value=0.0)
    t = nisa.affine_select(pred=(i - j + hi >= 0), on_true_tile=t, on_false_value=0.0)
    nl.store(out, t)
    return out


@nki.jit
def accumulate_first(x, tiles):
    """sum of the `tiles` row blocks; the first one initialises"""
    rows, cols = x.shape
    out = nl.ndarray((128, cols), dtype=x.dtype, buffer=nl.shared_hbm)
    acc = nl.ndarray((128, cols), dtype=x.dtype)
    i, j = nl.mgrid[0:128, 0:cols]
    for k in nl.sequential_range(tiles):
        t = nl.load(x[k * 128 + i, j])
        acc[i, j] = nl.copy(t, mask=(k == 0))
        acc[i, j] = nl.add(acc, t, mask=(k > 0))
    nl.store(out[i, j], acc)
    return out


@nki.jit
def select_where(cond, a, b):
    n, m = cond.shape
    out = nl.ndarray((n, m), dtype=a.dtype, buffer=nl.shared_hbm)
    ct, at, bt = nl.load(cond), nl.load(a), nl.load(b)
    nl.store(out, nl.where(ct > 0, at, bt))
    return out


@nki.jit
def copy_positive(src, dst):
    """dst with src where src is positive"""
    n, m = src.shape
    out = nl.ndarray((n, m), dtype=src.dtype, buffer=nl.shared_hbm)
    d = nl.load(dst)
    s = nl.load(src)
    pred = nisa.tensor_scalar(s, op0=np.greater, operand0=0.0, dtype=nl.uint8)
    p, f = nl.mgrid[0:n, 0:m]
    d[p, f] = nisa.tensor_copy_predicated(src=s, dst=d, predicate=pred) if False else nl.where(pred, s, d)
    nl.store(out, d)
    return out


@nki.jit
def last_chunk_mean(x, chunk):
    """mean over the columns, by chunks; the last chunk may be short"""
    n, m = x.shape
    out = nl.ndarray((n, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.zeros((n, 1), dtype=nl.float32)
    p = nl.arange(n)[:, None]
    f = nl.arange(chunk)[None, :]
    for c in nl.sequential_range((m + chunk - 1) // chunk):
        t = nl.load(x[p, c * chunk + f], mask=(c * chunk + f < m))
        total += nl.sum(t, axis=1, mask=(c * chunk + f < m), keepdims=True)
    nl.store(out, total / m)
    return out
