"""Kernels of the first releases: the output is an argument."""
import numpy as np
from neuronxcc.nki import baremetal, benchmark, simulate_kernel
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import neuronxcc.nki.isa as nisa


@nki.jit(kernel_return=False)
def add_into(a_ptr, b_ptr, c_ptr):
    ix = nl.arange(128)[:, None]
    iy = nl.arange(256)[None, :]
    tile = nl.load(a_ptr[ix, iy]) + nl.load(b_ptr[ix, iy])
    nl.store(c_ptr[ix, iy], value=tile)


@nki.jit(kernel_return=False, mode="simulation")
def exp_into(in_tensor, out_tensor):
    sz_p, sz_f = in_tensor.shape
    i_f = nl.arange(sz_f)[None, :]
    for p in nl.affine_range((sz_p + 127) // 128):
        i_p = p * 128 + nl.arange(128)[:, None]
        in_tile = nl.load(in_tensor[i_p, i_f], mask=(i_p < sz_p))
        out_tile = nl.exp(in_tile)
        nl.store(out_tensor[i_p, i_f], value=out_tile, mask=(i_p < sz_p))


@nki.jit(kernel_return=False)
def split_into(x, left, right):
    n, m = x.shape
    h = m // 2
    t = nl.load(x)
    nl.store(left, value=t[:, :h])
    nl.store(right, value=t[:, h:])


if __name__ == "__main__":
    a = np.random.rand(128, 256).astype(np.float32)
    b = np.random.rand(128, 256).astype(np.float32)
    c = np.empty((128, 256), dtype=np.float32)
    add_into(a, b, c)
    assert np.allclose(c, a + b)
    x = np.random.rand(200, 64).astype(np.float32)
    y = np.zeros_like(x)
    exp_into(x, y)
