"""Cycle counts that several instructions share. Sources: costs.json and the notes below."""

from __future__ import annotations

from neuroncore.enums import Engine, MemorySpace
from neuroncore.instructions._record import Call, Instruction
from neuroncore.spec import Spec
from neuroncore.work import MicroOp, Pass, Transfer, constant
from nki_dtypes import bfloat16, float16

# An innermost stride above 16 bytes halves SBUF/PSUM bandwidth [Trainium/Inferentia2 guide].
_STRIDE_LIMIT_BYTES = 16


def one_pass(call: Call, cycles: float, table: str | None = None, rate: int = 1) -> list[MicroOp]:
    """A trip of `cycles` through the call's engine, behind its access to memory.

    The least initiation interval is the floor; GpSimdE adds its start-up instead. Strided operands
    take twice as long. An address that a register holds raises the floor [NKI 0.1 API documents:
    tensor_copy_dynamic_src]. `rate` is that of a performance mode: elements per cycle and lane, of
    static accesses.
    """
    engine = call.engine
    slow = 2 if any(is_strided(s) for s in call.tiles.values()) else 1
    if any(s.indirect is not None for s in call.tiles.values()):
        return [Pass(engine, max(constant("MIN_II_DYNAMIC"), round(cycles * slow)), table)]
    cycles /= rate
    if engine is Engine.gpsimd:
        interval = constant("GPSIMD_START") + round(cycles * slow)
    else:
        interval = max(constant("MIN_II"), round(cycles * slow) + constant("ACCESS_OVERHEAD"))
    return [Pass(engine, interval, table, fast=rate > 1)]


def with_read_out(call: Call, cycles: float, table: str | None = None) -> list[MicroOp]:
    """max(MIN_II, cycles) + MIN_II: reading the registers follows [NKI 0.1 API documents]."""
    least = constant("MIN_II")
    return one_pass(call, max(cycles, least) + least, table)


def guessed(call: Call) -> list[MicroOp]:
    """A guess where no document and no measurement shows a cost; the estimate's interval says so.

    A DMA moves its bytes at half rate [Trainium3 architecture guide: DMA accumulation of earlier
    generations]; another engine takes two cycles per element.
    """
    widest = max(call.tiles.values(), key=lambda spec: spec.size)
    if call.engine is Engine.dma:
        width = 2 * widest.dtype.itemsize
        rows = widest.partitions if widest.space.on_chip else 0
        run = max(1, widest.size // (rows or 128))
        return [Transfer(widest.size * width, widest.size // run, run * width, rows)]
    return one_pass(call, 2 * widest.free)


def has_guessed_cost(record: Instruction) -> bool:
    """Whether nothing is published about the time of the instruction."""
    return record.work is guessed


def is_strided(spec: Spec) -> bool:
    """Whether the innermost step over the free elements is above the limit."""
    if spec.rank < 2 or spec.shape[-1] == 1:
        return False
    return abs(spec.strides[-1]) * spec.dtype.itemsize > _STRIDE_LIMIT_BYTES


def is_sixteen_bit_float(spec: Spec) -> bool:
    return spec.dtype is bfloat16 or spec.dtype is float16


def copy_rate(call: Call, *names: str) -> int:
    """Elements per cycle and lane of tensor_copy and tensor_scalar in VectorE's performance modes.

    16-bit floats: 4 where everything is in SBUF and contiguous, 2 where it is not contiguous or one
    side is in PSUM. Other dtypes: 2 in SBUF and contiguous. Not on gen2. [Trainium2 architecture
    guide: Vector Engine performance mode, data-path width table; the kernel optimization tutorial
    shows the second for float32 copies and memsets.]
    """
    specs: list[Spec] = [s for n in names if isinstance(s := getattr(call, n), Spec)]
    if call.engine is not Engine.vector or call.target.generation < 3:
        return 1
    in_sbuf = all(s.space is MemorySpace.sbuf for s in specs)
    contiguous = all(s.free_is_contiguous for s in specs)
    if all(map(is_sixteen_bit_float, specs)):
        return (1, 2, 4)[in_sbuf + contiguous]
    return 2 if in_sbuf and contiguous else 1
