# Copyright (c) The Authors. Normalization layers, in the manner of the vendor tutorials.
import math
import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def layernorm_rows(input_tensor, epsilon, gamma_vector, beta_vector):
  """Computes LayerNorm.
    Used nki.language APIs only.
  """
  output_tensor = nl.ndarray(input_tensor.shape, dtype=input_tensor.dtype,
                             buffer=nl.shared_hbm)

  # Ensure that the shapes of tensors match
  assert input_tensor.shape[1] == gamma_vector.shape[0] == beta_vector.shape[0]

  # Generate tile indices for loading/storing data
  i_p_io = nl.arange(nl.tile_size.pmax)[:, None]
  i_f_io = nl.arange(input_tensor.shape[1])[None, :]
  i_p_param = nl.arange(1)[:, None]

  num_rows = input_tensor.shape[0]

  # Load gamma and beta, which will be reused across rows/tiles of input_tensor
  gamma_sb = nl.load(gamma_vector.reshape((1, gamma_vector.shape[0]))[i_p_param, i_f_io])
  beta_sb = nl.load(beta_vector.reshape((1, beta_vector.shape[0]))[i_p_param, i_f_io])

  # Broadcast the gamma and beta to match the dimensions of the tiles
  gamma_sb_bcast = gamma_sb.broadcast_to((nl.tile_size.pmax, gamma_vector.shape[0]))
  beta_sb_bcast = beta_sb.broadcast_to((nl.tile_size.pmax, beta_vector.shape[0]))

  # Tile partition dimension of the input tensor by nl.tile_size.pmax
  for i in nl.affine_range(math.ceil(input_tensor.shape[0]/nl.tile_size.pmax)):
    # Load input tile
    input_sb = nl.load(input_tensor[i * nl.tile_size.pmax + i_p_io, i_f_io],
                       mask=(i * nl.tile_size.pmax + i_p_io < num_rows))

    # Compute mean and variance
    mean = nl.mean(input_sb, axis=1)
    # Trick to calculate var with mean: mean(x^2) - mean(x)^2
    var = nl.mean(nl.square(input_sb), axis=1) - mean * mean

    # Normalize the input by shifting with the mean
    # and scaling with rsqrt of variance and epsilon
    shift_scale_tensor = (input_sb - mean) * nl.rsqrt(var + epsilon)

    # Scale the normalized tile using gamma and add beta
    output_sb = shift_scale_tensor * gamma_sb_bcast + beta_sb_bcast

    nl.store(output_tensor[i * nl.tile_size.pmax + i_p_io, i_f_io], value=output_sb,
             mask=(i * nl.tile_size.pmax + i_p_io < num_rows))

  return output_tensor


