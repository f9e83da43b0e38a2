import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import neuronxcc.nki.isa as nisa


@nki.jit
def quantize_rows_int8(x):
    """per-row absmax int8; returns codes and scales"""
    n, m = x.shape
    codes = nl.ndarray((n, m), dtype=nl.int8, buffer=nl.shared_hbm)
    scales = nl.ndarray((n, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    for i in nl.affine_range(n // 128):
        t = nl.load(x[i * 128:(i + 1) * 128, :])
        absmax = nl.max(nl.abs(t), axis=1, keepdims=True)
        scale = nl.maximum(absmax, 1e-8) * (1.0 / 127.0)
        q = t / scale
        q = nl.minimum(nl.maximum(q, -127.0), 127.0)
        nl.store(codes[i * 128:(i + 1) * 128, :], value=q, )
        nl.store(scales[i * 128:(i + 1) * 128, :], value=scale)
    return codes, scales


@nki.jit
def dequantize_rows(codes, scales):
    n, m = codes.shape
    out = nl.ndarray((n, m), dtype=nl.bfloat16, buffer=nl.shared_hbm)
    for i in nl.affine_range(n // 128):
        c = nl.load(codes[nl.ds(i * 128, 128), :], dtype=nl.float32)
        s = nl.load(scales[nl.ds(i * 128, 128), :])
        nl.store(out[nl.ds(i * 128, 128), :], nl.multiply(c, s, dtype=nl.bfloat16))
    return out


@nki.jit
def w8a16_matmul(x_t, w_q, w_scale):
    """x_t (K, M) bf16, w_q (K, N) int8, w_scale (1, N) f32 -> (M, N) f32"""
    K, M = x_t.shape
    N = w_q.shape[1]
    out = nl.ndarray((M, N), dtype=nl.float32, buffer=nl.shared_hbm)
    acc = nl.zeros((M, N), dtype=nl.float32, buffer=nl.psum)
    for k in nl.affine_range(K // 128):
        w = nl.load(w_q[k * 128:(k + 1) * 128, :], dtype=nl.bfloat16)
        xk = nl.load(x_t[k * 128:(k + 1) * 128, :])
        acc += nisa.nc_matmul(xk, w)
    scale = nl.load(w_scale).broadcast_to((M, N))
    nl.store(out, nl.multiply(acc, scale))
    return out


@nki.jit
def fake_quant(x, bits):
    qmax = 2 ** (bits - 1) - 1
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)
    s = nisa.tensor_scalar(t, op0=np.multiply, operand0=float(qmax), op1=np.minimum, operand1=float(qmax))
    s = nl.maximum(s, float(-qmax))
    nl.store(out, nl.floor(s + 0.5) / qmax)
    return out


@nki.jit
def to_bf16_and_back(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.load(x)
    half = nl.copy(t, dtype=nl.bfloat16)
    err = nl.subtract(t, half, dtype=nl.float32)
    nl.store(out, err)
    return out
