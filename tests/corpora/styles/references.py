"""What the kernels of this folder compute, in float64 NumPy; arguments have the kernels' names."""

import math
from typing import Any

import ml_dtypes
import numpy as np


def wide(*arrays: Any) -> Any:
    """The arrays in float64."""
    found = tuple(np.asarray(a).astype(np.float64) for a in arrays)
    return found[0] if len(found) == 1 else found


def _softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


# vectors --------------------------------------------------------------------------------------


def vector_add(a_vec, b_vec):
    return (wide(a_vec) + wide(b_vec)).astype(a_vec.dtype)


def saxpby(x, y, a=2.0, b=-0.5):
    return (a * wide(x) + b * wide(y)).astype(x.dtype)


def dot_product(u, v):
    return np.array([[np.sum(wide(u) * wide(v))]], np.float32)


def matrix_transpose(a_tensor):
    return a_tensor.T.copy()


# convolutions ---------------------------------------------------------------------------------


def fused_conv2d_maxpool(X, W, bias, pool_size=1):
    x, w = wide(X, W)
    kh, kw = w.shape[2:]
    windows = np.lib.stride_tricks.sliding_window_view(x, (kh, kw), axis=(2, 3))
    y = np.einsum("nchwij,ocij->nohw", windows, w) + wide(bias)[None, :, None, None]
    n, o, h, v = y.shape
    p = pool_size
    return y.reshape(n, o, h // p, p, v // p, p).max(axis=(3, 5)).astype(X.dtype)


def conv1d_depthwise(x, k):
    windows = np.lib.stride_tricks.sliding_window_view(wide(x), k.shape[1], axis=1)
    return np.einsum("cnw,cw->cn", windows, wide(k)).astype(x.dtype)


def im2col_1d(x, width):
    return np.lib.stride_tricks.sliding_window_view(x, width, axis=1).copy()


def conv2d_shifted_sum(img, taps):
    padded = np.pad(wide(img), ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    return np.einsum("chwij,ij->chw", windows, wide(taps)).astype(img.dtype)


def maxpool_overlapping(inp, k, s):
    windows = np.lib.stride_tricks.sliding_window_view(inp, (k, k), axis=(1, 2))
    return windows[:, ::s, ::s].max(axis=(3, 4))


# normalization --------------------------------------------------------------------------------


def layernorm(x, g, b, eps):
    z = wide(x)
    mean = z.mean(axis=1, keepdims=True)
    var = z.var(axis=1, keepdims=True)
    return ((z - mean) / np.sqrt(var + eps) * wide(g) + wide(b)).astype(x.dtype)


def layernorm_rows(input_tensor, epsilon, gamma_vector, beta_vector):
    return layernorm(input_tensor, gamma_vector, beta_vector, epsilon)


def layernorm_bn_stats(x, g, b, eps=1e-5):
    return layernorm(x, g, b, eps)


def rms_norm_weighted(a_tensor, g_tensor):
    z = wide(a_tensor)
    return (z / np.sqrt((z * z).mean(axis=1, keepdims=True)) * wide(g_tensor)).astype(np.float32)


def group_norm(x, num_groups, eps):
    n, c, hw = x.shape
    z = wide(x).reshape(n, num_groups, -1)
    z = (z - z.mean(axis=2, keepdims=True)) / np.sqrt(z.var(axis=2, keepdims=True) + eps)
    return z.reshape(n, c, hw).astype(x.dtype)


def softmax_temperature(logits, T=1.0):
    return _softmax(wide(logits) / T).astype(logits.dtype)


def l2_normalize(v, eps=1e-12):
    z = wide(v)
    return (z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), eps)).astype(v.dtype)


# attention ------------------------------------------------------------------------------------


def attention_head(q, k, v, softmax_scale=None):
    d = q.shape[0]
    scale = softmax_scale or d**-0.5
    return (_softmax(scale * wide(q).T @ wide(k)) @ wide(v)).astype(q.dtype)


def _masked(scores, keep):
    return np.where(keep, scores, -np.inf)


def attention_causal(q, k, v):
    d, n = q.shape
    i, j = np.mgrid[0:n, 0:n]
    scores = _masked(wide(q).T @ wide(k) / math.sqrt(d), i >= j)
    return (_softmax(scores) @ wide(v)).astype(q.dtype)


