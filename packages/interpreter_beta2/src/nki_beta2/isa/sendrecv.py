"""nisa.sendrecv: data exchange between the two cores of a launch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from neuroncore.enums import DmaEngine, MemorySpace
from neuroncore.errors import (
    AttributeValueError,
    CapacityError,
    DTypeError,
    ImmutableError,
    KernelError,
    MemorySpaceError,
    PartitionError,
    ShapeError,
    SignatureError,
    UnsupportedError,
)
from neuroncore.isa.functions import Handle, handle_of
from neuroncore.machine.launch import Launch, running
from neuroncore.machine.loop_trace import act
from neuroncore.memory import View
from neuroncore.targets import GPSIMD_PARTITIONS
from nki_beta2.kernel.jit import Language

NAME = "sendrecv"
RULE = "NKI: nisa.sendrecv"
RANKS = (0, 1)
GPSIMD_BYTES = {4: 1024, 2: 512, 1: 256}  # per partition, by bytes of the dtype


def sendrecv(language: Language) -> Callable[..., Handle | None]:
    """The function as this version has it: `dma_engine` came with 0.3."""

    def exchange(src: View, dst: View, to: int, of: int, pipe: Any, engine: DmaEngine) -> None:
        launch = running("nisa.sendrecv")
        for wrong in _violations(launch, src, dst, to, of, engine, language):
            wrong.instruction = NAME
            raise wrong
        act(launch.core, lambda: _swap(launch, src, dst, of, pipe))

    def function(
        src: View, dst: View, send_to_rank: int, recv_from_rank: int, pipe_id: int,
        dma_engine: DmaEngine = DmaEngine.dma, name: str | None = None,
    ) -> Handle | None:  # fmt: skip
        """Fill `dst` with `src` of the other core, which gets this core's `src`.

        Both cores of a launch on two must call it; each waits for the other. Operations of one
        `pipe_id` are matched in order. src, dst: SBUF, the same shape and dtype.
        """
        exchange(src, dst, send_to_rank, recv_from_rank, pipe_id, dma_engine)
        return handle_of(language.version)

    def function_of_0_2(
        src: View, dst: View, send_to_rank: int, recv_from_rank: int, pipe_id: int,
        name: str | None = None,
    ) -> None:  # fmt: skip
        exchange(src, dst, send_to_rank, recv_from_rank, pipe_id, DmaEngine.dma)

    function_of_0_2.__doc__ = function.__doc__
    found = function if language.version >= (0, 3) else function_of_0_2
    found.__name__, found.__qualname__ = NAME, f"nisa.{NAME}"
    found.__module__ = "nki.isa"
    return found


def _swap(launch: Launch, src: View, dst: View, of: int, pipe: Any) -> None:
    src.initialize()
    dst.initialize()
    sent = np.array(src.array) if launch.core.computes else src.array
    source, arrived = launch.meet(pipe, (src, sent), f"nisa.{NAME}")
    if (source.shape, source.dtype) != (dst.shape, dst.dtype):
        raise ShapeError(
            "the other core sends another shape or dtype", instruction=NAME, operand="dst",
            expected=f"{source!r}, as core {of} sends it", got=repr(dst), rule=RULE,
        )  # fmt: skip
    if launch.core.computes:
        dst.array[...] = arrived
    for watcher in launch.core.watchers:
        watcher.received(dst, source)


def _violations(
    launch: Launch, src: View, dst: View, to: int, of: int, engine: DmaEngine, language: Language
) -> Iterator[KernelError]:
    if launch.core.target.nc_version == "gen2":
        yield UnsupportedError(
            f"{launch.core.target.name} has no nisa.{NAME}", expected="gen3 or later", rule=RULE
        )
    yield from _tile("src", src)
    yield from _tile("dst", dst)
    yield from _pair(src, dst)
    yield from _rank("send_to_rank", to, launch.program[0])
    yield from _rank("recv_from_rank", of, launch.program[0])
    if not isinstance(engine, DmaEngine):
        yield AttributeValueError(
            f"dma_engine={engine!r} is not one of its values", got=repr(engine),
            expected=", ".join(f"nisa.dma_engine.{e.name}" for e in DmaEngine),
            operand="dma_engine", rule=RULE,
        )  # fmt: skip
    elif engine is DmaEngine.gpsimd_dma:
        yield from _gpsimd(src, language)


def _pair(src: View, dst: View) -> Iterator[KernelError]:
    if src.dtype is not dst.dtype:
        yield DTypeError(
            "src and dst differ in dtype", expected=f"{src.dtype}", got=f"{dst.dtype}",
            operand="dst", rule=RULE,
        )  # fmt: skip
    if src.shape != dst.shape:
        yield ShapeError(
            "src and dst differ in shape", expected=f"{src.shape}", got=f"{dst.shape}",
            operand="dst", rule=RULE,
        )  # fmt: skip
    if not dst.spec.mutable:
        yield ImmutableError("dst is read-only", got=repr(dst), operand="dst", rule=RULE)


def _rank(name: str, rank: int, own: int) -> Iterator[KernelError]:
    if rank not in RANKS or rank == own:
        yield AttributeValueError(
            f"{name}={rank!r} on core {own}", expected=f"the other core: {1 - own}",
            got=repr(rank), operand=name, rule=RULE,
        )  # fmt: skip


def _tile(name: str, view: Any) -> Iterator[KernelError]:
    if not isinstance(view, View):
        yield SignatureError(
            f"{name} cannot be a {type(view).__name__}", expected="a tensor in SBUF",
            got=repr(view)[:80], operand=name, rule=RULE,
        )  # fmt: skip
    elif view.spec.space is not MemorySpace.sbuf:
        yield MemorySpaceError(
            f"{name} is in {view.spec.space.name.upper()}", expected="SBUF", got=repr(view),
            operand=name, rule=RULE,
        )  # fmt: skip
    elif view.dynamic is not None:
        yield UnsupportedError(
            f"{name} has an offset that is known at run time only", expected="a static view",
            got=repr(view), operand=name, rule=RULE,
        )  # fmt: skip


def _gpsimd(src: View, language: Language) -> Iterator[KernelError]:
    size = src.dtype.itemsize
    num_bytes = size * (src.size // src.shape[0])
    if num_bytes > GPSIMD_BYTES[size]:
        yield CapacityError(
            f"{num_bytes} bytes per partition by GpSimd's DMA",
            expected=f"at most {GPSIMD_BYTES[size]} of {src.dtype}", got=repr(src), operand="src",
            rule=f"{RULE}, dma_engine",
        )  # fmt: skip
    if language.version == (0, 3) and src.shape[0] % GPSIMD_PARTITIONS:
        yield PartitionError(
            f"{src.shape[0]} partitions by GpSimd's DMA",
            expected=f"a multiple of {GPSIMD_PARTITIONS}", got=repr(src), operand="src",
            rule=f"{RULE}, dma_engine, 0.3",
        )  # fmt: skip
