"""The log of a running kernel: integers, converted to rows at its end."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.errors import UnsupportedError
from neuroncore.instructions import Call as MachineCall
from neuroncore.integers.affine import Affine
from neuroncore.memory import address_of
from neuroncore.program.ir.constants import constant_buffer
from neuroncore.program.ir.nodes import Access, Allocate, Buffer, Call, Indirect
from neuroncore.program.ir.subscripts import canonical
from neuroncore.program.loop_rerolling.statement_kinds import StatementKinds
from neuroncore.program.loop_rerolling.statement_table import NONE, Forms, Rows
from neuroncore.source_location import Place
from neuroncore.spec import Indirection, Spec
from nki_dtypes import DType


class Layout(NamedTuple):
    """The common parts of tensors with equal specs."""

    shape: tuple[int, ...]
    dtype: DType
    space: MemorySpace
    address: tuple[int, int] | None


@dataclass(slots=True, eq=False)
class RecordedTensor:
    """A tensor of the run: what its buffer needs, where its name may stand."""

    number: int
    layout: Layout
    look: int
    """Equal for tensors of one layout; parameters and constants each have their own."""
    num_bytes: int
    """Of its storage."""
    given_name: str
    made_at: Place | None
    is_gathered: bool
    """Whether the language filled it without an instruction."""
    which: int = NONE
    """Its number, or that of an equal constant before this one."""
    elements: np.ndarray | None = None
    """What a constant of the kernel holds."""
    base: int = 0
    """Where its elements start in memory; 0: not known yet."""
    parameter: str | None = None
    touched_at: Place | None = None
    """The first write, which names the tiles of 0.1: they come to life when they are used."""

    def offset(self, array: np.ndarray, flat: np.ndarray) -> int:
        """Elements of `array` between the first of all, `flat`, and its own first."""
        if not self.base:
            self.base = address_of(flat)
        return (address_of(array) - self.base) // array.itemsize

    def buffer(self) -> Buffer:
        name, layout = self.parameter or f"tile.{self.number}", self.layout
        if self.elements is not None:
            return constant_buffer(name, self.elements.reshape(layout.shape), layout.dtype)
        return Buffer(name, *self.layout)


class RecordedView(NamedTuple):
    """A view in a call; `index` is that of a dynamic one."""

    tensor: RecordedTensor
    spec: Spec
    index: RecordedView | None


class RecordedCall(NamedTuple):
    """A call of which many rows are made, as the first of them was; its operands by `names`."""

    call: MachineCall
    names: tuple[str, ...]
    operands: list[RecordedView | Any]
    name: str | None
    place: Place | None

    def uses(self) -> Iterator[RecordedView]:
        """Its accesses, index before base."""
        for operand in self.operands:
            if isinstance(operand, RecordedView):
                yield from _with_index(operand)


def _with_index(view: RecordedView) -> Iterator[RecordedView]:
    if view.index is not None:
        yield from _with_index(view.index)
    yield view


class _Buffers(dict[int, Buffer]):
    """By number; made when they are asked for."""

    def __init__(self, tensors: Sequence[RecordedTensor]) -> None:
        super().__init__()
        self.tensors = tensors

    def __missing__(self, number: int) -> Buffer:
        made = self[number] = self.tensors[number].buffer()
        return made


@dataclass(slots=True)
class RunColumns:
    """The run as columns; a row is a call or a tensor that was made."""

    for_time: bool
    timed_alone: UnsupportedError | None = None
    """Why the rows are for time alone."""
    tensors: list[RecordedTensor] = field(default_factory=list)
    results: list[RecordedTensor] = field(default_factory=list)
    models: list[RecordedCall | RecordedTensor] = field(default_factory=list)
    """What rows look like, by number."""
    rows: array[int] = field(default_factory=lambda: array("q"))
    """Per row, its model."""
    made: list[tuple[int, int]] = field(default_factory=list)
    """Rows that make a tensor, and its number."""
    buffers: array[int] = field(default_factory=lambda: array("q"))
    """Per access, the number of its tensor."""
    offsets: array[int] = field(default_factory=lambda: array("q"))
    matmuls: list[tuple[int, int, bool]] = field(default_factory=list)
    """Row and tensor of each accumulating call; whether accumulate=None says the same: the first
    write overwrites, later ones add."""

    def model(self, model: RecordedCall | RecordedTensor) -> int:
        """The number of a new one."""
        self.models.append(model)
        return len(self.models) - 1

    def as_rows(self) -> tuple[Rows, Forms, frozenset[int]]:
        """Rows, constants first, without tensors that have no access; their forms; the
        buffers that are like no other: parameters, constants, results.

        Raises UnsupportedError where an operand is one that no instruction has made.
        """
        return _Assembly(self).rows()

    def defaulted(self) -> list[int]:
        """The rows that are written with accumulate=None: all matmuls into their tensor may be."""
        others = {tensor for _, tensor, same in self.matmuls if not same}
        return [row for row, tensor, _ in self.matmuls if tensor not in others]


class _Assembly:
    """Makes rows of the columns of a run."""

    def __init__(self, run: RunColumns) -> None:
        self.run = run
        self.buffers = _Buffers(run.tensors)
        self.forms = Forms(self.buffers, lambda number: run.tensors[number].made_at)
        self.touched = {*np.unique(run.buffers).tolist(), *(t.which for t in run.results)}
        pinned = [t for t in run.tensors if t.parameter or t.elements is not None]
        self.pinned = frozenset(t.which for t in (*pinned, *run.results))
        by_name: dict[str, Buffer] = {}
        self.statement_kinds = StatementKinds(
            by_name, {self.buffers[t.number].name for t in pinned}, True
        )
        self.writer = _Writer(self.buffers, by_name, run)

    def rows(self) -> tuple[Rows, Forms, frozenset[int]]:
        self.reject_gathered()
        run = self.run
        models = np.array(run.rows, np.int64)
        made = np.full(len(models), NONE)
        if run.made:
            at, which = np.array(run.made).T
            made[at] = which
        kinds, forms, counts = self.columns(models)
        first = np.concatenate([[0], np.cumsum(counts)])
        uses = (np.array(run.buffers, np.int64), np.array(run.offsets, np.int64))
        rows = Rows(kinds, forms, made, np.zeros_like(kinds), first, *uses)
        used = np.zeros(len(run.tensors) + 1, np.bool_)
        used[list(self.touched)] = True
        used[NONE] = True
        return self.with_constants(rows.kept(used[made])), self.forms, self.pinned

    def columns(self, models: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of each row its kind, its form, how many accesses it has."""
        all_models = self.run.models
        defaulted = self.run.defaulted()
        shifted = models.copy()
        shifted[defaulted] += len(all_models)
        found = np.zeros((3, 2 * len(all_models)), np.int64)
        for number in np.unique(shifted).tolist():
            model = all_models[number % len(all_models)]
            found[:, number] = self.column_of(model, number >= len(all_models))
        kinds, forms, counts = found[:, shifted]
        return kinds, forms, counts

    def column_of(
        self, model: RecordedCall | RecordedTensor, defaulted: bool
    ) -> tuple[int, int, int]:
        if isinstance(model, RecordedTensor):
            return (
                self.statement_kinds.kind(Allocate(self.buffers[model.number], model.made_at)),
                NONE,
                0,
            )
        node = self.writer.call(model, defaulted)
        return self.statement_kinds.kind(node), self.forms.add(node), sum(1 for _ in model.uses())

    def with_constants(self, rows: Rows) -> Rows:
        """The same rows after the rows of the constants that have an access."""
        tensors = self.run.tensors
        constants = [t for t in tensors if t.elements is not None and t.number in self.touched]
        if not constants:
            return rows
        statement_kinds = [
            self.statement_kinds.kind(Allocate(self.buffers[t.number], t.made_at))
            for t in constants
        ]
        number = len(constants)
        return Rows(
            np.concatenate([statement_kinds, rows.kinds]),
            np.concatenate([[NONE] * number, rows.forms]),
            np.concatenate([[t.number for t in constants], rows.made]),
            np.concatenate([[0] * number, rows.inside]),
            np.concatenate([[0] * number, rows.first]),
            rows.buffers,
            rows.offsets,
        )

    def reject_gathered(self) -> None:
        gathered = {t.number for t in self.run.tensors if t.is_gathered} & self.touched
        if not gathered:
            return
        for model in self.run.models:
            if isinstance(model, RecordedTensor):
                continue
            for view in model.uses():
                if view.tensor.number in gathered:
                    raise UnsupportedError(
                        "data is moved without an instruction, which no program says",
                        got=repr(view.spec),
                        hint="it reads an access that is not a pattern; copy its parts into a tile "
                        "first",
                        place=model.place,
                    )


