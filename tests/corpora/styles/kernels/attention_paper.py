"""Attention variants for the ablation table of the paper.  q, k are head-major: [d, seq]."""
from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
from neuronxcc.nki.language import par_dim

B_P_SIZE = 128
B_F_SIZE = 512
NEG = -9984.0


@dataclass(frozen=True)
class Tiling:
    q: int = 128
    k: int = 128


def transpose_p_local(p_local_transposed, p_local, size):
    """p_local -> p_local.T, 128 columns at a time"""
    for i in nl.affine_range(size // B_P_SIZE):
        tmp = nl.ndarray((par_dim(B_P_SIZE), B_P_SIZE), buffer=nl.psum, dtype=np.float32)
        tmp[:, :] = nisa.nc_transpose(p_local[:, nl.ds(i * B_P_SIZE, B_P_SIZE)])
        p_local_transposed[:, nl.ds(i * B_P_SIZE, B_P_SIZE)] = nl.copy(tmp, dtype=p_local_transposed.dtype)


@nki.jit
def attention_head(q, k, v, softmax_scale=None):
    d, seqlen_q = q.shape
    _, seqlen_k = k.shape
    softmax_scale = softmax_scale or (1.0 / (d ** 0.5))
    o = nl.ndarray((seqlen_q, d), dtype=q.dtype, buffer=nl.shared_hbm)
    kt = nl.load(k)
    vt = nl.ndarray((seqlen_k // B_P_SIZE, par_dim(B_P_SIZE), d), dtype=v.dtype, buffer=nl.sbuf)
    for vi in nl.affine_range(seqlen_k // B_P_SIZE):
        vt[vi, :, :] = nl.load(v[nl.ds(vi * B_P_SIZE, B_P_SIZE), :])

    for qi in nl.affine_range(seqlen_q // B_P_SIZE):
        qt = nl.load(q[:, nl.ds(qi * B_P_SIZE, B_P_SIZE)])
        qt = nl.multiply(qt, softmax_scale)
        s_psum = nl.ndarray((par_dim(B_P_SIZE), seqlen_k), dtype=np.float32, buffer=nl.psum)
        s_psum[:, :] = nl.matmul(qt, kt, transpose_x=True)
        row_max = nisa.tensor_reduce(np.max, s_psum, axis=(1,), negate=True)
        row_sum = nl.zeros((par_dim(B_P_SIZE), 1), dtype=np.float32)
        p = nisa.activation_reduce(np.exp, s_psum, bias=row_max, scale=1.0, reduce_op=np.add,
                                   reduce_res=row_sum[:, 0], dtype=np.float32)
        p_t = nl.ndarray((par_dim(B_P_SIZE), seqlen_k), dtype=np.float32)
        transpose_p_local(p_t, p, seqlen_k)
        acc = nl.zeros((par_dim(B_P_SIZE), d), dtype=np.float32, buffer=nl.psum)
        for ki in nl.affine_range(seqlen_k // B_P_SIZE):
            acc[:, :] += nl.matmul(p_t[:, nl.ds(ki * B_P_SIZE, B_P_SIZE)], vt[ki, :, :], transpose_x=True)
        inv = nl.reciprocal(row_sum)
        nl.store(o[nl.ds(qi * B_P_SIZE, B_P_SIZE), :], nl.multiply(acc, inv))
    return o


@nki.jit
def attention_causal(q, k, v):
    """one head, causal, whole rows of scores"""
    d, n = q.shape
    out = nl.ndarray((n, d), dtype=q.dtype, buffer=nl.shared_hbm)
    i_q, i_k = nl.mgrid[0:128, 0:n]
    kt = nl.load(k)
    for t in nl.affine_range(n // 128):
        qt = nl.load(q[:, t * 128:(t + 1) * 128])
        s = nisa.nc_matmul(qt, kt)
        s_sb = nl.multiply(s, 1.0 / np.sqrt(d))
        s_masked = nisa.affine_select(pred=(t * 128 + i_q >= i_k), on_true_tile=s_sb, on_false_value=NEG)
        w = nl.softmax(s_masked, axis=1)
        acc = nl.zeros((128, d), nl.float32, buffer=nl.psum)
        for c in nl.affine_range(n // 128):
            wt = nl.copy(nisa.nc_transpose(w[:, c * 128:c * 128 + 128]))
            vt = nl.load(v[c * 128:c * 128 + 128, :])
            acc += nisa.nc_matmul(wt, vt)
        nl.store(out[t * 128:(t + 1) * 128, :], acc)
    return out


@nki.jit
def attention_alibi(q, k, v, slope):
    """adds slope * (key - query) to the scores; slope is a python float"""
    d, n = q.shape
    m = k.shape[1]
    assert n <= 128 and m <= 512, f'too large: {n}, {m}'
    out = nl.ndarray((n, d), dtype=q.dtype, buffer=nl.shared_hbm)
    qs, ks = [nl.load(z) for z in (q, k)]
    scores = nl.matmul(qs, ks, transpose_x=True)
    ii = nl.arange(n)[:, None]; jj = nl.arange(m)[None, :]
    dist = nisa.iota(jj - ii, dtype=nl.int32)
    biased = nl.add(scores, nl.multiply(dist, slope, dtype=nl.float32))
    mx = nl.max(biased, axis=1, keepdims=True)
    e = nl.exp(biased - mx)
    z = nl.sum(e, axis=1, keepdims=True)
    e = e / z
    acc = nl.zeros((n, d), dtype=nl.float32, buffer=nl.psum)
    for c in range((m + 127) // 128):
        width = min(128, m - c * 128)
        et = nisa.nc_transpose(e[:, nl.ds(c * 128, width)])
        acc += nl.matmul(nl.copy(et), nl.load(v[nl.ds(c * 128, width), :]), transpose_x=True)
    nl.store(out, value=acc)
    return out


def _online_update(m_prev, l_prev, s, i_p):
    m_cur = nl.maximum(m_prev, nl.max(s, axis=1, keepdims=True))
    alpha = nl.exp(m_prev - m_cur)
    p = nl.exp(s - m_cur)
    l_cur = l_prev * alpha + nl.sum(p, axis=1, keepdims=True)
    return m_cur, l_cur, alpha, p


@nki.jit
def flash_sliding_window(q, k, v, window):
    """every query sees the `window` keys up to and including itself"""
    cfg = Tiling()
    d, n = q.shape
    out = nl.ndarray((n, d), dtype=q.dtype, buffer=nl.shared_hbm)
    ip = nl.arange(cfg.q)[:, None]
    jf = nl.arange(cfg.k)[None, :]
    for t in nl.static_range(n // cfg.q):
        q_tile = nl.load(q[:, t * cfg.q:(t + 1) * cfg.q]) * (1 / d ** 0.5)
        m = nl.full((cfg.q, 1), fill_value=NEG, dtype=nl.float32)
        l = nl.zeros((cfg.q, 1), dtype=nl.float32)
        o = nl.zeros((cfg.q, d), dtype=nl.float32)
        first = max(0, (t * cfg.q - window + 1) // cfg.k)
        for c in nl.static_range(first, t + 1):
            k_tile = nl.load(k[:, c * cfg.k:(c + 1) * cfg.k])
            v_tile = nl.load(v[c * cfg.k:(c + 1) * cfg.k, :])
            s = nl.copy(nisa.nc_matmul(q_tile, k_tile))
            s = nisa.affine_select(pred=(t * cfg.q + ip >= c * cfg.k + jf), on_true_tile=s, on_false_value=NEG)
            s = nisa.affine_select(pred=(t * cfg.q + ip - c * cfg.k - jf < window), on_true_tile=s, on_false_value=NEG)
            m, l, alpha, p = _online_update(m, l, s, ip)
            pt = nl.copy(nl.transpose(p))
            o = o * alpha + nl.matmul(pt, v_tile, transpose_x=True)
        nl.store(out[t * cfg.q:(t + 1) * cfg.q, :], o / l)
    return out


@nki.jit
def gqa_decode(q, k_cache, v_cache, lengths_scale):
    """
    q: (heads, d); k_cache: (kv_heads, d, s); v_cache: (kv_heads, s, d)
    one new token, grouped heads
    """
    H, D = q.shape
    KV, _, S = k_cache.shape
    G = H // KV
    out = nl.ndarray((H, D), dtype=q.dtype, buffer=nl.shared_hbm)
    for kv in nl.affine_range(KV):
        qt = nl.load_transpose2d(q[kv * G:(kv + 1) * G, :])     # (D, G)
        kt = nl.load(k_cache[kv])
        s = nl.matmul(qt, kt, transpose_x=True)                  # (G, S)
        s = nl.multiply(s, lengths_scale)
        p = nl.softmax(s, axis=[1])
        acc = nl.zeros((G, D), dtype=nl.float32, buffer=nl.psum)
        for c in nl.affine_range(S // 128):
            pt = nl.copy(nisa.nc_transpose(p[:, nl.ds(c * 128, 128)]))
            acc[...] += nisa.nc_matmul(pt, nl.load(v_cache[kv, nl.ds(c * 128, 128), :]))
        nl.store(out[kv * G:(kv + 1) * G, :], value=acc)
    return out


@nki.jit
def attention_softcap(q, k, v, cap=30.0):
    D, N = q.shape
    out = nl.ndarray((N, D), dtype=q.dtype, buffer=nl.shared_hbm)
    logits = nl.matmul(nl.load(q), nl.load(k), transpose_x=True)
    logits = cap * nl.tanh(logits / cap)
    probs = nl.softmax(logits, axis=-1)
    nl.store(out, nl.matmul(probs, nl.load(v)))
    return out
