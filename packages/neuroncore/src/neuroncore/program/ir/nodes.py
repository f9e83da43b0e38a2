"""Kernel programs as data: buffers, loops, calls of instructions, accesses.

A program is a kernel without its language: what the emitter writes, the search transforms, the
timeline plays and the planner orders. Every statement has the source line it came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isnan, nan, prod
from typing import Any

import numpy as np

from neuroncore.enums import Engine, MemorySpace
from neuroncore.errors import SignatureError
from neuroncore.instructions import INSTRUCTIONS, Instruction
from neuroncore.integers.affine import Affine
from neuroncore.records import record
from neuroncore.source_location import Place
from neuroncore.spec import row_major
from nki_dtypes import DType


@record
class Buffer:
    """A tensor: created where its Allocate stands, or a parameter of the program.

    `address` is (partition, byte offset in each partition) where the kernel fixed it. `content` are
    the bytes of a constant's elements, row by row: it is stored in shared HBM and
    never written.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    space: MemorySpace
    address: tuple[int, int] | None = None
    content: bytes | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """All elements."""
        return prod(self.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """Element strides of the dense row-major layout."""
        return row_major(self.shape)

    @property
    def row(self) -> int:
        """Elements per partition (F); the partition stride of an on-chip buffer."""
        return prod(self.shape[1:])

    @property
    def free_bytes(self) -> int:
        """Bytes per partition."""
        return self.row * self.dtype.itemsize

    @property
    def num_bytes(self) -> int:
        """All bytes."""
        return self.size * self.dtype.itemsize


@record
class Indirect:
    """A dynamic part of an access: an index read on the device moves it along `dim` of its buffer.

    `kind` "scalar": `index` is one int for the whole access; "vector": one int per row of the
    access's dimension 0. `steps`: how many rows it counts, and the elements of the buffer in each,
    where these are not its dimension `dim` (of a tensor that was reshaped; in programs for time).
    """

    kind: str
    index: Access
    dim: int = 0
    steps: tuple[int, int] | None = None

    def rows(self, buffer: Buffer) -> tuple[int, int]:
        """How many rows of the buffer it counts, and the elements in each."""
        return self.steps or (buffer.shape[self.dim], buffer.strides[self.dim])


@record
class Access:
    """Elements of a buffer: offset + Σ strides[d] · index[d], counted in elements of `dtype`.

    The same numbers as a view's shape, strides and offset; `offset` may depend on loop variables.
    `dtype` is set where the bytes are seen as another dtype than the buffer's.
    """

    buffer: str
    offset: Affine
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType | None = None
    indirect: Indirect | None = None

    @property
    def size(self) -> int:
        """How many elements it names (with repetition)."""
        return prod(self.shape)

    def reach(self) -> tuple[int, int]:
        """The least and greatest element it touches, relative to its offset (index at 0)."""
        return span(self.shape, self.strides)


def span(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, int]:
    """The least and greatest of Σ strides[d] · index[d] for 0 <= index[d] < shape[d]."""
    low = high = 0
    for size, stride in zip(shape, strides, strict=True):
        end = (size - 1) * stride
        low, high = (low + end, high) if end < 0 else (low, high + end)
    return low, high


def whole(buffer: Buffer) -> Access:
    """The access to all of `buffer`."""
    return Access(buffer.name, Affine(), buffer.shape, buffer.strides)


@record
class Allocate:
    """A buffer comes to life here, with undefined content, anew each time this is reached; one with
    `content` is a constant, holds that, and stands outside of loops.

    It is visible in the statements that follow in the same block, and in their loops.
    """

    buffer: Buffer
    origin: Place | None = field(default=None, compare=False)


Value = Access | float | int | None


@record
class Call:
    """One instruction: every operand (access, number or None) and attribute of its record.

    `name` is the user's name of the instruction, for scheduling edges and traces. `make_call` fills
    in what is not given.
    """

    instruction: str
    operands: Mapping[str, Value]
    attrs: Mapping[str, Any]
    name: str | None = None
    origin: Place | None = field(default=None, compare=False)

    @property
    def record(self) -> Instruction:
        return INSTRUCTIONS[self.instruction]

    @property
    def is_dma(self) -> bool:
        """Whether DMA queues execute it."""
        return self.record.engines == (Engine.dma,)

    @property
    def accesses(self) -> dict[str, Access]:
        """The operands that are tensors here."""
        return {n: value for n, value in self.operands.items() if isinstance(value, Access)}

    def given(self) -> Iterator[tuple[str, Any]]:
        """The operands that it has, and the attributes that are not defaults, by name."""
        for name, value in self.operands.items():
            if value is not None:
                yield name, value
        for name, value in self.attrs.items():
            if value is not None and value != self.record.attrs[name].default:
                yield name, value


def make_call(
    instruction: str, name: str | None = None, origin: Place | None = None, **fields: Any
) -> Call:
    """A call from operands and attributes by name; what is left out has the record's default.

    Attributes may be written as kernels write them ("add", an enum member, a list). Raises
    SignatureError for an unknown instruction or field, AttributeValueError for a wrong value.
    """
    record = INSTRUCTIONS.get(instruction)
    if record is None:
        raise SignatureError(
            f"{instruction} is not an instruction", expected=", ".join(INSTRUCTIONS), place=origin
        )
    unknown = [n for n in fields if n not in record.operands and n not in record.attrs]
    if unknown:
        raise SignatureError(
            f"{instruction} has no {unknown[0]}", place=origin,
            expected=", ".join((*record.operands, *record.attrs)),
        )  # fmt: skip
    operands = {f: plain_number(fields.get(f)) for f in record.operands}
    try:
        attrs = record.attributes(fields)
    except SignatureError as missing:
        missing.place = origin
        raise
    return Call(instruction, operands, attrs, name, origin)


def plain_number(value: Any) -> Any:
    """A NumPy number as Python's; one NaN for all, so that equal programs compare equal."""
    if isinstance(value, np.generic):
        value = value.item()
    return nan if isinstance(value, float) and isnan(value) else value


@dataclass(frozen=True, slots=True)
class Loop:
    """`variable` runs from start (inclusive) to stop (exclusive) by step."""

    variable: str
    start: int
    stop: int
    body: tuple[Statement, ...]
    step: int = 1
    origin: Place | None = field(default=None, compare=False)

    @property
    def trips(self) -> int:
        """How often the body runs."""
        return max(0, -((self.start - self.stop) // self.step)) if self.step > 0 else 0

    @property
    def values(self) -> range:
        """The values of the variable in order (start where the body never runs)."""
        return range(self.start, self.start + max(1, self.step * self.trips), max(1, self.step))


Statement = Allocate | Call | Loop