def attention_alibi(q, k, v, slope):
    i, j = np.mgrid[0 : q.shape[1], 0 : k.shape[1]]
    return (_softmax(wide(q).T @ wide(k) + slope * (j - i)) @ wide(v)).astype(q.dtype)


def flash_sliding_window(q, k, v, window):
    d, n = q.shape
    i, j = np.mgrid[0:n, 0:n]
    scores = _masked(wide(q).T @ wide(k) / math.sqrt(d), (i >= j) & (i - j < window))
    return (_softmax(scores) @ wide(v)).astype(q.dtype)


def gqa_decode(q, k_cache, v_cache, lengths_scale):
    group = q.shape[0] // k_cache.shape[0]
    k, v = (np.repeat(wide(c), group, axis=0) for c in (k_cache, v_cache))
    scores = np.einsum("hd,hds->hs", wide(q), k) * lengths_scale
    return np.einsum("hs,hsd->hd", _softmax(scores), v).astype(q.dtype)


def attention_softcap(q, k, v, cap=30.0):
    scores = cap * np.tanh(wide(q).T @ wide(k) / cap)
    return (_softmax(scores) @ wide(v)).astype(q.dtype)


# generated ------------------------------------------------------------------------------------


def fused_mul_add_g0(v1, v2, v3):
    return (wide(v1) * wide(v2) + np.tile(wide(v3), (4, 1))).reshape(4, 128, 256).astype(np.float32)


def blocked_gemm_g1(v1, v2):
    a, b = (wide(v.astype(ml_dtypes.bfloat16)) for v in (v1, v2))
    return (a.T @ b).astype(np.float32)


def reduce_loop_g2(x):
    return x.max(axis=1, keepdims=True)


def silu_gate_g3(g, u):
    return (wide(g) / (1 + np.exp(-wide(g))) * wide(u)).astype(np.float32)


def const_matmul_g4(v1):
    return (np.tril(np.ones((128, 128))).T @ wide(v1)).T.astype(np.float32)


# serving --------------------------------------------------------------------------------------


def rotary_embedding(q, cos, sin):
    half = q.shape[2] // 2
    lo, hi = wide(q)[..., :half], wide(q)[..., half:]
    c, s = wide(cos)[:, None, :], wide(sin)[:, None, :]
    return np.concatenate([lo * c - hi * s, lo * s + hi * c], axis=2).astype(q.dtype)


def rotary_interleaved(x, cos, sin):
    z, c, s = wide(x, cos, sin)
    out = np.empty_like(z)
    out[:, 0::2] = z[:, 0::2] * c - z[:, 1::2] * s
    out[:, 1::2] = z[:, 1::2] * c + z[:, 0::2] * s
    return out.astype(x.dtype)


def kv_cache_write(cache, new_rows, position):
    out = cache.copy()
    out[position : position + len(new_rows)] = new_rows
    return out


def swiglu_mlp(hidden, w_gate, w_up, w_down):
    g, u = wide(hidden) @ wide(w_gate), wide(hidden) @ wide(w_up)
    return (g / (1 + np.exp(-g)) * u @ wide(w_down)).astype(hidden.dtype)


def _gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def _gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def bias_gelu_residual(x, bias, residual=None, approximate=False):
    act = _gelu_tanh if approximate else _gelu
    y = act(wide(x) + wide(bias))
    return (y if residual is None else y + wide(residual)).astype(x.dtype)


# matrix products ------------------------------------------------------------------------------


def gemm(lhsT, rhs):
    return (wide(lhsT).T @ wide(rhs)).astype(lhsT.dtype)


def gemm_v2_rowmajor(lhs, rhs):
    return (wide(lhs) @ wide(rhs)).astype(np.float32)


def gemm_v3_blocked(lhsT, rhs, BM=2, BK=2):
    return gemm(lhsT, rhs)


def gemm_bias_act(x_t, w, b, activation="relu"):
    z = wide(x_t).T @ wide(w) + wide(b)
    acts = {"relu": lambda t: np.maximum(t, 0), "sigmoid": lambda t: 1 / (1 + np.exp(-t))}
    return acts.get(activation, lambda t: t)(z).astype(x_t.dtype)


# reductions -----------------------------------------------------------------------------------


def logsumexp(x):
    z = wide(x)
    m = z.max(axis=1, keepdims=True)
    return (np.log(np.exp(z - m).sum(axis=1, keepdims=True)) + m).astype(np.float32)


def row_argmax(x):
    return x.argmax(axis=1)[:, None].astype(np.uint32)


