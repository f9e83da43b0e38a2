"""Keeps what a program means where another version gives its calls another meaning.

The table of such calls is `surface/changes.toml`. Each call that a row names is adapted, or it is
rejected in the words of the row, where no call of the other version has the old meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from neuroncore.effects import Touch
from neuroncore.enums import MemorySpace
from neuroncore.errors import UnsupportedError
from neuroncore.instructions import Call as MachineCall
from neuroncore.integers.affine import Affine
from neuroncore.machine.core import NeuronCore
from neuroncore.program.emission.legalization import NewName, each_call
from neuroncore.program.ir.binding import machine_call, specs_of
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
from neuroncore.program.ir.traversal import calls
from neuroncore.surface import MeaningChange, meaning_changes

_COLUMNS = 8  # of the values that nc_match_replace8 searches


def in_version(program: Program, version: str) -> Program:
    """The program with the meaning that its own version gives it, under the rules of another.

    Raises UnsupportedError for a call whose meaning the other version cannot express.
    """
    adapted = program
    for row in meaning_changes():
        if row.separates(program.nki, version):
            adapted = each_call(adapted, _Adapter(program, version, row).statements)
    return replace(adapted, nki=version)


class _Adapter:
    """One row of the table, for the calls of one program."""

    def __init__(self, program: Program, version: str, row: MeaningChange) -> None:
        self.program, self.version, self.row = program, version, row
        self.core = NeuronCore(program.target)
        self.buffers = program.buffers()

    @property
    def from_old(self) -> bool:
        """Whether the program's own version has the old meaning."""
        return self.row.has_old_meaning(self.program.nki)

    def statements(self, call: Call, name: NewName) -> Iterator[Statement]:
        """Statements that mean in the other version what `call` means in its own."""
        if f"nisa.{call.instruction}" in self.row.functions:
            yield from _ADAPTATIONS[self.row.id](self, call, name)
        else:
            yield call

    def seen(self, call: Call, nki: str) -> MachineCall:
        """The call as the machine takes it in a version."""
        return machine_call(call, specs_of(call, self.buffers, self.core), self.core, nki)

    def rejection(self, call: Call) -> UnsupportedError:
        row = self.row
        here, there = (row.before, row.after) if self.from_old else (row.after, row.before)
        return UnsupportedError(
            f"{call.instruction} means something else in NKI {self.version}",
            expected=f"as in NKI {self.program.nki}: {here}", got=there, place=call.origin,
            hint=row.cure if self.from_old else None, rule=row.source,
        )  # fmt: skip


def _reject(adapter: _Adapter, call: Call, name: NewName) -> Iterator[Statement]:
    raise adapter.rejection(call)


def _as_written(adapter: _Adapter, call: Call, name: NewName) -> Iterator[Statement]:
    """The source names every field that is not the version's default; limits reject the others."""
    yield call


def _named_engine(adapter: _Adapter, call: Call, name: NewName) -> Iterator[Statement]:
    """The engine that executes the call in the program's own version, where it is another one."""
    was, now = (adapter.seen(call, nki).engine for nki in (adapter.program.nki, adapter.version))
    yield call if was is now else replace(call, attrs={**call.attrs, "engine": was})


def _real_axis(adapter: _Adapter, call: Call, name: NewName) -> Iterator[Statement]:
    """The last axis by its number, which 0.2 also calls 1."""
    data = call.operands["data"]
    if adapter.from_old and isinstance(data, Access) and call.attrs["axis"] == (1,):
        call = replace(call, attrs={**call.attrs, "axis": (max(1, len(data.shape) - 1),)})
    yield call


def _reversed_columns(adapter: _Adapter, call: Call, name: NewName) -> Iterator[Statement]:
    """Values and indices by copies whose columns have the opposite order."""
    vals, indices = call.operands["vals"], call.operands["dst_idx"]
    if not (isinstance(vals, Access) and isinstance(indices, Access)):
        yield call  # which of two equal values is replaced first makes no difference
        return
    if (vals.shape[-1], indices.shape[-1]) != (_COLUMNS, _COLUMNS):
        raise adapter.rejection(call)  # columns that are split over dimensions
    values, places = (_copy(adapter, a, name) for a in (vals, indices))
    yield from (Allocate(buffer, call.origin) for buffer in (values, places))
    yield _columns(call, name("column"), values, vals, to_copy=True)
    copies = {"vals": whole(values), "dst_idx": whole(places)}
    yield replace(call, operands={**call.operands, **copies})
    yield _columns(call, name("column"), places, indices, to_copy=False)


def _copy(adapter: _Adapter, access: Access, name: NewName) -> Buffer:
    """A buffer for the columns of an access."""
    dtype = access.dtype or adapter.buffers[access.buffer].dtype
    shape = (access.shape[0], _COLUMNS)
    return Buffer(name(f"{access.buffer}_reversed"), shape, dtype, MemorySpace.sbuf)


def _columns(call: Call, variable: str, copy: Buffer, access: Access, to_copy: bool) -> Loop:
    """Column c of one is column 7 - c of the other."""
    column = Affine.variable(variable)
    own = replace(
        access,
        offset=access.offset + column * access.strides[-1],
        shape=(access.shape[0], *(1 for _ in access.shape[1:])),
    )
    opposite = Access(copy.name, Affine(_COLUMNS - 1) - column, (copy.shape[0], 1), copy.strides)
    dst, src = (opposite, own) if to_copy else (own, opposite)
    body = make_call("tensor_copy", None, call.origin, dst=dst, src=src)
    return Loop(variable, 0, _COLUMNS, (body,), origin=call.origin)


def _unless_continued(adapter: _Adapter, call: Call, name: NewName) -> Iterator[Statement]:
    """Rejects the call where another one goes on with the registers that it leaves undefined."""
    others = (adapter.seen(c, adapter.program.nki) for c in calls(adapter.program.body))
    if any(e.is_register and e.touch is Touch.accumulate for c in others for e in c.effects):
        raise adapter.rejection(call)
    yield call


_Adaptation = Callable[[_Adapter, Call, NewName], Iterator[Statement]]

_ADAPTATIONS: Mapping[str, _Adaptation] = {
    "range-select-reduces": _as_written,
    "range-select-heeds": _as_written,
    "tensor-reduce-axis": _real_axis,
    "integer-engine": _named_engine,
    "transpose-engine": _named_engine,
    "random-engine": _named_engine,
    "quantize-scale": _reject,
    "match-replace-order": _reversed_columns,
    "topk-results": _reject,
    "reduction-registers": _unless_continued,
}
"""What becomes of a call, by the id of the change."""
