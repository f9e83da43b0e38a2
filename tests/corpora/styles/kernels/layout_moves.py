from neuronxcc import nki
import neuronxcc.nki.language as nl
import neuronxcc.nki.isa as nisa
import numpy as np


@nki.jit
def transpose_inner(in_tensor, shape2D):
  """
  in_tensor: (P, F1*F2); out: (P, F2*F1), every row a transposed matrix
  """
  out_tensor = nl.ndarray(in_tensor.shape, dtype=in_tensor.dtype, buffer=nl.shared_hbm)
  sz_p, _ = in_tensor.shape
  sz_f1, sz_f2 = shape2D[0], shape2D[1]
  i_p0 = nl.arange(sz_p)[:, None, None]
  i_f1 = nl.arange(sz_f1)[None, :, None]
  i_f2 = nl.arange(sz_f2)[None, None, :]
  sz_f3 = sz_f1 * sz_f2
  in_tile = nl.load(in_tensor)
  out_tile = nl.ndarray(shape=(sz_p, sz_f2*sz_f1), dtype=in_tensor.dtype)
  out_tile[i_p0, i_f2*sz_f1+i_f1] = nl.copy(in_tile[i_p0, i_f1*sz_f2+i_f2], dtype=in_tensor.dtype)
  nl.store(out_tensor, value=out_tile)
  return out_tensor


@nki.jit
def deinterleave(x):
  n, m = x.shape
  even = nl.ndarray((n, m // 2), dtype=x.dtype, buffer=nl.shared_hbm)
  odd = nl.ndarray((n, m // 2), dtype=x.dtype, buffer=nl.shared_hbm)
  p, f = nl.mgrid[0:n, 0:m // 2]
  t = nl.load(x)
  nl.store(even[p, f], value=t[p, 2 * f])
  nl.store(odd[p, f], value=t[p, 2 * f + 1])
  return even, odd


@nki.jit
def pixel_shuffle(x, r):
  """(C * r * r, H, W) -> (C, H * r, W * r)"""
  crr, H, W = x.shape
  C = crr // (r * r)
  out = nl.ndarray((C, H * r, W * r), dtype=x.dtype, buffer=nl.shared_hbm)
  view = x.reshape((C, r * r, H, W))
  for a in range(r):
    for b in range(r):
      t = nl.load(view[:, a * r + b])
      i_c = nl.arange(C)[:, None, None]
      i_h = nl.arange(H)[None, :, None]
      i_w = nl.arange(W)[None, None, :]
      nl.store(out[i_c, r * i_h + a, r * i_w + b], value=t)
  return out


@nki.jit
def nchw_to_nhwc(x):
  N, C, H, W = x.shape
  out = nl.ndarray((N, H, W, C), dtype=x.dtype, buffer=nl.shared_hbm)
  flat_in = x.reshape((N, C, H * W))
  flat_out = out.reshape((N, H * W, C))
  for n in nl.affine_range(N):
    for s in nl.affine_range((H * W + 127) // 128):
      i_c = nl.arange(C)[:, None]
      i_s = nl.arange(128)[None, :]
      t = nl.load(flat_in[n, i_c, s * 128 + i_s], mask=(s * 128 + i_s < H * W))
      tt = nisa.nc_transpose(t)
      o_s = nl.arange(128)[:, None]
      o_c = nl.arange(C)[None, :]
      nl.store(flat_out[n, s * 128 + o_s, o_c], value=tt, mask=(s * 128 + o_s < H * W))
  return out


@nki.jit
def split_heads(x, heads):
  """(S, heads * D) -> (heads, S, D)"""
  S, HD = x.shape
  D = HD // heads
  out = nl.ndarray((heads, S, D), dtype=x.dtype, buffer=nl.shared_hbm)
  for s in nl.affine_range(S // 128):
    t = nl.load(x[s * 128:(s + 1) * 128, :])
    for h in nl.affine_range(heads):
      nl.store(out[h, s * 128:(s + 1) * 128, :], value=t[:, h * D:(h + 1) * D])
  return out


@nki.jit
def reverse_columns(x):
  n, m = x.shape
  out = nl.ndarray((n, m), dtype=x.dtype, buffer=nl.shared_hbm)
  t = nl.load(x)
  r = nl.ndarray((n, m), dtype=x.dtype)
  for j in range(m):
    r[:, j] = nl.copy(t[:, m - 1 - j])
  nl.store(out, r)
  return out


@nki.jit
def concat_rows(a, b):
  n1, m = a.shape
  n2, _ = b.shape
  out = nl.ndarray((n1 + n2, m), dtype=a.dtype, buffer=nl.shared_hbm)
  for src, base in ((a, 0), (b, n1)):
    rows = src.shape[0]
    for i in range((rows + 127) // 128):
      k = min(128, rows - 128 * i)
      nl.store(out[base + 128 * i:base + 128 * i + k], nl.load(src[128 * i:128 * i + k]))
  return out


@nki.jit
def load_transposed(x):
  n, m = x.shape
  out = nl.ndarray((m, n), dtype=x.dtype, buffer=nl.shared_hbm)
  for i in nl.affine_range(m // 128):
    for j in nl.affine_range(n // 128):
      t = nl.load_transpose2d(x[j * 128:(j + 1) * 128, i * 128:(i + 1) * 128])
      nl.store(out[i * 128:(i + 1) * 128, j * 128:(j + 1) * 128], t)
  return out