def sum_middle_axis(x):
    return wide(x).sum(axis=1).astype(x.dtype)


def max_axis1_of_3d(x):
    return x.max(axis=1)


def two_axes_at_once(x):
    return wide(x).sum(axis=(1, 2))[:, None].astype(np.float32)


def sum_over_partitions(x):
    return wide(x).sum(axis=0, keepdims=True).astype(x.dtype)


def mean_and_std(x):
    z = wide(x)
    mean, std = z.mean(axis=1, keepdims=True), z.std(axis=1, keepdims=True)
    return mean.astype(np.float32), std.astype(np.float32)


def running_max_chunks(x, chunk=64):
    n, m = x.shape
    return np.maximum.accumulate(x.reshape(n, m // chunk, chunk).max(axis=2), axis=1)


def min_max_scale(x):
    z = wide(x)
    lo, hi = z.min(axis=1, keepdims=True), z.max(axis=1, keepdims=True)
    return ((z - lo) / (hi - lo)).astype(x.dtype)


def any_above(x, limit):
    return (x > limit).any(axis=1, keepdims=True).astype(np.uint8)


def cosine_similarity(a, b):
    p, q = wide(a, b)
    norms = np.sqrt((p * p).sum(axis=1) * (q * q).sum(axis=1))
    return ((p * q).sum(axis=1) / norms)[:, None].astype(np.float32)


# masks ----------------------------------------------------------------------------------------


def lower_triangle(x):
    return np.tril(x)


def shift_right(x, k):
    out = np.zeros_like(x)
    out[:, k:] = x[:, : x.shape[1] - k]
    return out


def ragged_copy(x):
    return -x


def even_rows_only(x):
    return x[::2].copy()


def interior_only(x, margin):
    out = np.zeros_like(x)
    inner = (slice(margin, -margin),) * 2
    out[inner] = x[inner]
    return out


def banded_multiply(x, lo, hi):
    i, j = np.mgrid[0 : x.shape[0], 0 : x.shape[1]]
    return np.where((j - i >= -lo) & (j - i <= hi), x, np.zeros_like(x))


def accumulate_first(x, tiles):
    return wide(x)[: tiles * 128].reshape(tiles, 128, -1).sum(axis=0).astype(x.dtype)


def select_where(cond, a, b):
    return np.where(cond > 0, a, b)


def copy_positive(src, dst):
    return np.where(src > 0, src, dst)


def last_chunk_mean(x, chunk):
    return wide(x).mean(axis=1, keepdims=True).astype(np.float32)


# gather and scatter ---------------------------------------------------------------------------


def embedding_lookup(table, ids):
    return table[ids[:, 0]]


def scatter_rows(values, ids, capacity):
    out = np.zeros((capacity, values.shape[1]), values.dtype)
    out[ids[:, 0]] = values
    return out


def one_hot(ids, depth):
    return (ids == np.arange(depth)[None, :]).astype(np.float32)


def router_top1(x_t, w):
    p = _softmax(wide(x_t).T @ wide(w))
    return np.where(p == p.max(axis=1, keepdims=True), p, 0).astype(np.float32)


def paged_gather(pool, block_table, block):
    return pool[block_table[0]].reshape(-1, pool.shape[2])


def expert_mix(x, gates, w):
    return np.einsum("dt,te,edo->to", wide(x), wide(gates), wide(w)).astype(x.dtype)


# scans ----------------------------------------------------------------------------------------


def cumulative_sum(x):
    return np.cumsum(wide(x), axis=1).astype(x.dtype)


def ema(x, alpha):
    z, state = np.empty(x.shape), np.zeros(x.shape[0])
    for t in range(x.shape[1]):
        state = (1 - alpha) * state + alpha * wide(x)[:, t]
        z[:, t] = state
    return z.astype(x.dtype)


def selective_state(delta, u, A, B, C):
    d, x, a, b, c = wide(delta, u, A, B, C)
    state, y = np.zeros(a.shape), np.empty(x.shape)
    for t in range(x.shape[1]):
        state = np.exp(d[:, t, None] * a) * state + d[:, t, None] * x[:, t, None] * b[:, t]
        y[:, t] = state @ c[:, t]
    return y.astype(delta.dtype)


def elman_rnn(x, w_t, h0):
    h, out = wide(h0)[:, 0], np.empty(x.shape)
    for t in range(x.shape[1]):
        h = np.tanh(wide(w_t).T @ h + wide(x)[:, t])
        out[:, t] = h
    return out.astype(x.dtype)


def linear_attention(q, k, v):
    return (wide(q).T @ (wide(k).T @ wide(v))).astype(q.dtype)


# layouts --------------------------------------------------------------------------------------


def transpose_inner(in_tensor, shape2D):
    n, (a, b) = in_tensor.shape[0], shape2D
    return in_tensor.reshape(n, a, b).transpose(0, 2, 1).reshape(n, a * b)


def deinterleave(x):
    return x[:, 0::2].copy(), x[:, 1::2].copy()


def pixel_shuffle(x, r):
    crr, h, w = x.shape
    c = crr // (r * r)
    return x.reshape(c, r, r, h, w).transpose(0, 3, 1, 4, 2).reshape(c, h * r, w * r)


def nchw_to_nhwc(x):
    return x.transpose(0, 2, 3, 1).copy()


def split_heads(x, heads):
    return x.reshape(x.shape[0], heads, -1).transpose(1, 0, 2).copy()


def reverse_columns(x):
    return x[:, ::-1].copy()


def concat_rows(a, b):
    return np.concatenate([a, b])


def load_transposed(x):
    return x.T.copy()


# optimizers -----------------------------------------------------------------------------------


def sgd_momentum(param, grad, velocity, lr, mu):
    v = mu * wide(velocity) + wide(grad)
    return (wide(param) - lr * v).astype(param.dtype), v.astype(velocity.dtype)


def adamw(param, grad, m, v, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, wd=0.01, step=1):
    w, g, mt, vt = wide(param, grad, m, v)
    mt = beta1 * mt + (1 - beta1) * g
    vt = beta2 * vt + (1 - beta2) * g * g
    update = mt / (1 - beta1**step) / (np.sqrt(vt / (1 - beta2**step)) + eps)
    w = w * (1 - lr * wd) - lr * update
    return tuple(t.astype(np.float32) for t in (w, mt, vt))


def clip_by_value(x, lo, hi):
    return np.clip(x, lo, hi)


def global_norm_squared(x):
    return np.array([[np.sum(wide(x) ** 2)]], np.float32)


def lion(param, grad, mom, lr, b1, b2):
    w, g, m = wide(param, grad, mom)
    return (
        (w - lr * np.sign(m * b1 + g * (1 - b1))).astype(np.float32),
        (m * b2 + g * (1 - b2)).astype(np.float32),
    )


# quantization ---------------------------------------------------------------------------------


def quantize_rows_int8(x):
    scale = np.maximum(np.abs(x).max(axis=1, keepdims=True), np.float32(1e-8)) * np.float32(1 / 127)
    return np.rint(np.clip(x / scale, -127, 127)).astype(np.int8), scale


def dequantize_rows(codes, scales):
    return (wide(codes) * wide(scales)).astype(ml_dtypes.bfloat16)


def w8a16_matmul(x_t, w_q, w_scale):
    return (wide(x_t).T @ wide(w_q) * wide(w_scale)).astype(np.float32)


def fake_quant(x, bits):
    q = 2 ** (bits - 1) - 1
    return (np.floor(np.clip(x * np.float32(q), -q, q) + np.float32(0.5)) / q).astype(np.float32)


def to_bf16_and_back(x):
    return (wide(x) - wide(x.astype(ml_dtypes.bfloat16))).astype(np.float32)


# images ---------------------------------------------------------------------------------------


def rgb_to_gray(img):
    return np.einsum("chw,c->hw", wide(img), np.array([0.299, 0.587, 0.114])).astype(img.dtype)


def avg_pool(in_tensor, pool_size):
    c, h, w = in_tensor.shape
    p = pool_size
    return wide(in_tensor).reshape(c, h // p, p, w // p, p).mean(axis=(2, 4)).astype(np.float32)


def sobel_x(img):
    windows = np.lib.stride_tricks.sliding_window_view(wide(img), (3, 3), axis=(1, 2))
    taps = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    return np.einsum("chwij,ij->chw", windows, taps).astype(img.dtype)


def upsample_nearest(x, s):
    return x.repeat(s, axis=1).repeat(s, axis=2)


def gamma_correct(img, gamma):
    return (np.maximum(wide(img), 1e-6) ** gamma).astype(img.dtype)


def normalize_channels(img, mean, std):
    return ((wide(img) - np.array(mean)[:, None]) / np.array(std)[:, None]).astype(img.dtype)


def box_blur_rows(img, radius):
    windows = np.lib.stride_tricks.sliding_window_view(wide(img), 2 * radius + 1, axis=1)
    return windows.mean(axis=2).astype(img.dtype)


# grids ----------------------------------------------------------------------------------------


def spmd_add(a_input, b_input):
    return (wide(a_input) + wide(b_input)).astype(a_input.dtype)


def spmd_batched_softmax(x):
    return _softmax(wide(x)).astype(x.dtype)


def spmd_heads_matmul(q, k):
    return np.einsum("bhdn,bhdm->bhnm", wide(q), wide(k)).astype(q.dtype)


def spmd_rows_strided(x):
    return (wide(x) ** 2).astype(x.dtype)


# Python ---------------------------------------------------------------------------------------


def mean_of_blocks(x):
    return wide(x).reshape(-1, 128, x.shape[1]).mean(axis=0).astype(x.dtype)


def polynomial(x, coeffs):
    return np.polyval(coeffs, wide(x)).astype(x.dtype)


def sum_many(a, b, c, d):
    return np.sum(wide(a, b, c, d), axis=0).astype(a.dtype)


def elementwise_by_name(x, name="relu", options=None):
    options = options or {"scale": 1.0, "shift": 0.0}
    acts = {"relu": lambda t: np.maximum(t, 0), "tanh": np.tanh, "gelu": _gelu}
    return (acts[name](wide(x) * options["scale"]) + options["shift"]).astype(x.dtype)


def taps_in_list(x, taps):
    windows = np.lib.stride_tricks.sliding_window_view(wide(x), len(taps), axis=1)
    return (windows @ np.array(taps)).astype(x.dtype)


def two_or_three_dims(x):
    return np.abs(x.reshape(-1, x.shape[-1]))


def pingpong_blocks(x, rounds):
    z, h = wide(x), x.shape[1] // 2
    for _ in range(rounds):
        z = np.concatenate([(z[:, :h] + z[:, h:]) / 2, (z[:, :h] - z[:, h:]) / 2], axis=1)
    return z.astype(x.dtype)


def nested_functions(x, y):
    return ((wide(x) - wide(y)) ** 2).astype(x.dtype)


def double(x):
    return 2 * x


def long_expression(x, a, b, c):
    t = wide(x)
    return np.maximum((t * a + b) * (t - c) / (np.exp(-t) + 1), 0).astype(x.dtype)


def while_halving(x):
    return wide(x).sum(axis=1, keepdims=True).astype(x.dtype)


# outputs as arguments -------------------------------------------------------------------------


def add_into(a_ptr, b_ptr, c_ptr):
    return (wide(a_ptr) + wide(b_ptr)).astype(np.float32)


def exp_into(in_tensor, out_tensor):
    return np.exp(wide(in_tensor)).astype(np.float32)


def split_into(x, left, right):
    half = x.shape[1] // 2
    return x[:, :half].copy(), x[:, half:].copy()


# numerics -------------------------------------------------------------------------------------


def gelu_by_hand(x):
    return _gelu_tanh(wide(x)).astype(x.dtype)


def log_softmax(x):
    z = wide(x)
    z = z - z.max(axis=1, keepdims=True)
    return (z - np.log(np.exp(z).sum(axis=1, keepdims=True))).astype(np.float32)


def cross_entropy(logits, labels):
    z = wide(logits)
    picked = np.take_along_axis(z, labels.astype(np.int64), axis=1)
    return (wide(logsumexp(logits)) - picked).astype(np.float32)


def newton_rsqrt(x, iters):
    return (1 / np.sqrt(wide(x))).astype(x.dtype)


def mish_and_grad(x):
    t = wide(x)
    th, sg = np.tanh(np.log1p(np.exp(t))), 1 / (1 + np.exp(-t))
    return (t * th).astype(x.dtype), (th + t * sg * (1 - th * th)).astype(x.dtype)


def power_iteration_step(a, v):
    w = wide(a).T @ wide(v)
    return (w / np.linalg.norm(w)).astype(a.dtype)


def int_bits(x, shift):
    return (x >> shift) & 1


def complex_multiply(ar, ai, br, bi):
    a, b, c, d = wide(ar, ai, br, bi)
    return (a * c - b * d).astype(ar.dtype), (a * d + b * c).astype(ar.dtype)
