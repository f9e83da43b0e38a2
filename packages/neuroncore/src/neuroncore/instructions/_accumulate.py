"""Accumulation of products in PSUM: `accumulate` False, True or None.

`product(*inputs, out=None)` gives (M, N) in float32, optionally straight into `out`. False
overwrites, True adds; None: per PSUM location the first matmul write overwrites, later ones add.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from neuroncore.effects import Effect, accumulates, writes
from neuroncore.enums import Engine, MemorySpace
from neuroncore.errors import UndefinedError
from neuroncore.instructions._numerics import FLOAT32, reader, rounds, writer
from neuroncore.instructions._record import Call
from neuroncore.memory import View, WrittenFlags, elements, is_whole, written_flags

Product = Callable[..., np.ndarray]
Run = Callable[..., Any]


def contraction(c: Call) -> Product:
    """(K, M), (K, N) in float32 → leftᵀ · right, summed as `product_sums` says."""
    if c.options.product_sums == "float32":
        return lambda left, right, out=None: np.matmul(left.T, right, out=out)

    def summed_wide(left: np.ndarray, right: np.ndarray, out: Any = None) -> np.ndarray:
        wide = np.matmul(left.T, right, dtype=np.float64)
        if out is None:
            return wide.astype(FLOAT32)
        out[...] = wide
        return out

    return summed_wide


def accumulating(c: Call, product: Product) -> Run:
    """run(dst, *inputs) as `c.accumulate` says."""
    into, add = _overwriting(c, product), _adding(c, product)
    if c.accumulate is False:
        return _overwrite(into)
    if c.accumulate:
        return _add_everywhere(c, add)
    return _first_overwrites(c, product, into, add)


def accumulated(c: Call) -> list[Effect]:
    """The effects of `accumulate` on dst."""
    return writes("dst") if c.accumulate is False else accumulates("dst")


def _overwriting(c: Call, product: Product) -> Run:
    if not rounds(c.dst) and c.dst.rank == 2:
        return lambda dst, *inputs: product(*inputs, out=dst.array)
    write = writer(c.dst)
    return lambda dst, *inputs: write(dst, product(*inputs))


def _adding(c: Call, product: Product) -> Run:
    shape = c.dst.shape
    if not rounds(c.dst):
        flat = (c.dst.partitions, c.dst.free)
        size = c.dst.size

        def add(dst: View, *inputs: View) -> None:
            room = dst.core.products  # where it lies as PSUM tiles do; fresh memory costs 5 µs more
            if room.size < size:
                room = dst.core.products = elements(size, FLOAT32)
            values = product(*inputs, out=room[:size].reshape(flat))
            np.add(dst.array, values.reshape(shape), out=dst.array)

        return add
    read, write = reader(c.dst), writer(c.dst)  # gen4 in bfloat16: add in float32, round back
    return lambda dst, *inputs: write(dst, read(dst) + product(*inputs).reshape(shape))


def _overwrite(into: Run) -> Run:
    def overwrite(dst: View, *inputs: View) -> None:
        into(dst, *inputs)
        mark_written(dst)

    return overwrite


def _first_overwrites(c: Call, product: Product, into: Run, add: Run) -> Run:
    read, write = reader(c.dst), writer(c.dst)

    def accumulate(dst: View, *inputs: View) -> None:
        written = written_part(dst)
        if written is True:
            add(dst, *inputs)
            return
        if written is False:
            into(dst, *inputs)
        else:
            values = product(*inputs).reshape(dst.shape)
            write(dst, np.where(written, read(dst) + values, values))
        mark_written(dst)

    return accumulate


def _add_everywhere(c: Call, add: Run) -> Run:
    policy = c.options.accumulate_on_unwritten

    def accumulate(dst: View, *inputs: View) -> None:
        written = written_part(dst)
        if written is True:
            add(dst, *inputs)
            return
        if policy == "error":
            raise _unwritten(c, dst, written)
        if policy == "nan":
            dst.array[np.broadcast_to(np.logical_not(written), dst.shape)] = np.nan
        add(dst, *inputs)
        mark_written(dst)

    return accumulate


def _unwritten(c: Call, dst: View, written: np.ndarray | bool) -> UndefinedError:
    missing = dst.size - (int(np.sum(written)) if isinstance(written, np.ndarray) else 0)
    return UndefinedError(
        "accumulates onto PSUM that no matmul has written",
        expected="a first matmul with accumulate=False (or None) into the same locations",
        got=f"{missing} unwritten of {dst.size} elements",
        hint="a memset or copy does not start an accumulation group",
        rule="NKI: nc_matmul, accumulate",
        operand="accumulate",
        instruction=c.record.name,
    )


def written_part(dst: View) -> np.ndarray | bool:
    """Whether matmuls have written dst: True, False, or a flag per element."""
    state = dst.storage.written
    if isinstance(state, bool):
        return state
    if dst.spec in state.filled:
        return True
    bits = state.elements(dst)
    if not bits.all():
        return bits if bits.any() else False
    _remember(dst, state)
    return True


def mark_written(dst: View) -> None:
    """All elements of dst now hold a matmul's result."""
    storage = dst.storage
    if storage.written is True:
        return
    if is_whole(dst):
        storage.written = True
        return
    flags = written_flags(storage)
    if dst.spec not in flags.filled:
        flags.put(dst, True)
        _remember(dst, flags)


def _remember(dst: View, flags: WrittenFlags) -> None:
    """Note that all flags of dst are set, where its spec alone names it in the tensor."""
    bytes_per_partition = dst.storage.free_elems * dst.storage.flat.itemsize
    if dst.spec.indirect is None and bytes_per_partition <= dst.core.target.psum_bank_bytes:
        flags.filled.add(dst.spec)


def forgetting(call: Call, execute: Callable[..., Any]) -> Callable[..., Any]:
    """`execute`, after which PSUM that another engine than TensorE wrote holds no matmul's result.

    For Options.psum_tracking "write"; what is not written keeps its flag.
    """
    names = list(call.specs)
    places = [names.index(n) for n in call.record.outputs if _in_psum(call, n)]
    if not places or call.engine is Engine.tensor:
        return execute

    def execute_and_forget(*views: Any) -> None:
        chosen = call.record.chooses(call, dict(zip(names, views, strict=True)))
        execute(*views)
        for i in places:
            storage = views[i].storage
            if storage.written is not False:
                written_flags(storage).put(views[i], False, chosen if i == places[0] else None)

    return execute_and_forget


def _in_psum(call: Call, name: str) -> bool:
    return name in call.tiles and call.tiles[name].space is MemorySpace.psum
