"""Image processing, channels or rows on partitions."""
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np

GRAY = (0.299, 0.587, 0.114)
SOBEL_X = [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]


@nki.jit
def rgb_to_gray(img):
    """(3, H, W) -> (H, W), H <= 128"""
    _, H, W = img.shape
    out = nl.ndarray((H, W), dtype=img.dtype, buffer=nl.shared_hbm)
    acc = nl.zeros((H, W), dtype=nl.float32)
    for c, weight in enumerate(GRAY):
        acc[:, :] = acc + nl.load(img[c]) * weight
    nl.store(out, acc)
    return out


@nki.jit
def avg_pool(in_tensor, pool_size):
  """(C, H, W) -> (C, H // pool, W // pool)"""
  sz_cin, sz_hin, sz_win = in_tensor.shape
  sz_hout = sz_hin // pool_size
  sz_wout = sz_win // pool_size
  out_tensor = nl.ndarray((sz_cin, sz_hout, sz_wout), dtype=in_tensor.dtype,
                          buffer=nl.shared_hbm)
  sz_p = sz_cin
  sz_pool = pool_size
  i0, i1, i2, i3, i4 = nl.mgrid[0:sz_p, 0:sz_hin//sz_pool, 0:sz_win//sz_pool, 0:sz_pool, 0:sz_pool]
  in_tile: tensor[sz_p, sz_hin, sz_win] = nl.load(in_tensor)
  out_tile: tensor[sz_p, sz_hout, sz_wout] = nl.sum(in_tile[i0, sz_pool*i1+i3, sz_pool*i2+i4],
                                                    axis=[3, 4]) / (pool_size*pool_size)
  nl.store(out_tensor, value=out_tile)
  return out_tensor


@nki.jit
def sobel_x(img):
    """valid horizontal gradient, (C, H, W)"""
    C, H, W = img.shape
    out = nl.ndarray((C, H - 2, W - 2), dtype=img.dtype, buffer=nl.shared_hbm)
    tile = nl.load(img)
    acc = nl.zeros((nl.par_dim(C), H - 2, W - 2), dtype=nl.float32)
    for r, taps in enumerate(SOBEL_X):
        for c, tap in enumerate(taps):
            if tap == 0:
                continue
            acc += nl.multiply(tile[:, r:r + H - 2, c:c + W - 2], float(tap))
    nl.store(out, acc)
    return out


@nki.jit
def upsample_nearest(x, s):
    C, H, W = x.shape
    out = nl.ndarray((C, H * s, W * s), dtype=x.dtype, buffer=nl.shared_hbm)
    src = nl.load(x)
    dst = nl.ndarray((nl.par_dim(C), H * s, W * s), dtype=x.dtype)
    ic, ih, iw = nl.mgrid[0:C, 0:H, 0:W]
    for a in range(s):
        for b in range(s):
            dst[ic, s * ih + a, s * iw + b] = src[ic, ih, iw]
    nl.store(out, dst)
    return out


@nki.jit
def gamma_correct(img, gamma):
    n, m = img.shape
    out = nl.ndarray(img.shape, dtype=img.dtype, buffer=nl.shared_hbm)
    t = nl.load(img)
    nl.store(out, nl.exp(nl.multiply(nl.log(nl.maximum(t, 1e-6)), gamma)))
    return out


@nki.jit
def normalize_channels(img, mean, std):
    """img (C, H*W), mean/std python lists, one number a channel"""
    C, N = img.shape
    out = nl.ndarray(img.shape, dtype=img.dtype, buffer=nl.shared_hbm)
    m = nl.ndarray((1, C), dtype=nl.float32)
    for c in range(C):
        row = nl.load(img[c:c + 1, :])
        nl.store(out[c:c + 1, :], (row - mean[c]) * (1.0 / std[c]))
    return out


@nki.jit
def box_blur_rows(img, radius):
    n, m = img.shape
    w = 2 * radius + 1
    out = nl.ndarray((n, m - 2 * radius), dtype=img.dtype, buffer=nl.shared_hbm)
    p = nl.arange(n)[:, None, None]
    j = nl.arange(m - 2 * radius)[None, :, None]
    k = nl.arange(w)[None, None, :]
    t = nl.load(img)
    s = nisa.tensor_reduce(np.add, t[p, j + k], axis=[2], dtype=nl.float32)
    nl.store(out, s * (1.0 / w))
    return out
