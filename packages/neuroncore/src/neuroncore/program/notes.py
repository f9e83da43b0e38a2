"""What is written down while a kernel runs: numbers, made into statements when it has ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from neuroncore._caret import Place
from neuroncore.engines import Space
from neuroncore.errors import UnsupportedError
from neuroncore.instructions import Call as MachineCall
from neuroncore.program.affine import Affine
from neuroncore.program.box import canonical
from neuroncore.program.content import constant_buffer
from neuroncore.program.nodes import Access, Allocate, Buffer, Call, Indirect, plain_number
from neuroncore.spec import Spec
from nki_dtypes import DType


@dataclass(slots=True)
class Matmul:
    """An accumulating call: where it stands, what it asked for, what PSUM held (None: mixed)."""

    at: int
    accumulate: bool | None
    written: bool | None

    @property
    def starts_or_continues(self) -> bool:
        """Whether accumulate=None says the same: the first write overwrites, later ones add."""
        return self.accumulate is None or self.accumulate is self.written


@dataclass(eq=False)
class NotedTensor:
    """A tensor of the run: what its buffer needs, where its name may stand, matmuls into it.

    Kernels make many: what few of them have stands on the class until it is set.
    """

    number: int
    shape: tuple[int, ...]
    dtype: DType
    space: Space
    address: tuple[int, int] | None
    given_name: str
    made_at: Place | None
    is_gathered: bool
    """Whether the language filled it without an instruction."""
    num_bytes: int
    """Of its storage."""
    elements: np.ndarray | None = field(default=None, init=False)
    """What a constant of the kernel holds."""
    same_as: NotedTensor | None = field(default=None, init=False)
    """An equal constant before this one."""
    base: int = field(default=0, init=False)
    """Where its elements start in memory; 0: nobody has asked."""
    parameter: str | None = field(default=None, init=False)
    touched_at: Place | None = field(default=None, init=False)
    """The first write, which names the tiles of 0.1: they come to life when they are used."""
    matmuls: Sequence[Matmul] = field(default=(), init=False)
    last: NotedView | None = field(default=None, init=False)
    """The last view of all of it."""

    def accumulates(self, matmul: Matmul) -> None:
        """Note a matmul into it."""
        if isinstance(self.matmuls, list):
            self.matmuls.append(matmul)
        else:
            self.matmuls = [matmul]

    def offset(self, array: np.ndarray, flat: np.ndarray) -> int:
        """Elements of `array` between the first of all, `flat`, and its own first."""
        if not self.base:
            self.base = flat.__array_interface__["data"][0]
        return (array.__array_interface__["data"][0] - self.base) // array.itemsize

    @cached_property
    def buffer(self) -> Buffer:
        if self.same_as is not None:
            return self.same_as.buffer
        name = self.parameter or f"tile.{self.number}"
        if self.elements is not None:
            return constant_buffer(name, self.elements.reshape(self.shape), self.dtype)
        return Buffer(name, self.shape, self.dtype, self.space, self.address)


class NotedView(NamedTuple):
    """A view at the moment of a call; `index` is that of a dynamic one."""

    tensor: NotedTensor
    spec: Spec
    offset: int
    index: NotedView | None


class NotedCall(NamedTuple):
    """A call with its operands by `names`: views and numbers."""

    call: MachineCall
    names: tuple[str, ...]
    operands: list[NotedView | Any]
    name: str | None
    place: Place | None


def statements(
    notes: Sequence[NotedTensor | NotedCall],
    tensors: Sequence[NotedTensor],
    results: Sequence[NotedTensor],
) -> tuple[Allocate | Call, ...]:
    """The notes as statements, constants first, without tensors that nobody touches.

    Raises UnsupportedError where an operand is one that no instruction has made.
    """
    defaulted = {
        m.at for t in tensors if all(m.starts_or_continues for m in t.matmuls) for m in t.matmuls
    }
    touched = (t for note in notes for t in _touched(note))
    used = {(t.same_as or t).number for t in (*results, *touched)}
    writer = _Writer(defaulted)
    constants = (t for t in tensors if t.elements is not None and t.number in used)
    made = (
        writer.call(at, note)
        if isinstance(note, NotedCall)
        else Allocate(note.buffer, note.made_at)
        for at, note in enumerate(notes)
        if isinstance(note, NotedCall) or note.number in used
    )
    return (*(Allocate(t.buffer, t.made_at) for t in constants), *made)


def _touched(note: NotedTensor | NotedCall) -> Iterator[NotedTensor]:
    """The tensors that a call names."""
    if isinstance(note, NotedCall):
        for view in note.operands:
            while isinstance(view, NotedView):
                yield view.tensor
                view = view.index


@dataclass(slots=True)
class _Writer:
    """Makes calls; what repeats from call to call is made once."""

    defaulted: set[int]
    """The numbers of the calls that are written with accumulate=None."""
    attrs: dict[tuple[int, bool], Mapping[str, Any]] = field(default_factory=dict)
    strides: dict[tuple[Spec, tuple[int, ...]], tuple[int, ...]] = field(default_factory=dict)

    def call(self, at: int, noted: NotedCall) -> Call:
        made = noted.call
        key = (id(made), at in self.defaulted)
        attrs = self.attrs.get(key)
        if attrs is None:
            more = {"accumulate": None} if at in self.defaulted else {}
            attrs = self.attrs[key] = {**made.attrs, **more}
        operands = {
            name: self.access(value, noted.place)
            if isinstance(value, NotedView)
            else plain_number(value)
            for name, value in zip(noted.names, noted.operands, strict=True)
        }
        return Call(made.record.name, operands, attrs, noted.name, noted.place)

    def access(self, view: NotedView, place: Place | None) -> Access:
        tensor, spec, offset, index = view
        buffer = tensor.buffer
        if tensor.is_gathered:
            raise UnsupportedError(
                "data is moved without an instruction, which no program says",
                got=repr(spec),
                hint="it reads an access that is no pattern; copy its parts into a tile first",
                place=place,
            )
        dtype = None if spec.dtype is buffer.dtype else spec.dtype
        indirect = None
        if index is not None:
            moved = spec.indirect
            assert moved is not None
            indirect = Indirect(moved.kind, self.access(index, place), moved.dim)
        key = (spec, buffer.shape)
        strides = self.strides.get(key)
        if strides is None:
            made = Access(buffer.name, Affine(), spec.shape, spec.strides, dtype, indirect)
            strides = self.strides[key] = canonical(made, buffer).strides
        return Access(buffer.name, Affine(offset), spec.shape, strides, dtype, indirect)
