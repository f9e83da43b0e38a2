"""Programs whose time is known, or that put the estimator to work."""

from __future__ import annotations

from neuroncore.program import Program, parse_program


def program(body: str, target: str = "trn2", parameters: str = "x: float32[4096, 4096]") -> Program:
    """A program with these statements and an output `out` of the parameter's shape."""
    lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
    return parse_program(
        f'program("{target}", "0.6")\ndef kernel({parameters}):\n'
        f"    out = buffer(float32[4096, 4096], shared_hbm)\n{lines}\n    return out\n"
    )


TILED_COPY = """
for i in range(32):
    tile = buffer(float32[128, 512], sbuf)
    dma_copy(dst=tile[:, :], src=x[128*i : 128*i + 128, 0:512])
    tensor_scalar(dst=tile[:, :], data=tile[:, :], operand0=2.0, op0=multiply)
    dma_copy(dst=out[128*i : 128*i + 128, 0:512], src=tile[:, :])
"""

MATMUL = """
for m in range(8):
    total = buffer(float32[128, 512], psum)
    for k in range(16):
        left = buffer(float32[128, 128], sbuf)
        right = buffer(float32[128, 512], sbuf)
        dma_copy(dst=left[:, :], src=x[128*k : 128*k + 128, 128*m : 128*m + 128])
        dma_copy(dst=right[:, :], src=x[128*k : 128*k + 128, 1024:1536], dge_mode=swdge)
        nc_matmul(dst=total[:, :], stationary=left[:, :], moving=right[:, :])
    copied = buffer(float32[128, 512], sbuf)
    tensor_copy(dst=copied[:, :], src=total[:, :])
    dma_copy(dst=out[128*m : 128*m + 128, 0:512], src=copied[:, :])
"""

CARRIED = """
total = buffer(float32[128, 1], sbuf)
memset(dst=total[:, :], value=0.0)
for i in range(24):
    tile = buffer(float32[128, 256], sbuf)
    part = buffer(float32[128, 1], sbuf)
    dma_copy(dst=tile[:, :], src=x[128*i : 128*i + 128, 0:256])
    activation(dst=tile[:, :], data=tile[:, :], scale=1.0, op=exp)
    tensor_reduce(dst=part[:, :], data=tile[:, :], op=add)
    tensor_tensor(dst=total[:, :], data1=total[:, :], data2=part[:, :], op=add)
    activation(dst=part[:, :], data=total[:, :], scale=1.0, op=tanh)
dma_copy(dst=out[0:128, 0:1], src=total[:, :])
"""

COLUMNS = """
rows = buffer(float32[128, 256], sbuf)
sums = buffer(float32[128, 254], sbuf)
pairs = buffer(float32[128, 254], sbuf)
dma_copy(dst=rows[:, :], src=x[0:128, 0:256])
for c in range(254):
    taps = buffer(float32[128, 3], sbuf)
    tensor_tensor(dst=taps[:, :], data1=rows[:, c : c + 3], data2=rows[:, c : c + 3], op=multiply)
    tensor_reduce(dst=sums[:, c : c + 1], data=taps[:, :], op=add)
for c in range(127):
    tensor_copy(dst=pairs[:, 2*c : 2*c + 2], src=sums[:, 2*c : 2*c + 2])
dma_copy(dst=out[0:128, 0:254], src=pairs[:, :])
"""

ADDRESSED = """
first = buffer(float32[128, 256], sbuf, address=(0, 0))
second = buffer(float32[128, 256], sbuf, address=(0, 1024))
for i in range(16):
    dma_copy(dst=first[:, :], src=x[128*i : 128*i + 128, 0:256])
    tensor_copy(dst=second[:, :], src=first[:, :], engine=gpsimd)
    tensor_copy(dst=second[:, 0:128], src=second[:, 128:256], engine=vector)
    dma_copy(dst=out[128*i : 128*i + 128, 0:256], src=second[:, :])
"""

ALL = {
    "tiled copy": TILED_COPY,
    "matmul": MATMUL,
    "carried": CARRIED,
    "columns": COLUMNS,
    "addressed": ADDRESSED,
}
