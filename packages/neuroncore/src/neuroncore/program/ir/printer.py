"""Programs as text: Python's syntax, so that every editor colours it and `ast` reads it.

    program("trn2", "0.6")
    def double(x: float32[256, 512]):
        out = buffer(float32[256, 512], shared_hbm)
        for i in range(2):
            t = buffer(float32[128, 512], sbuf)
            dma_copy(dst=t[:, :], src=x[128*i : 128*i + 128, :])
            tensor_scalar(dst=t[:, :], data=t[:, :], operand0=2.0, op0=multiply)
            dma_copy(dst=out[128*i : 128*i + 128, :], src=t[:, :])
        return out

A constant has its content in brackets, `c = constant(float32[3], [0.5, 1.0, inf])`, or behind the
function (see neuroncore.program.ir.constants).

A slice keeps a dimension of the buffer, an index drops it. An access that is not a box of its
buffer is written `x.ap([[stride, count], …], offset)`, with `dtype=` where the bytes are seen as
another dtype and `scalar_offset=` or `vector_offset=` with `dim=` where an index is read on the
device.
`parse_program(print_program(p)) == p` for every program.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

from neuroncore.activations import Activation
from neuroncore.alu import AluOp
from neuroncore.integers.affine import Affine
from neuroncore.program.ir.constants import as_numbers, as_text, digest_of
from neuroncore.program.ir.nodes import (
    Access,
    Allocate,
    Buffer,
    Call,
    Loop,
    Statement,
    plain_number,
)
from neuroncore.program.ir.subscripts import Item, Slice, subscript

INDENT = "    "


def tensor_text(buffer: Buffer) -> str:
    """dtype and shape: float32[128, 512]."""
    return f"{buffer.dtype}[{', '.join(map(str, buffer.shape))}]"


def range_text(loop: Loop) -> str:
    """The bounds as arguments of range, as few as say it."""
    bounds = (loop.start, loop.stop, loop.step)
    shown = bounds[1:2] if bounds[::2] == (0, 1) else bounds[: 2 + (loop.step != 1)]
    return ", ".join(map(str, shown))


def item_text(item: Item, size: int) -> str:
    """One index or slice of a subscript over a dimension of that size."""
    if isinstance(item, Affine):
        return str(item)
    if item == Slice(Affine(), size):
        return ":"
    start, stop = str(item.start), str(item.stop)
    colon = ":" if start.isdigit() and stop.isdigit() else " : "
    return f"{start}{colon}{stop}" + (f"{colon}{item.step}" if item.step != 1 else "")


def statement_lines(body: tuple[Statement, ...], buffers: dict[str, Buffer]) -> Iterator[str]:
    """The lines of these statements."""
    for statement in body:
        match statement:
            case Loop():
                yield f"for {statement.variable} in range({range_text(statement)}):"
                yield from (INDENT + line for line in statement_lines(statement.body, buffers))
                if not statement.body:
                    yield f"{INDENT}pass"
            case Allocate(buffer) if buffer.content is not None:
                numbers = as_numbers(buffer)
                shown = "" if numbers is None else f", {numbers}"
                yield f"{buffer.name} = constant({tensor_text(buffer)}{shown})"
            case Allocate(buffer):
                address = f", address={buffer.address}" if buffer.address else ""
                space = buffer.space.name
                yield f"{buffer.name} = buffer({tensor_text(buffer)}, {space}{address})"
            case Call():
                yield _call(statement, buffers)


def data_lines(buffer: Buffer) -> Iterator[str]:
    """The lines with the bytes of a constant that numbers do not represent."""
    assert buffer.content is not None
    if as_numbers(buffer) is None:
        way, lines = as_text(buffer.content)
        yield f'{buffer.name} = data("{digest_of(buffer.content)}", {way}="""'
        yield from lines
        yield '""")'


def _call(call: Call, buffers: dict[str, Buffer]) -> str:
    record = call.record
    parts = [
        f"{name}={access_text(value, buffers) if isinstance(value, Access) else repr(value)}"
        for name, value in call.operands.items()
        if value is not None
    ]
    for name, value in call.attrs.items():
        if not record.attrs[name].is_default(value):
            parts.append(f"{name}={_value(value)}")
    if call.name is not None:
        parts.append(f"name={call.name!r}")
    return f"{call.instruction}({', '.join(parts)})"


def _value(value: Any) -> str:
    if isinstance(value, (AluOp, Activation, Enum)):
        return value.name
    return repr(plain_number(value))


def access_text(access: Access, buffers: dict[str, Buffer]) -> str:
    """The access as a subscript, or as an explicit pattern where it is not a box."""
    buffer = buffers.get(access.buffer)
    items = subscript(access, buffer) if buffer else None
    if buffer is not None and items is not None:
        shown = (item_text(item, n) for item, n in zip(items, buffer.shape, strict=True))
        return f"{access.buffer}[{', '.join(shown)}]"
    pairs = ", ".join(f"[{s}, {n}]" for s, n in zip(access.strides, access.shape, strict=True))
    more = f", {access.offset}" if access.offset != Affine() else ""
    if access.dtype is not None:
        more += f", dtype={access.dtype}"
    if access.indirect is not None:
        index = access_text(access.indirect.index, buffers)
        more += f", {access.indirect.kind}_offset={index}, dim={access.indirect.dim}"
        if access.indirect.steps is not None:
            more += f", steps={[*access.indirect.steps]}"
    return f"{access.buffer}.ap([{pairs}]{more})"