@dataclass(slots=True)
class _Writer:
    """Makes calls; what repeats from call to call is made once."""

    buffers: Mapping[int, Buffer]
    by_name: dict[str, Buffer]
    """The buffers that were written."""
    run: RunColumns
    attrs: dict[tuple[int, bool], Mapping[str, Any]] = field(default_factory=dict)

    def call(self, noted: RecordedCall, defaulted: bool) -> Call:
        """`defaulted`: with accumulate=None."""
        made = noted.call
        key = (id(made), defaulted)
        attrs = self.attrs.get(key)
        if attrs is None:
            more = {"accumulate": None} if defaulted else {}
            attrs = self.attrs[key] = {**made.attrs, **more}
        operands = {
            name: self.access(value) if isinstance(value, RecordedView) else value
            for name, value in zip(noted.names, noted.operands, strict=True)
        }
        return Call(made.record.name, operands, attrs, noted.name, noted.place)

    def access(self, view: RecordedView) -> Access:
        """The access, as if it began with the first element."""
        tensor, spec, index = view
        buffer = self.buffers[tensor.which]
        self.by_name[buffer.name] = buffer
        dtype = None if spec.dtype is buffer.dtype else spec.dtype
        indirect = None
        if index is not None:
            moved = spec.indirect
            assert moved is not None
            rows = _rows_of(moved, spec, buffer, self.run)
            indirect = Indirect(moved.kind, self.access(index), *rows)
        made = Access(buffer.name, Affine(), spec.shape, spec.strides, dtype, indirect)
        return canonical(made, buffer)


def _rows_of(
    moved: Indirection, spec: Spec, buffer: Buffer, run: RunColumns
) -> tuple[int, tuple[int, int] | None]:
    """The dimension of the buffer that an index moves along, which may have been reshaped since;
    for time, else number and size of the rows that it counts.

    Raises UnsupportedError where the buffer has no such dimension.
    """
    step, odd = divmod(moved.stride * spec.dtype.itemsize, buffer.dtype.itemsize)
    for dim in sorted(range(len(buffer.shape)), key=lambda dim: dim != moved.dim):
        if not odd and (moved.limit, step) == (buffer.shape[dim], buffer.strides[dim]):
            return dim, None
    reason = UnsupportedError(
        f"an index along dimension {moved.dim} of a tensor that has been reshaped",
        expected=f"a dimension of {buffer.name}, whose shape is {buffer.shape}",
        got=f"{moved.limit} steps of {moved.stride} elements",
        hint="make the tensor in the shape that is indexed",
    )
    if not run.for_time or odd:
        raise reason
    run.timed_alone = reason
    return 0, (moved.limit, step)
