"""The CPU time of `latency_ns` for a program that was verified before, as a search needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import process_time

from neuroncore.program import check, parse_program
from neuroncore.timeline import latency_ns

ROUNDS = 20
MATMUL = """\
program("trn2", "0.6")
def matmul(a: bfloat16[2048, 2048], b: bfloat16[2048, 2048]):
    out = buffer(bfloat16[2048, 2048], shared_hbm)
    for m in range(16):
        for n in range(4):
            total = buffer(float32[128, 512], psum)
            for k in range(16):
                left = buffer(bfloat16[128, 128], sbuf)
                dma_copy(dst=left[:, :], src=a[128*k : 128*k + 128, 128*m : 128*m + 128])
                right = buffer(bfloat16[128, 512], sbuf)
                dma_copy(dst=right[:, :], src=b[128*k : 128*k + 128, 512*n : 512*n + 512])
                nc_matmul(dst=total[:, :], stationary=left[:, :], moving=right[:, :])
            tile = buffer(bfloat16[128, 512], sbuf)
            tensor_copy(dst=tile[:, :], src=total[:, :])
            dma_copy(dst=out[128*m : 128*m + 128, 512*n : 512*n + 512], src=tile[:, :])
    return out
"""


def latency_lines() -> Iterator[str]:
    """CPU time of the first latency of a rolled matmul in this process, and of later ones."""
    program = parse_program(MATMUL)
    checked = _milliseconds(lambda: check(program))
    costs = [_milliseconds(lambda: latency_ns(program, verified=True)) for _ in range(ROUNDS)]
    yield (
        f"matmul 2048³ bf16, a rolled program: first latency {costs[0]:.2f} ms, best of {ROUNDS} "
        f"{min(costs):.2f} ms; verifying it {checked:.2f} ms more"
    )


def _milliseconds(work: Callable[[], object]) -> float:
    start = process_time()
    work()
    return (process_time() - start) * 1e3
