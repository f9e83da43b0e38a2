"""Baseline kernels: one tile per step, single buffers, every operand loaded where it is used."""

from neuroncore.program import Program, parse_program


def tile(loop: str, size: int) -> str:
    """The part of a dimension that one iteration of a loop is about."""
    return f"{size}*{loop} : {size}*{loop} + {size}"


def matmul(
    m: int, n: int, k: int, rows: int = 128, columns: int = 512, depth: int = 128
) -> Program:
    """lhsT.T @ rhs over m by n tiles of rows × columns, k tiles of depth, in bfloat16."""
    i, j, t = tile("m", rows), tile("n", columns), tile("k", depth)
    return parse_program(f"""
program("trn2", "0.6")
def matmul(lhsT: bfloat16[{k * depth}, {m * rows}], rhs: bfloat16[{k * depth}, {n * columns}]):
    out = buffer(bfloat16[{m * rows}, {n * columns}], shared_hbm)
    for m in range({m}):
        for n in range({n}):
            acc = buffer(float32[{rows}, {columns}], psum)
            for k in range({k}):
                a = buffer(bfloat16[{depth}, {rows}], sbuf)
                dma_copy(dst=a[:, :], src=lhsT[{t}, {i}])
                b = buffer(bfloat16[{depth}, {columns}], sbuf)
                dma_copy(dst=b[:, :], src=rhs[{t}, {j}])
                nc_matmul(dst=acc[:, :], stationary=a[:, :], moving=b[:, :])
            o = buffer(bfloat16[{rows}, {columns}], sbuf)
            tensor_copy(dst=o[:, :], src=acc[:, :])
            dma_copy(dst=out[{i}, {j}], src=o[:, :])
    return out
""")
