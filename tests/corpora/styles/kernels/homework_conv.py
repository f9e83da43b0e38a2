import numpy as np
import math

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import neuronxcc.nki.isa as nisa
from neuronxcc.nki import baremetal


"""
A fused convolution - maxpool kernel that you need to implement for Part 2.

expect: X.shape == [batch_size, in_channels, input_height, input_width]
expect: W.shape == [out_channels, in_channels, filter_height, filter_width]
expect: bias.shape == [out_channels]
"""
@nki.jit
def fused_conv2d_maxpool(X, W, bias, pool_size=1):

    batch_size, in_channels, input_height, input_width = X.shape
    out_channels, in_channels_, filter_height, filter_width = W.shape
    out_channels_ = bias.shape[0]

    assert (
        in_channels_ == in_channels and out_channels_ == out_channels
    ), f"Shape mismatch. {in_channels_} {in_channels} {out_channels_} {out_channels}"

    out_height = input_height - filter_height + 1
    out_width = input_width - filter_width + 1
    out_pool_height = out_height // pool_size
    out_pool_width = out_width // pool_size

    # Various tiling dimensions (You may want to define more of them)
    c_in_pmax = nl.tile_size.pmax
    n_tiles_c_in = in_channels // c_in_pmax
    c_out_pmax = c_in_pmax
    n_tiles_c_out = out_channels // c_out_pmax

    # Initialize output array
    X_out = nl.ndarray(
        shape=(batch_size, out_channels, out_pool_height, out_pool_width),
        dtype=X.dtype,
        buffer=nl.hbm,
    )

    # - load in the weights into an SBUF array of shape (n_tiles_out_channels, nl.par_dim(c_out_pmax), n_tiles_in_channels, 128, kernel_height, kernel_width)
    W_sbuf = nl.ndarray((n_tiles_c_out, nl.par_dim(c_out_pmax), n_tiles_c_in, c_in_pmax, filter_height, filter_width), dtype=W.dtype, buffer=nl.sbuf)
    W_r = W.reshape((n_tiles_c_out, c_out_pmax, n_tiles_c_in, c_in_pmax, filter_height, filter_width))
    for co in nl.affine_range(n_tiles_c_out):
        W_sbuf[co] = nl.load(W_r[co])

    # - transpose every weight tile so that in-channels are on partitions
    w = nl.ndarray((filter_height, filter_width, n_tiles_c_out, n_tiles_c_in, nl.par_dim(c_in_pmax), c_out_pmax), dtype=W.dtype, buffer=nl.sbuf)
    for i in nl.affine_range(filter_height):
        for j in nl.affine_range(filter_width):
            for co in nl.affine_range(n_tiles_c_out):
                for ci in nl.affine_range(n_tiles_c_in):
                    w[i, j, co, ci, :, :] = nisa.nc_transpose(W_sbuf[co, :, ci, :, i, j])

    bias_sb = nl.ndarray((n_tiles_c_out, nl.par_dim(c_out_pmax), 1), dtype=bias.dtype, buffer=nl.sbuf)
    bias_r = bias.reshape((n_tiles_c_out, c_out_pmax, 1))
    for co in nl.affine_range(n_tiles_c_out):
        bias_sb[co] = nl.load(bias_r[co])

    # Process the images in batches
    for b in nl.affine_range(batch_size):
        x = nl.ndarray((n_tiles_c_in, nl.par_dim(c_in_pmax), input_height, input_width), dtype=X.dtype, buffer=nl.sbuf)
        for ci in nl.affine_range(n_tiles_c_in):
            x[ci] = nl.load(X[b, ci * c_in_pmax:(ci + 1) * c_in_pmax])
        for co in nl.affine_range(n_tiles_c_out):
            out_sb = nl.ndarray((nl.par_dim(c_out_pmax), out_height, out_width), dtype=X.dtype, buffer=nl.sbuf)
            for r in nl.affine_range(out_height):
                row = nl.zeros((c_out_pmax, out_width), nl.float32, buffer=nl.psum)
                for i in nl.affine_range(filter_height):
                    for j in nl.affine_range(filter_width):
                        for ci in nl.affine_range(n_tiles_c_in):
                            row += nl.matmul(w[i, j, co, ci], x[ci, :, r + i, j:j + out_width], transpose_x=True)
                out_sb[:, r, :] = nisa.tensor_scalar(row, np.add, bias_sb[co])

            i_0 = nl.arange(c_out_pmax)[:, None, None, None, None]
            i_1 = nl.arange(out_pool_height)[None, :, None, None, None]
            i_2 = nl.arange(pool_size)[None, None, :, None, None]
            i_3 = nl.arange(out_pool_width)[None, None, None, :, None]
            i_4 = nl.arange(pool_size)[None, None, None, None, :]
            pooled = nl.max(out_sb[i_0, pool_size * i_1 + i_2, pool_size * i_3 + i_4], axis=[2, 4])
            nl.store(X_out[b, co * c_out_pmax:(co + 1) * c_out_pmax], value=pooled)

    return X_out


