"""Says what 0.1 has and later versions have not in instructions that they do have.

`through_hbm` is exact: a DMA that repeats or skips partitions of an on-chip tile, for which later
versions have no pattern, goes by a copy of the tile in HBM. `without_division` is not: a / b
becomes a · (1 / b), which rounds twice, so it is for the caller to ask for. `with_whole_constants`
is exact: what a float writes into integers, which 0.3 and later reject, is written as that integer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from neuroncore.alu import ALU_OPS
from neuroncore.enums import MemorySpace
from neuroncore.errors import UnsupportedError
from neuroncore.instructions.memset import constant_in
from neuroncore.integers.affine import Affine
from neuroncore.program.ir.naming import names_of, unused
from neuroncore.program.ir.nodes import (
    Access,
    Allocate,
    Buffer,
    Call,
    Loop,
    Statement,
    make_call,
    whole,
)
from neuroncore.program.ir.program import Program
from nki_dtypes import float32

_DIVIDE, _MULTIPLY = ALU_OPS["divide"], ALU_OPS["multiply"]


def without_division(program: Program) -> Program:
    """The program with every division as a product with a reciprocal, which rounds twice.

    Raises UnsupportedError for a division as the second operation whose arguments are swapped.
    """
    return each_call(program, _product)


def through_hbm(program: Program) -> Program:
    """The program with on-chip tiles that a DMA repeats over partitions read from HBM instead."""
    buffers = program.buffers()

    def staged(call: Call, name: NewName) -> Iterator[Statement]:
        source = call.operands.get("src")
        if isinstance(source, Access) and _repeats_partitions(source, buffers):
            old = buffers[source.buffer]
            copy = Buffer(name(f"{old.name}_in_hbm"), old.shape, old.dtype, MemorySpace.private_hbm)
            first, last = _partitions(source, old)
            part = (last - first + 1, *old.shape[1:])
            rows = Affine(first * old.row)
            yield Allocate(copy, call.origin)
            yield make_call(
                "dma_copy", None, call.origin,
                dst=Access(copy.name, rows, part, old.strides),
                src=Access(old.name, rows, part, old.strides),
            )  # fmt: skip
            moved = replace(source, buffer=copy.name)
            call = replace(call, operands={**call.operands, "src": moved})
        yield call

    return each_call(program, staged)


def _repeats_partitions(access: Access, buffers: dict[str, Buffer]) -> bool:
    buffer = buffers[access.buffer]
    width = (access.dtype or buffer.dtype).itemsize
    row = buffer.free_bytes // width
    return (
        buffer.space.on_chip
        and access.indirect is None
        and access.shape[0] > 1
        and access.strides[0] != row
        and access.offset.is_constant
        and access.strides[0] >= 0
    )


def _partitions(access: Access, buffer: Buffer) -> tuple[int, int]:
    """The first and last partition that a DMA's access with a constant offset touches."""
    row = buffer.free_bytes // (access.dtype or buffer.dtype).itemsize
    first = access.offset.constant // row
    return first, first + (access.shape[0] - 1) * access.strides[0] // row


def with_whole_constants(program: Program) -> Program:
    """The program whose memsets of integer tensors have integers."""
    buffers = program.buffers()

    def whole_number(call: Call, name: NewName) -> Iterator[Statement]:
        value, dst = call.operands.get("value"), call.operands.get("dst")
        if call.instruction == "memset" and isinstance(value, float) and isinstance(dst, Access):
            dtype = dst.dtype or buffers[dst.buffer].dtype
            if dtype.is_integer:
                number = int(constant_in(value, dtype))
                call = replace(call, operands={**call.operands, "value": number})
        yield call

    return each_call(program, whole_number)


NewName = Callable[[str], str]
"""An unused name like the one given."""


def each_call(program: Program, rewrite: Callable[[Call, NewName], Iterator[Statement]]) -> Program:
    """The program with statements in the place of each call; `rewrite` gets unused names."""
    taken, numbers = names_of(program) - {program.name}, dict[str, int]()

    def name(wanted: str) -> str:
        made = unused(wanted, taken, numbers=numbers)
        taken.add(made)
        return made

    def block(body: tuple[Statement, ...]) -> Iterator[Statement]:
        for statement in body:
            match statement:
                case Loop():
                    yield replace(statement, body=tuple(block(statement.body)))
                case Call():
                    yield from rewrite(statement, name)
                case _:
                    yield statement

    return replace(program, body=tuple(block(program.body)))


# -- division -------------------------------------------------------------------------------------


def _product(call: Call, name: NewName) -> Iterator[Statement]:
    """The statements that say `call` without dividing."""
    operands, attrs = dict(call.operands), dict(call.attrs)
    for op, divisor in _divisions(call).items():
        by = operands[divisor]
        attrs[op] = _MULTIPLY
        if isinstance(by, Access):
            inverse = Buffer(name("inverse"), by.shape, float32, MemorySpace.sbuf)
            yield Allocate(inverse, call.origin)
            yield make_call("reciprocal", None, call.origin, dst=whole(inverse), data=by)
            operands[divisor] = whole(inverse)
        elif by is not None:
            operands[divisor] = 1.0 / by
        if divisor == "data":
            attrs["reverse0"] = False
    yield replace(call, operands=operands, attrs=attrs)


def _divisions(call: Call) -> dict[str, str]:
    """Attribute that divides → the operand that it divides by."""
    found = {op: value for op, value in call.attrs.items() if value is _DIVIDE}
    if not found:
        return {}
    if call.instruction == "tensor_tensor":
        return {"op": "data2"}
    swapped = call.attrs.get("reverse0"), call.attrs.get("reverse1")
    if call.instruction != "tensor_scalar" or ("op1" in found and swapped[1]):
        raise UnsupportedError(
            f"{call.instruction} divides in a way that no product with a reciprocal says",
            place=call.origin,
        )
    by = {"op0": "data" if swapped[0] else "operand0", "op1": "operand1"}
    return {op: by[op] for op in found}
