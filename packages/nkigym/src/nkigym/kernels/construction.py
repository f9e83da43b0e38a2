"""Accesses, calls, loops, allocations and offsets, made quickly: a step writes hundreds of them.

The constructor of a frozen dataclass calls `object.__setattr__` for each field, which takes three
times as long as assigning it. Here a plain class with the same slots is made, whose `__class__`
then becomes the frozen one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from neuroncore.errors import Place
from neuroncore.program import Access, Affine, Allocate, Buffer, Call, Indirect, Loop, Statement
from nki_dtypes import DType


class _Access:
    __slots__ = tuple(field.name for field in fields(Access))

    def __init__(
        self, buffer: str, offset: Affine, shape: tuple[int, ...], strides: tuple[int, ...],
        dtype: DType | None, indirect: Indirect | None,
    ) -> None:  # fmt: skip
        self.buffer, self.offset, self.shape = buffer, offset, shape
        self.strides, self.dtype, self.indirect = strides, dtype, indirect


class _Call:
    __slots__ = tuple(field.name for field in fields(Call))

    def __init__(
        self, instruction: str, operands: Mapping[str, Any], attrs: Mapping[str, Any],
        name: str | None, origin: Place | None,
    ) -> None:  # fmt: skip
        self.instruction, self.operands, self.attrs = instruction, operands, attrs
        self.name, self.origin = name, origin


class _Affine:
    __slots__ = tuple(field.name for field in fields(Affine))

    def __init__(self, constant: int, terms: tuple[tuple[str, int], ...]) -> None:
        self.constant, self.terms = constant, terms


class _Buffer:
    __slots__ = tuple(field.name for field in fields(Buffer))

    def __init__(self, like: Buffer, name: str, shape: tuple[int, ...]) -> None:
        self.name, self.shape, self.dtype = name, shape, like.dtype
        self.space, self.address, self.content = like.space, like.address, like.content


class _Allocate:
    __slots__ = tuple(field.name for field in fields(Allocate))

    def __init__(self, buffer: Buffer, origin: Place | None) -> None:
        self.buffer, self.origin = buffer, origin


class _Loop:
    __slots__ = tuple(field.name for field in fields(Loop))

    def __init__(self, like: Loop, body: tuple[Statement, ...]) -> None:
        self.variable, self.start, self.stop = like.variable, like.start, like.stop
        self.body, self.step, self.origin = body, like.step, like.origin


def new_affine(constant: int, terms: tuple[tuple[str, int], ...]) -> Affine:
    """Affine(constant, terms)."""
    made: Any = _Affine(constant, terms)
    made.__class__ = Affine
    return made


def new_buffer(like: Buffer, name: str, shape: tuple[int, ...]) -> Buffer:
    """The same under another name, of another shape."""
    made: Any = _Buffer(like, name, shape)
    made.__class__ = Buffer
    return made


def new_allocate(like: Allocate, buffer: Buffer) -> Allocate:
    """Allocate(buffer, like.origin)."""
    made: Any = _Allocate(buffer, like.origin)
    made.__class__ = Allocate
    return made


def new_access(like: Access, buffer: str, offset: Affine, strides: tuple[int, ...]) -> Access:
    """Access(buffer, offset, like.shape, strides, like.dtype, like.indirect)."""
    made: Any = _Access(buffer, offset, like.shape, strides, like.dtype, like.indirect)
    made.__class__ = Access
    return made


def new_call(like: Call, operands: Mapping[str, Any]) -> Call:
    """Call(like.instruction, operands, like.attrs, like.name, like.origin)."""
    made: Any = _Call(like.instruction, operands, like.attrs, like.name, like.origin)
    made.__class__ = Call
    return made


def new_loop(like: Loop, body: tuple[Statement, ...]) -> Loop:
    """The loop around other statements."""
    made: Any = _Loop(like, body)
    made.__class__ = Loop
    return made
