"""From accesses to specs: operands under given values of the loop variables."""

from __future__ import annotations

from collections.abc import Mapping

from neuroncore.enums import MemorySpace
from neuroncore.errors import AccessError
from neuroncore.instructions import Call as MachineCall
from neuroncore.machine.core import NeuronCore
from neuroncore.program.ir.nodes import Access, Buffer, Call, span
from neuroncore.spec import Indirection, Spec, make_spec
from neuroncore.surface import version_tuple
from nki_dtypes import DType

RULE = "NKI: access patterns"


def seen_as(access: Access, buffer: Buffer) -> DType:
    """The dtype of the access's elements."""
    return access.dtype or buffer.dtype


def in_elements(access: Access, buffer: Buffer, num_elems: int) -> int:
    """A count of the buffer's elements as a count of the access's."""
    return num_elems * buffer.dtype.itemsize // seen_as(access, buffer).itemsize


def index_stride(access: Access, buffer: Buffer) -> int:
    """Elements of the access that one step of its index moves it; 0 without an index."""
    if access.indirect is None:
        return 0
    _, step = access.indirect.rows(buffer)
    return in_elements(access, buffer, step)


def spec_at(access: Access, buffers: Mapping[str, Buffer], core: NeuronCore, offset: int) -> Spec:
    """The spec of the access at element `offset` of its buffer (index at 0)."""
    buffer = buffers[access.buffer]
    dtype = seen_as(access, buffer)
    storage = core.stored_as(dtype)
    start, bank = place_of(access, buffer, core, offset)
    indirect = None
    if access.indirect is not None:
        index = access.indirect.index
        index_spec = spec_at(index, buffers, core, index.offset.constant)
        kind, dim = access.indirect.kind, access.indirect.dim
        limit, _ = access.indirect.rows(buffer)
        indirect = Indirection(kind, dim, index_stride(access, buffer), index_spec, limit)
    return make_spec(
        access.shape, access.strides, dtype, buffer.space, storage, start,
        indirect=indirect, bank_offset=bank, mutable=buffer.content is None,
    )  # fmt: skip


def place_of(access: Access, buffer: Buffer, core: NeuronCore, offset: int) -> tuple[int, int]:
    """First partition and byte in its PSUM bank of the access at `offset`: as in a spec."""
    if not buffer.space.on_chip:
        return 0, 0
    first, byte = buffer.address or (0, 0)
    row = max(1, in_elements(access, buffer, buffer.row))
    start = first + offset // row
    if buffer.space is not MemorySpace.psum:
        return start, 0
    width = core.stored_as(seen_as(access, buffer)).itemsize
    return start, (byte + offset % row * width) % core.target.psum_bank_bytes


def specs_of(
    call: Call,
    buffers: Mapping[str, Buffer],
    core: NeuronCore,
    at: Mapping[str, int] | None = None,
) -> dict[str, Spec | type | None]:
    """Specs of the operands of a call while its loop variables are `at`. None: where on chip they
    begin does not matter.
    """
    return {
        name: spec_at(
            value, buffers, core, value.offset.value(at) if at else value.offset.constant
        )
        if isinstance(value, Access)
        else None if value is None else type(value)
        for name, value in call.operands.items()
    }  # fmt: skip


def machine_call(
    call: Call, specs: Mapping[str, Spec | type | None], core: NeuronCore, nki: str
) -> MachineCall:
    """The call as the machine's records take it."""
    return MachineCall(
        call.record, specs, call.attrs, core.target, core.options, version_tuple(nki)
    )


def check_inside(access: Access, buffer: Buffer, offset: int, by_dma: bool = False) -> None:
    """Raise AccessError where the access at `offset` leaves its buffer or, on chip, a partition."""
    problem = outside(access, buffer, (offset, offset))
    if problem is None and buffer.space.on_chip:
        column = offset % max(1, in_elements(access, buffer, buffer.row))
        problem = astray(access, buffer, (column, column), by_dma)
    if problem is not None:
        raise problem


def outside(access: Access, buffer: Buffer, offsets: tuple[int, int]) -> AccessError | None:
    """The error while the offset runs between two values; None without one."""
    down, up = access.reach()
    low, high = offsets[0] + down, offsets[1] + up
    last = in_elements(access, buffer, buffer.size) - 1
    if low >= 0 and high <= last:
        return None
    return AccessError(
        f"the access leaves {buffer.name}" + (" already at index 0" if access.indirect else ""),
        expected=f"elements 0 to {last}",
        got=f"elements {low} to {high}",
        rule=RULE,
    )


def astray(
    access: Access, buffer: Buffer, columns: tuple[int, int], by_dma: bool = False
) -> AccessError | None:
    """The error of an on-chip access whose first element runs between two columns.

    Columns count elements inside a partition. Dimension 0 must step over partitions and the others
    stay inside one. A DMA, which goes by addresses, may also skip or repeat partitions.
    """
    row = in_elements(access, buffer, buffer.row)
    stride = access.strides[0]
    if access.shape[0] > 1 and (stride % row if by_dma else stride != row):
        return AccessError(
            "the first dimension of an on-chip access steps over partitions",
            expected=f"stride {row}, the elements of a partition of {buffer.name}",
            got=f"stride {stride}",
            rule=RULE,
        )
    down, up = span(access.shape[1:], access.strides[1:])
    low, high = columns[0] + down, columns[1] + up
    if low >= 0 and high < row:
        return None
    return AccessError(
        f"the access runs into the {'previous' if low < 0 else 'next'} partition of {buffer.name}",
        expected=f"elements 0 to {row - 1} of each partition",
        got=f"elements {low} to {high}",
        rule=RULE,
    )
