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

READ_BY_STORES = """
t = buffer(float32[128, 512], sbuf)
s = buffer(float32[128, 512], sbuf)
dma_copy(dst=t[:, :], src=x[0:128, 0:512])
tensor_scalar(dst=s[:, :], data=t[:, :], operand0=2.0, op0=multiply)
for i in range(31):
    dma_copy(dst=out[128*i : 128*i + 128, 0:512], src=s[:, :])
for j in range(40):
    tensor_tensor(dst=t[:, :], data1=t[:, :], data2=s[:, :], op=add)
dma_copy(dst=out[3968:4096, 0:512], src=t[:, :])
"""

READ_BY_MATMULS = """
w = buffer(bfloat16[128, 128], sbuf)
m = buffer(bfloat16[128, 512], sbuf)
b = buffer(bfloat16[128, 512], sbuf)
p = buffer(float32[128, 512], psum)
memset(dst=w[:, :], value=1.0)
memset(dst=m[:, :], value=1.0)
for i in range(200):
    nc_matmul(dst=p[:, :], stationary=w[:, :], moving=m[:, :])
for j in range(30):
    activation(dst=b[:, 0:128], data=w[:, :], scale=1.0, op=copy)
dma_copy(dst=out[0:128, 0:64], src=x[0:128, 0:64])
"""

READ_BY_A_SLOW_LANE = """
t = buffer(float32[128, 64], sbuf)
s = buffer(float32[128, 64], sbuf)
memset(dst=t[:, :], value=0.0)
dma_copy(dst=out[0:128, 0:64], src=t[:, :])
for i in range(60):
    tensor_copy(dst=s[:, :], src=t[:, :], engine=vector)
memset(dst=t[:, :], value=1.0, engine=gpsimd)
activation(dst=s[:, :], data=t[:, :], scale=1.0, op=copy)
"""

ALL = {
    "tiled copy": TILED_COPY,
    "matmul": MATMUL,
    "carried": CARRIED,
    "columns": COLUMNS,
    "addressed": ADDRESSED,
    "read by stores": READ_BY_STORES,
    "read by matmuls": READ_BY_MATMULS,
    "read by a slow lane": READ_BY_A_SLOW_LANE,
}
