"""Token-generation kernels and their host side wrappers.

The wrappers pad, choose a grid and call the kernel.
"""
import functools
import logging
import math
import os
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl

try:
    import torch
except ImportError:
    torch = None

logger = logging.getLogger(__name__)
_DEBUG = os.environ.get("NKI_WRAPPER_DEBUG", "0") == "1"


def div_ceil(n: int, d: int) -> int:
    return (n + d - 1) // d


def _check(x, **expect):
    for name, size in expect.items():
        assert size > 0, f"{name} must be positive"
    if _DEBUG:
        logger.info("%s", x)


class RotaryConfig:
    def __init__(self, head_dim: int, interleaved: bool = False):
        self.head_dim = head_dim
        self.interleaved = interleaved

    @property
    def half(self) -> int:
        return self.head_dim // 2


@nki.jit
def rotary_embedding(q: Any, cos: Any, sin: Any) -> Any:
    """q (S, H, D) with rotate-half; cos, sin (S, D // 2)"""
    S, H, D = q.shape
    half = D // 2
    out = nl.ndarray((S, H, D), dtype=q.dtype, buffer=nl.shared_hbm)
    num_tiles: int = div_ceil(S, nl.tile_size.pmax)
    for t in nl.affine_range(num_tiles):
        p = nl.arange(nl.tile_size.pmax)[:, None]
        f = nl.arange(half)[None, :]
        row = t * nl.tile_size.pmax + p
        valid = row < S
        c = nl.load(cos[row, f], mask=valid)
        s = nl.load(sin[row, f], mask=valid)
        for h in range(H):
            lo = nl.load(q[row, h, f], mask=valid)
            hi = nl.load(q[row, h, half + f], mask=valid)
            nl.store(out[row, h, f], value=nl.subtract(nl.multiply(lo, c), nl.multiply(hi, s)), mask=valid)
            nl.store(out[row, h, half + f], value=lo * s + hi * c, mask=valid)
    return out


@nki.jit
def rotary_interleaved(x, cos, sin):
    """pairs (0, 1), (2, 3), ... are rotated"""
    S, D = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i_p = nl.arange(S)[:, None]
    i_h = nl.arange(D // 2)[None, :]
    tile = nl.load(x)
    c, s = nl.load(cos), nl.load(sin)
    res = nl.ndarray((nl.par_dim(S), D), dtype=x.dtype, buffer=nl.sbuf)
    res[i_p, 2 * i_h] = tile[i_p, 2 * i_h] * c - tile[i_p, 2 * i_h + 1] * s
    res[i_p, 2 * i_h + 1] = tile[i_p, 2 * i_h + 1] * c + tile[i_p, 2 * i_h] * s
    nl.store(out[0:S, 0:D], value=res[0:S, 0:D])
    return out


@nki.jit
def kv_cache_write(cache, new_rows, position):
    """copy of `cache` (L, D) whose rows position.. hold `new_rows` (n, D); position is an int"""
    L, D = cache.shape
    n = new_rows.shape[0]
    updated = nl.ndarray((L, D), dtype=cache.dtype, buffer=nl.shared_hbm)
    for c in range(div_ceil(L, 128)):
        size = min(128, L - c * 128)
        nl.store(updated[nl.ds(c * 128, size), :], nl.load(cache[nl.ds(c * 128, size), :]))
    nl.store(updated[position:position + n, :], value=nl.load(new_rows))
    return updated


@nki.jit
def swiglu_mlp(hidden, w_gate, w_up, w_down):
    """hidden (T<=128, H); w_gate, w_up (H, I); w_down (I, H)"""
    T, H = hidden.shape
    I = w_gate.shape[1]
    _check(hidden, T=T, H=H, I=I)
    TILE = 128
    out = nl.ndarray((T, H), dtype=hidden.dtype, buffer=nl.shared_hbm)

    x_t: List[Any] = []
    for h in range(H // TILE):
        x_t.append(nl.load_transpose2d(hidden[:, h * TILE:(h + 1) * TILE]))

    act = nl.ndarray((I // TILE, nl.par_dim(TILE), T), dtype=hidden.dtype, buffer=nl.sbuf)
    for i in nl.affine_range(I // TILE):
        g = nl.zeros((TILE, T), dtype=nl.float32, buffer=nl.psum)
        u = nl.zeros((TILE, T), dtype=nl.float32, buffer=nl.psum)
        for h in range(H // TILE):
            wg = nl.load(w_gate[h * TILE:(h + 1) * TILE, i * TILE:(i + 1) * TILE])
            wu = nl.load(w_up[h * TILE:(h + 1) * TILE, i * TILE:(i + 1) * TILE])
            g += nisa.nc_matmul(wg, x_t[h])
            u += nisa.nc_matmul(wu, x_t[h])
        act[i] = nl.multiply(nl.silu(g), u)

    y = nl.zeros((T, H), dtype=nl.float32, buffer=nl.psum)
    for i in nl.affine_range(I // TILE):
        y += nisa.nc_matmul(act[i], nl.load(w_down[i * TILE:(i + 1) * TILE, :]))
    nl.store(out, value=y)
    return out


@nki.jit
def bias_gelu_residual(x, bias, residual: Optional[Any] = None, approximate: bool = False):
    rows, cols = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    b = nl.load(bias.reshape((1, cols)))
    act = nl.gelu_apprx_tanh if approximate else nl.gelu
    for r in nl.affine_range(div_ceil(rows, 128)):
        i_p, i_f = nl.mgrid[0:128, 0:cols]
        mask = r * 128 + i_p < rows
        t = nl.load(x[r * 128 + i_p, i_f], mask=mask)
        t = nl.add(t, b.broadcast_to((128, cols)), mask=mask)
        t = act(t, mask=mask)
        if residual is not None:
            t = nl.add(t, nl.load(residual[r * 128 + i_p, i_f], mask=mask), mask=mask)
        nl.store(out[r * 128 + i_p, i_f], t, mask=mask)
    return out


def run_rotary(q, cos, sin):
    """host side: numpy in, numpy out"""
    kernel = functools.partial(rotary_embedding)
    return nki.simulate_kernel(rotary_embedding, q, cos, sin)


if torch is not None:
    class RotaryFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, cos, sin):
            return rotary_embedding(q, cos, sin)