@nki.jit
def conv1d_depthwise(x, k):
    """x (C, L), k (C, W): valid convolution of every channel with its own taps."""
    C, L = x.shape
    _, W = k.shape
    n = L - W + 1
    y = nl.ndarray((C, n), dtype=x.dtype, buffer=nl.shared_hbm)
    ip, jo = nl.mgrid[0:C, 0:n]
    xs = nl.load(x)
    ks = nl.load(k)
    acc = nl.zeros((C, n), dtype=nl.float32)
    for t in nl.static_range(W):
        acc[ip, jo] = acc[ip, jo] + xs[ip, jo + t] * ks[:, t]
    nl.store(y[ip, jo], value=acc)
    return y


@nki.jit
def im2col_1d(x, width):
  C, L = x.shape; n = L - width + 1
  out = nl.ndarray((C, n, width), dtype=x.dtype, buffer=nl.shared_hbm)
  xs = nl.load(x)
  p = nl.arange(C)[:, None, None]; i = nl.arange(n)[None, :, None]; w = nl.arange(width)[None, None, :]
  # every window is a view of the same row
  nl.store(out, value=xs[p, i + w])
  return out


@nki.jit
def conv2d_shifted_sum(img, taps):
    """
    img: (C<=128, H, W);  taps: (3, 3) numpy-like HBM tensor, the same for every channel
    'same' padding with zeros
    """
    C, H, W = img.shape
    out = nl.ndarray(img.shape, dtype=img.dtype, buffer=nl.shared_hbm)
    padded = nl.zeros((nl.par_dim(C), H + 2, W + 2), dtype=nl.float32, buffer=nl.sbuf)
    padded[:, 1:H + 1, 1:W + 1] = nl.load(img)
    t = nl.load(taps.reshape((1, 9))).broadcast_to((C, 9))
    acc = nl.zeros((nl.par_dim(C), H, W), dtype=nl.float32, buffer=nl.sbuf)
    for dy in range(3):
        for dx in range(3):
            shifted = nl.copy(padded[:, dy:dy + H, dx:dx + W])
            acc += nisa.tensor_scalar(shifted, np.multiply, t[:, dy * 3 + dx])
    nl.store(out, acc)
    return out


@nki.jit
def maxpool_overlapping(inp, k, s):
    """k x k windows, s apart"""
    C, H, W = inp.shape
    Ho, Wo = (H - k) // s + 1, (W - k) // s + 1
    out = nl.ndarray((C, Ho, Wo), dtype=inp.dtype, buffer=nl.shared_hbm)
    tile = nl.load(inp[0:C, 0:H, 0:W])
    i0, i1, i2, i3, i4 = nl.mgrid[0:C, 0:Ho, 0:Wo, 0:k, 0:k]
    m = nl.max(tile[i0, s * i1 + i3, s * i2 + i4], axis=[3, 4])
    nl.store(out[:, :, :], value=m)
    return out
