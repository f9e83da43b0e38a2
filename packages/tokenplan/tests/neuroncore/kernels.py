"""Kernels as program texts: a pipelined GEMM of any size, and small ones with one trait each."""

from __future__ import annotations

from neuroncore.program import Program, parse_program


def gemm(m: int, n: int, k: int, wide: int = 2, tile_n: int = 512) -> Program:
    """C[m, n] = AT[k, m]ᵀ · B[k, n]: column panels of B, in them panels of `wide` row tiles."""
    columns, deep = 128 * wide, k // 128
    return parse_program(f"""program("trn2", "0.6")
def gemm(at: bfloat16[{k}, {m}], b: bfloat16[{k}, {n}]):
    c = buffer(bfloat16[{m}, {n}], shared_hbm)
    for j in range({n // tile_n}):
        right = buffer(bfloat16[128, {deep}, {tile_n}], sbuf)
        dma_copy(dst=right[:, :, :],
                 src=b.ap([[{n}, 128], [{128 * n}, {deep}], [1, {tile_n}]], {tile_n}*j))
        for p in range({m // columns}):
            left = buffer(bfloat16[128, {deep}, {columns}], sbuf)
            dma_copy(dst=left[:, :, :],
                     src=at.ap([[{m}, 128], [{128 * m}, {deep}], [1, {columns}]], {columns}*p))
            for i in range({wide}):
                out = buffer(bfloat16[128, {tile_n}], sbuf)
                acc = buffer(float32[128, {tile_n}], psum)
                for q in range({deep}):
                    nc_matmul(dst=acc[:, :], stationary=left[:, q, 128*i : 128*i + 128],
                              moving=right[:, q, :])
                tensor_copy(dst=out[:, :], src=acc[:, :])
                dma_copy(dst=c[{columns}*p + 128*i : {columns}*p + 128*i + 128,
                               {tile_n}*j : {tile_n}*j + {tile_n}], src=out[:, :])
    return c
""")
