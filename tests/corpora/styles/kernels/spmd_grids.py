"""Single program, multiple data launches."""
import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import neuronxcc.nki.isa as nisa


@nki.jit
def spmd_add(a_input, b_input):
    """grid (M / 128, N / 512)"""
    c_output = nl.ndarray(a_input.shape, dtype=a_input.dtype, buffer=nl.shared_hbm)

    # Calculate tile offsets based on current 'program'
    offset_i_x = nl.program_id(0) * 128
    offset_i_y = nl.program_id(1) * 512

    # Generate tensor indices to index tensors a and b
    ix = offset_i_x + nl.arange(128)[:, None]
    iy = offset_i_y + nl.arange(512)[None, :]

    # Load input data from device memory (HBM) to on-chip memory (SBUF)
    a_tile = nl.load(a_input[ix, iy])
    b_tile = nl.load(b_input[ix, iy])

    # compute a + b
    c_tile = a_tile + b_tile

    nl.store(c_output[ix, iy], value=c_tile)
    return c_output


def spmd_add_host(a, b):
    grid_x = a.shape[0] // 128
    grid_y = a.shape[1] // 512
    return spmd_add[grid_x, grid_y](a, b)


@nki.jit
def spmd_batched_softmax(x):
    """x (B, R, C), one program per sample"""
    B, R, C = x.shape
    b = nl.program_id(axis=0)
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x[b])
    e = nl.exp(t - nl.max(t, axis=1, keepdims=True))
    nl.store(y[b], e / nl.sum(e, axis=1, keepdims=True))
    return y


def batched_softmax(x):
    kernel = spmd_batched_softmax[x.shape[0]]
    return kernel(x)


@nki.jit
def spmd_heads_matmul(q, k):
    """q (B, H, d, n), k (B, H, d, m): scores of every head"""
    B, H, d, n = q.shape
    m = k.shape[-1]
    bi, hi = nl.program_id(0), nl.program_id(1)
    out = nl.ndarray((B, H, n, m), dtype=q.dtype, buffer=nl.shared_hbm)
    qt = nl.load(q[bi, hi])
    kt = nl.load(k[bi, hi])
    nl.store(out[bi, hi], value=nl.matmul(qt, kt, transpose_x=True))
    return out


@nki.jit
def spmd_rows_strided(x):
    """program p of n handles rows p, p + n, ... in blocks of 128"""
    rows, cols = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    pid = nl.program_id(0)
    n = nl.num_programs(0)
    blocks = rows // 128
    for i in nl.affine_range(blocks // n):
        blk = i * n + pid
        t = nl.load(x[nl.ds(blk * 128, 128), :])
        nl.store(out[nl.ds(blk * 128, 128), :], value=nl.square(t))
    return out


def main():
    a = np.random.rand(256, 1024).astype(np.float32)
    b = np.random.rand(256, 1024).astype(np.float32)
    out = nki.simulate_kernel(spmd_add[2, 2], a, b)
    assert np.allclose(out, a + b)
    spmd_heads_matmul[2, 3](*(np.zeros((2, 3, 64, 128), np.float32),) * 2)
    spmd_rows_strided[4](np.zeros((1024, 64), np.float32))


if __name__ == "__main__":
    main()
