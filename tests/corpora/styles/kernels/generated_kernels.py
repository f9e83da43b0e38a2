import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt
from neuronxcc.nki import trace
from neuronxcc.nki.language import par_dim


# --- generated; do not edit ---
@nki.jit
def fused_mul_add_g0(v1, v2, v3):
  v4 = nl.ndarray((4, 128, 256), dtype=np.float32, name='v4', buffer=nl.shared_hbm)
  v5 = nl.ndarray((4, nl.par_dim(128), 256), dtype=np.float32, name='v5', buffer=nl.sbuf)
  v6 = nl.ndarray((4, nl.par_dim(128), 256), dtype=np.float32, name='v6', buffer=nl.sbuf)
  v7 = nl.ndarray((nl.par_dim(128), 1), dtype=np.float32, name='v7', buffer=nl.sbuf)
  v7[nl.arange(128)[:, None], nl.arange(1)[None, :]] = nl.load(v3[nl.arange(128)[:, None], nl.arange(1)[None, :]], dtype=np.float32, mask=None)
  for i0 in nl.affine_range(4):
    v5[i0, nl.arange(128)[:, None], nl.arange(256)[None, :]] = nl.load(v1[128*i0+nl.arange(128)[:, None], nl.arange(256)[None, :]], dtype=np.float32, mask=None)
    v6[i0, nl.arange(128)[:, None], nl.arange(256)[None, :]] = nl.load(v2[128*i0+nl.arange(128)[:, None], nl.arange(256)[None, :]], dtype=np.float32, mask=None)
    v5[i0, nl.arange(128)[:, None], nl.arange(256)[None, :]] = nl.multiply(v5[i0, nl.arange(128)[:, None], nl.arange(256)[None, :]], v6[i0, nl.arange(128)[:, None], nl.arange(256)[None, :]], mask=None, dtype=np.float32)
    v5[i0, nl.arange(128)[:, None], nl.arange(256)[None, :]] = nisa.tensor_scalar(v5[i0, nl.arange(128)[:, None], nl.arange(256)[None, :]], op0=np.add, operand0=v7[nl.arange(128)[:, None], 0], mask=None, dtype=np.float32)
  for i1 in nl.affine_range(4):
    nl.store(v4[i1, nl.arange(128)[:, None], nl.arange(256)[None, :]], v5[i1, nl.arange(128)[:, None], nl.arange(256)[None, :]], mask=None)
  return v4


@nki.jit
def blocked_gemm_g1(v1, v2):
  v3 = nl.ndarray((256, 512), dtype=nl.float32, buffer=nl.shared_hbm)
  v4 = nl.zeros(shape=(2, nl.par_dim(128), 512), dtype=np.float32, name='acc', buffer=nl.sbuf)
  v5 = nl.ndarray((2, 2, nl.par_dim(128), 128), dtype=nl.bfloat16, name='lhs', buffer=nl.sbuf)
  v6 = nl.ndarray((2, nl.par_dim(128), 512), dtype=nl.bfloat16, name='rhs', buffer=nl.sbuf)
  for i0 in nl.affine_range(2):
    v6[i0, nl.arange(128)[:, None], nl.arange(512)[None, :]] = nl.load(v2[128*i0+nl.arange(128)[:, None], nl.arange(512)[None, :]], dtype=nl.bfloat16)
    for i1 in nl.affine_range(2):
      v5[i0, i1, nl.arange(128)[:, None], nl.arange(128)[None, :]] = nl.load(v1[128*i0+nl.arange(128)[:, None], 128*i1+nl.arange(128)[None, :]], dtype=nl.bfloat16)
  for i2 in nl.affine_range(2):
    v7 = nl.zeros((nl.par_dim(128), 512), dtype=np.float32, name='psum', buffer=nl.psum)
    for i3 in nl.affine_range(2):
      v7[nl.arange(128)[:, None], nl.arange(512)[None, :]] += nisa.nc_matmul(v5[i3, i2, nl.arange(128)[:, None], nl.arange(128)[None, :]][nl.arange(128)[:, None], nl.arange(128)[None, :]], v6[i3, nl.arange(128)[:, None], nl.arange(512)[None, :]], mask=None)
    v4[i2, nl.arange(128)[:, None], nl.arange(512)[None, :]] = nl.copy(v7[nl.arange(128)[:, None], nl.arange(512)[None, :]], dtype=np.float32)
  for i4 in nl.affine_range(2):
    nl.store(v3[128*i4+nl.arange(128)[:, None], nl.arange(512)[None, :]], v4[i4, nl.arange(128)[:, None], nl.arange(512)[None, :]])
  return v3


