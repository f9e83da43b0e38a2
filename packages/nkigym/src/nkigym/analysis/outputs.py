"""The outputs of a kernel: parameters that it writes, elements of results that it leaves
unwritten."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from neuroncore.errors import UndefinedError
from neuroncore.memory import window
from neuroncore.program import Access, Buffer, Program, calls
from nkigym.analysis.accesses import READ, CallAccess, Reader


def written_parameters(program: Program) -> list[str]:
    """The parameters that are outputs as well: an instruction writes in them."""
    outputs = (call.operands.get(n) for call in calls(program.body) for n in call.record.outputs)
    written = {value.buffer for value in outputs if isinstance(value, Access)}
    return [buffer.name for buffer in program.parameters if buffer.name in written]


def not_numbers(output: Any) -> str | None:
    """What an output of NumPy is, unless it is an array of numbers."""
    if isinstance(output, np.ma.MaskedArray):
        return "a masked array"
    dtype = np.asarray(output).dtype
    is_real = dtype.kind in "biuf" or (dtype.kind == "V" and dtype.type is not np.void)
    return None if is_real else f"an array of {dtype.name}"


def check_results(program: Program) -> None:
    """Raises UndefinedError where a legal program returns elements that nothing writes."""
    parameters = {buffer.name for buffer in program.parameters}
    buffers = program.buffers()
    call_accesses = Reader(buffers, program.target, program.nki).block(program.body)
    for name in dict.fromkeys(program.results):
        buffer = buffers[name]
        if name in parameters or buffer.content is not None:
            continue
        missing = _unwritten(
            buffer, [t for t in call_accesses if t.buffer == name and t.kind != READ]
        )
        if missing:
            raise UndefinedError(
                f"{program.name} returns {name}, of which {missing:,} elements are never written",
                expected=f"all {buffer.size:,} elements written",
                hint="nothing can be proved of what a kernel leaves undefined",
                place=program.places.get("results"),
            )


def _unwritten(buffer: Buffer, writes: list[CallAccess]) -> int:
    """How many elements; none where an index that is read on the device moves a write."""
    flags = np.zeros((buffer.size, buffer.dtype.itemsize), np.bool_)
    for write in writes:
        access = write.access
        if access is None or access.indirect is not None:
            return 0
        width = (access.dtype or buffer.dtype).itemsize
        strides = (*(stride * width for stride in access.strides), 1)
        for values in _turns(write):
            offset = access.offset.value(values) * width
            window(flags.reshape(-1), offset, (*access.shape, width), strides)[...] = True
    return buffer.size - int(flags.all(axis=1).sum())


def _turns(write: CallAccess) -> Iterator[dict[str, int]]:
    """The values of the loop variables that move it."""
    assert write.access is not None
    moving = {name for name, _ in write.access.offset.terms}
    loops = [loop for loop in write.loops if loop.variable in moving]
    trips = [range(loop.start, loop.stop, loop.step) for loop in loops]
    for values in product(*trips):
        yield dict(zip([loop.variable for loop in loops], values, strict=True))
