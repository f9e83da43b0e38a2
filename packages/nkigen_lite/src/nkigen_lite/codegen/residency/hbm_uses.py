"""The plain transfers of arrays in HBM that a program contains, and all other uses of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf, prod

from neuroncore.program import (
    Access,
    Allocate,
    Buffer,
    Call,
    Loop,
    Program,
    Statement,
    accesses,
)
from nki_dtypes import DType
from nkigen_lite.codegen.emission.writer import together
from nkigen_lite.codegen.residency.layouts import Ranges, ResidentLayout


@dataclass(frozen=True, slots=True)
class Transfer:
    """A DMA of an array in HBM: `access` to the array, `other` the other side, `times` executions;
    `top` is the number of the statement of the program that contains it."""

    access: Access
    other: Access
    is_store: bool
    ranges: Ranges
    top: int
    times: int
    between_arrays: bool
    """Whether the other side is in HBM too."""

    def bytes_of(self, buffer: Buffer) -> int:
        return self.times * self.access.size * buffer.dtype.itemsize

    def is_direct(self, layout: ResidentLayout) -> bool:
        return layout.direct("", self.access, self.ranges) is not None

    def is_possible(self, layout: ResidentLayout) -> bool:
        """Whether the transfer is one on chip, if not none."""
        return self.is_direct(layout) or self.moved(layout, "") is not None

    def run(self) -> int:
        """How many elements it moves at a time, at least."""
        return min(_run(self.access, 0), _run(self.other, 1))

    def run_on_chip(self, layout: ResidentLayout) -> float:
        """The same with the array in this layout; 0 where it is not known."""
        if self.is_direct(layout):
            return inf
        pairs = [] if self.between_arrays else self.moved(layout, "") or []
        return min((min(_run(a, 1), _run(b, 1)) for a, b in pairs), default=0)

    def moved(self, layout: ResidentLayout, buffer: str) -> list[tuple[Access, Access]] | None:
        """(on chip, of the other side) of the DMAs that it is with the array in `buffer`."""
        found = layout.transfers(buffer, self.access, self.other, self.ranges)
        if found is not None or not self.between_arrays or self.access.size == 1:
            return found
        return layout.transfers(buffer, *together(self.access, self.other, 0), self.ranges)


def _run(access: Access, first: int) -> int:
    """How many elements are one after the other, in the axes from the `first` on."""
    run = 1
    axes = zip(access.shape[first:], access.strides[first:], strict=True)
    for count, stride in reversed(list(axes)):
        if count > 1 and stride != run:
            break
        run *= count
    return run


@dataclass(slots=True)
class Uses:
    """Uses of an array in HBM; `first` is the first statement that uses it."""

    transfers: list[Transfer] = field(default_factory=list)
    is_used_otherwise: bool = False
    is_written_otherwise: bool = False
    first: int = -1

    def loads(self) -> list[Transfer]:
        return [t for t in self.transfers if not t.is_store]

    def stores(self) -> list[Transfer]:
        return [t for t in self.transfers if t.is_store]

    def dtypes(self, array: Buffer) -> list[DType]:
        """As which the array is seen."""
        return list(dict.fromkeys(t.access.dtype or array.dtype for t in self.transfers))

    def may_stay(self, array: Buffer, is_argument: bool) -> bool:
        """Whether all loads come after the stores, of an argument more than one, of one dtype."""
        loads, stores = self.loads(), self.stores()
        if not loads or self.is_written_otherwise or is_argument is bool(stores):
            return False
        if len(self.dtypes(array)) > 1 or self.dtypes(array)[0].itemsize != array.dtype.itemsize:
            return False
        if is_argument:
            return sum(t.bytes_of(array) for t in loads) > array.num_bytes
        return max(t.top for t in stores) < min(t.top for t in loads)


def uses_of(program: Program) -> dict[str, Uses]:
    """The uses of every array in HBM."""
    buffers, found = program.buffers(), dict[str, Uses]()

    def visit(statement: Statement, ranges: Ranges, top: int) -> None:
        if isinstance(statement, Loop):
            for each in statement.body:
                visit(each, {**ranges, statement.variable: statement.values}, top)
            return
        for name, access in _in_hbm(statement, buffers):
            uses = found.setdefault(access.buffer, Uses(first=top))
            transfer = transfer_of(statement, name, access, ranges, top, buffers)
            if transfer is None:
                uses.is_used_otherwise = True
                uses.is_written_otherwise |= _is_written(statement, name)
            else:
                uses.transfers.append(transfer)

    for top, statement in enumerate(program.body):
        if isinstance(statement, Allocate):
            found[statement.buffer.name] = Uses(first=top)
        visit(statement, {}, top)
    return found


def _in_hbm(statement: Statement, buffers: dict[str, Buffer]) -> Iterator[tuple[str, Access]]:
    """The operands that are in HBM."""
    if isinstance(statement, Call):
        for access in accesses(statement):
            if not buffers[access.buffer].space.on_chip:
                names = [n for n, a in statement.operands.items() if a is access]
                yield names[0] if names else "", access


def _is_written(statement: Statement, name: str) -> bool:
    return isinstance(statement, Call) and bool(name) and statement.record.operands[name].writes


def transfer_of(
    call: Statement, name: str, access: Access, ranges: Ranges, top: int,
    buffers: Mapping[str, Buffer],
) -> Transfer | None:  # fmt: skip
    """The plain DMA that the call is."""
    if not isinstance(call, Call) or call.instruction != "dma_copy" or not name:
        return None
    other = call.operands["src" if name == "dst" else "dst"]
    if not isinstance(other, Access) or call.attrs.get("dst_rmw_op") is not None:
        return None
    if access.indirect is not None or other.indirect is not None:
        return None
    times = prod(map(len, ranges.values()))
    between_arrays = not buffers[other.buffer].space.on_chip
    return Transfer(access, other, name == "dst", ranges, top, times, between_arrays)