@nki.jit
def layernorm_bn_stats(x, g, b, eps=1e-5):
    n, d = x.shape
    y = nl.ndarray((n, d), dtype=x.dtype, buffer=nl.shared_hbm)
    FMAX = nl.tile_size.bn_stats_fmax
    gt = nl.load(g.reshape((1, d))).broadcast_to((128, d))
    bt = nl.load(b.reshape((1, d))).broadcast_to((128, d))
    for i in nl.affine_range((n + 127) // 128):
        ix = nl.arange(128)[:, None]
        iy = nl.arange(d)[None, :]
        msk = (i * 128 + ix < n)
        t = nl.load(x[i * 128 + ix, iy], mask=msk)
        stats = nl.ndarray((128, 6 * math.ceil(d / FMAX)), dtype=np.float32)
        for k in range(math.ceil(d / FMAX)):
            lo = k * FMAX
            w = min(FMAX, d - lo)
            stats[:, k * 6:(k + 1) * 6] = nisa.bn_stats(t[:, lo:lo + w], mask=msk)
        mv = nisa.bn_aggr(stats, mask=msk)
        scale = nl.rsqrt(mv[:, 1] + eps)
        z = nisa.tensor_scalar(t, op0=np.subtract, operand0=mv[:, 0], op1=np.multiply, operand1=scale, mask=msk)
        z = nl.multiply(z, gt, mask=msk)
        z = nl.add(z, bt, mask=msk)
        nl.store(y[i * 128 + ix, iy], value=z, mask=msk)
    return y


@nki.jit
def rms_norm_weighted(a_tensor, g_tensor):
  out_tensor = nl.ndarray(a_tensor.shape, dtype=a_tensor.dtype, buffer=nl.shared_hbm)
  assert a_tensor.shape[1] == g_tensor.shape[0]

  ix = nl.arange(128)[:, None]
  iw = nl.arange(1)[:, None]
  iy = nl.arange(a_tensor.shape[1])[None, :]
  num_rows = a_tensor.shape[0]

  g_tile = nl.load(g_tensor.reshape((1, g_tensor.shape[0]))[iw, iy])

  for i in nl.affine_range(math.ceil(a_tensor.shape[0]/128)):
    a_tile = nl.load(a_tensor[i * 128 + ix, iy], mask=(i * 128 + ix < num_rows))
    in_square = nl.square(a_tile)
    square_sum = nl.sum(in_square, axis=[1])
    mean = square_sum / a_tensor.shape[1]
    rms_reciprocal = nl.rsqrt(mean)
    out_tile = nl.multiply(a_tile, rms_reciprocal)
    g_bcast = g_tile.broadcast_to((128, g_tensor.shape[0]))
    out_tile[...] = nl.multiply(out_tile, g_bcast, mask=(i * 128 + ix < num_rows))
    nl.store(out_tensor[i * 128 + ix, iy], value=out_tile, mask=(i * 128 + ix < num_rows))

  return out_tensor


@nki.jit
def group_norm(x, num_groups, eps):
    """x: (N, C, HW); statistics per sample and group; C // num_groups <= 128"""
    N, C, HW = x.shape
    cg = C // num_groups
    res = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    ones_mat = nl.full((cg, cg), 1.0 / cg, dtype=nl.float32)
    for n in nl.affine_range(N):
        for g in nl.affine_range(num_groups):
            tile = nl.load(x[n, g * cg:(g + 1) * cg, :])
            row_mean = nl.mean(tile, axis=[1], keepdims=True)
            row_sq = nl.mean(tile * tile, axis=[1], keepdims=True)
            # a matmul with a constant matrix averages over the partitions and broadcasts
            mu = nl.copy(nl.matmul(ones_mat, row_mean, transpose_x=True))
            ex2 = nl.copy(nl.matmul(ones_mat, row_sq, transpose_x=True))
            rstd = nl.rsqrt(ex2 - mu * mu + eps)
            nl.store(res[n, g * cg:(g + 1) * cg, :], (tile - mu) * rstd)
    return res


@nki.jit
def softmax_temperature(logits, T=1.0):
    B, V = logits.shape
    probs = nl.ndarray((B, V), dtype=logits.dtype, buffer=nl.shared_hbm)
    for b in nl.affine_range(-(-B // 128)):
        i_p, i_f = nl.mgrid[0:128, 0:V]
        x = nl.load(logits[b * 128 + i_p, i_f], mask=(b * 128 + i_p < B))
        x = x / T
        p = nl.softmax(x, axis=-1)
        nl.store(probs[b * 128 + i_p, i_f], p, mask=(b * 128 + i_p < B))
    return probs


@nki.jit
def l2_normalize(v, eps=1e-12):
    out = nl.ndarray(v.shape, dtype=v.dtype, buffer=nl.shared_hbm)
    rows, cols = v.shape
    t = nl.load(v)
    sq = nisa.activation_reduce(op=np.square, data=t, reduce_op=np.add,
                                reduce_res=(ss := nl.ndarray((nl.par_dim(rows), 1), dtype=np.float32)))
    norm = nl.maximum(nl.sqrt(ss), eps)
    nl.store(out, value=nl.divide(t, norm))
    return out