@nki.jit
def reduce_loop_g2(x):
  out = nl.ndarray((128, 1), dtype=np.float32, buffer=nl.shared_hbm)
  part = nl.ndarray((par_dim(128), 1), dtype=np.float32, buffer=nl.sbuf, name='part')
  for c in nl.affine_range(8):
    t = nl.load(x[nl.arange(128)[:, None], 64*c+nl.arange(64)[None, :]], dtype=np.float32)
    s = nl.ndarray((par_dim(128), 1), dtype=np.float32, buffer=nl.sbuf)
    s[nl.arange(128)[:, None], nl.arange(1)[None, :]] = nl.max(t[nl.arange(128)[:, None], nl.arange(64)[None, :]], axis=[1], keepdims=True, dtype=np.float32)
    part[nl.arange(128)[:, None], nl.arange(1)[None, :]] = nl.loop_reduce(s, op=np.max, loop_indices=[c], dtype=np.float32)
  nl.store(out[nl.arange(128)[:, None], nl.arange(1)[None, :]], part[nl.arange(128)[:, None], nl.arange(1)[None, :]])
  return out


@nki.jit
def silu_gate_g3(g, u):
  """auto-tuned variant 17/256"""
  rows, cols = 300, 384
  o = nl.ndarray((300, 384), dtype=g.dtype, buffer=nl.shared_hbm)
  for i0 in nl.affine_range(3):
    for i1 in nl.affine_range(3):
      a = nl.load(g[128*i0+nl.arange(128)[:, None], 128*i1+nl.arange(128)[None, :]], mask=(-128*i0 + -1*nl.arange(128)[:, None]+299 >= 0))
      b = nl.load(u[128*i0+nl.arange(128)[:, None], 128*i1+nl.arange(128)[None, :]], mask=(-128*i0 + -1*nl.arange(128)[:, None]+299 >= 0))
      c = nisa.activation(op=nl.sigmoid, data=a[nl.arange(128)[:, None], nl.arange(128)[None, :]], bias=None, scale=1.0, mask=(-128*i0 + -1*nl.arange(128)[:, None]+299 >= 0))
      d = nisa.tensor_tensor(a, c, op=np.multiply, mask=(-128*i0 + -1*nl.arange(128)[:, None]+299 >= 0))
      e = nisa.tensor_tensor(d, b, np.multiply, mask=(-128*i0 + -1*nl.arange(128)[:, None]+299 >= 0))
      nl.store(o[128*i0+nl.arange(128)[:, None], 128*i1+nl.arange(128)[None, :]], e, mask=(-128*i0 + -1*nl.arange(128)[:, None]+299 >= 0))
  return o


@nki.jit
def const_matmul_g4(v1):
  v2 = nl.ndarray((128, 128), dtype=np.float32, buffer=nl.shared_hbm)
  c = nl.shared_constant(np.tril(np.ones((128, 128), dtype=np.float32)))
  tri = nl.load(c)
  ident = nl.load(nl.shared_identity_matrix(n=128, dtype=np.float32))
  a = nl.load(v1)
  p = nl.ndarray((nl.par_dim(128), 128), dtype=np.float32, buffer=nl.psum)
  p[nl.arange(128)[:, None], nl.arange(128)[None, :]] = nisa.nc_matmul(tri, a)
  s = nl.copy(p)
  q = nisa.nc_matmul(s, ident, is_stationary_onezero=False, is_moving_onezero=True, is_transpose=False)
  nl.store(v2, q)
  return v2
