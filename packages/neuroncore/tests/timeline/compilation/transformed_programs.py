"""Programs that a transformation changes, and their comparison with what it makes of them."""

from __future__ import annotations

import numpy as np

from neuroncore.machine.core import NeuronCore
from neuroncore.program import Program, check, execute_program, parse_program
from neuroncore.timeline import TRANSFORMATIONS
from neuroncore.timeline.compilation.toolchain import transformed

HEAD = 'program("trn1", "0.1")\ndef kernel(x: float32[128, 512], w: float32[128, 3]):\n'
OUT = "    out = buffer(float32[128, 512], shared_hbm)\n"

INVARIANT = (
    HEAD
    + OUT
    + """\
    for row in range(4):
        total = buffer(float32[128, 512], sbuf)
        memset(dst=total[:, :], value=0.0)
        for k in range(4):
            tile = buffer(float32[128, 128], sbuf)
            dma_copy(dst=tile[:, :], src=x[:, 128*k : 128*k + 128])
            tensor_scalar(dst=total[:, 128*k : 128*k + 128], data=tile[:, :], operand0=2.0, op0=add)
        dma_copy(dst=out[:, 128*row : 128*row + 128], src=total[:, 128*row : 128*row + 128])
    return out
"""
)

SMALL = (
    HEAD
    + OUT
    + """\
    padded = buffer(float32[128, 512], sbuf)
    dma_copy(dst=padded[:, :], src=x[:, :])
    filter = buffer(float32[128, 3], sbuf)
    dma_copy(dst=filter[:, :], src=w[:, :])
    result = buffer(float32[128, 512], sbuf)
    memset(dst=result[:, :], value=0.0)
    for group in range(4):
        for column in range(64):
            product = buffer(float32[128, 3], sbuf)
            tensor_tensor(dst=product[:, :], data1=padded[:, AT:AT + 3], data2=filter[:, :], op=add)
            tensor_reduce(dst=result[:, AT:AT + 1], data=product[:, :], op=add)
    dma_copy(dst=out[:, :], src=result[:, :])
    return out
"""
)

TRANSPOSING = (
    HEAD
    + """\
    out = buffer(float32[3, 128], shared_hbm)
    tile = buffer(float32[3, 128], sbuf)
    dma_transpose(dst=tile[:, :], src=w[:, :])
    dma_copy(dst=out[:, :], src=tile[:, :])
    return out
"""
)

STRIDED = """\
program("trn1", "0.1")
def kernel(x: float32[300, 100]):
    out = buffer(float32[100, 300], shared_hbm)
    tile = buffer(bfloat16[100, 300], sbuf)
    dma_copy(dst=tile[:, :], src=x.ap([[1, 100], [100, 300]]))
    dma_copy(dst=out[:, :], src=tile[:, :])
    return out
"""

BROADCAST = """\
program("trn1", "0.1")
def kernel(x: float32[100, 600], w: float32[4, 600]):
    out = buffer(float32[100, 600], shared_hbm)
    tile = buffer(float32[100, 600], sbuf)
    dma_copy(dst=tile[:, :], src=x[:, :])
    for i in range(4):
        row = buffer(float32[1, 600], sbuf)
        dma_copy(dst=row[:, :], src=w[i : i + 1, :])
        rows = buffer(float32[100, 600], sbuf)
        dma_copy(dst=rows[:, :], src=row.ap([[0, 100], [1, 600]]))
        tensor_tensor(dst=tile[:, :], data1=tile[:, :], data2=rows[:, :], op=multiply)
    dma_copy(dst=out[:, :], src=tile[:, :])
    return out
"""

ADDED = """\
program("trn1", "0.1")
def kernel(x: float32[128, 256]):
    out = buffer(bfloat16[128, 64], shared_hbm)
    total = buffer(bfloat16[128, 64], sbuf)
    memset(dst=total[:, :], value=0.0)
    for i in range(4):
        tile = buffer(float32[128, 64], sbuf)
        dma_copy(dst=tile[:, :], src=x[:, 64*i : 64*i + 64])
        sum = buffer(float32[128, 64], sbuf)
        tensor_tensor(dst=sum[:, :], data1=total[:, :], data2=tile[:, :], op=add)
        tensor_copy(dst=total[:, :], src=sum[:, :])
    dma_copy(dst=out[:, :], src=total[:, :])
    return out
"""

CLEARED = (
    HEAD
    + OUT
    + """\
    left = buffer(float32[128, 512], sbuf)
    dma_copy(dst=left[:, :], src=x[:, :])
    product = buffer(float32[128, 512], psum)
    memset(dst=product[:, :], value=0.0)
    nc_matmul(dst=product[:, :], stationary=left[:, 0:128], moving=left[:, :])
    result = buffer(float32[128, 512], sbuf)
    tensor_copy(dst=result[:, :], src=product[:, :])
    dma_copy(dst=out[:, :], src=result[:, :])
    return out
"""
)

PADDED = (
    HEAD
    + OUT
    + """\
    padded = buffer(float32[128, 514], sbuf)
    memset(dst=padded[:, :], value=0.0)
    dma_copy(dst=padded[:, 1:513], src=x[:, :])
    dma_copy(dst=out[:, :], src=padded[:, 0:512])
    return out
"""
)

DECLARED_OUTSIDE = """\
program("trn2", "0.6")
def kernel(x: float32[128, 512]):
    out = buffer(float32[128, 512], shared_hbm)
    tile = buffer(float32[128, 128], sbuf)
    total = buffer(float32[128, 128], sbuf)
    memset(dst=total[:, :], value=0.0)
    for k in range(4):
        dma_copy(dst=tile[:, :], src=x[:, 128*k : 128*k + 128])
        tensor_tensor(dst=total[:, :], data1=total[:, :], data2=tile[:, :], op=add)
        dma_copy(dst=out[:, 128*k : 128*k + 128], src=total[:, :])
    return out
"""

TEXTS = {
    "loop_invariants": INVARIANT,
    "vectorization": SMALL.replace("AT", "64*group + column"),
    "transposing_loads": TRANSPOSING,
    "strided_loads": STRIDED,
    "partition_broadcasts": BROADCAST,
    "direct_results": ADDED,
    "dead_fills": CLEARED,
    "overwritten_fills": PADDED,
    "privatization": DECLARED_OUTSIDE,
}


def rewritten_by(program: Program, *names: str) -> Program:
    core = NeuronCore(program.target, watchers=())
    return transformed(program, core, [TRANSFORMATIONS[name] for name in names])


def same_values(before: Program, *names: str) -> Program:
    """The program after these transformations, which is legal and computes the same."""
    made = rewritten_by(before, *names)
    random = np.random.default_rng(0)
    given = [random.standard_normal(p.shape).astype(np.float32) for p in before.parameters]

    check(made)

    for one, other in zip(*(execute_program(p, given) for p in (before, made)), strict=True):
        np.testing.assert_array_equal(other, one)
    return made


def after(name: str) -> tuple[Program, Program]:
    before = parse_program(TEXTS[name])
    return before, rewritten_by(before, "transposing_loads" if name == "strided_loads" else name)
