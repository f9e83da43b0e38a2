"""Tile programs as kernel programs: tiles in SBUF, sums in PSUM, copies by DMA.

    t0 = A[0:128, 0:128]                        t0 = buffer(float32[128, 128], sbuf)
                                                dma_copy(dst=t0[:, :], src=A[:, :])
    t2 = nc_matmul(stationary=t0, moving=t1)    t2 = buffer(float32[128, 128], psum)
                                            →   nc_matmul(dst=t2[:, :], stationary=t0[:, :], …)
    t5 = nc_matmul(…, accumulator=t2)           nc_matmul(dst=t2[:, :], …)
    output[0:128, 0:128] = t5                   s5 = buffer(float32[128, 128], sbuf)
                                                tensor_copy(dst=s5[:, :], src=t2[:, :])
                                                dma_copy(dst=output[:, :], src=s5[:, :])

The names of a chain are one place in PSUM: what is added to is gone. Statements whose results reach
no store are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

from neuroncore.enums import MemorySpace
from neuroncore.errors import KernelError
from neuroncore.program import Access, Affine, Allocate, Buffer, Call, Program, make_call
from neuroncore.program import Statement as Written
from nki_dtypes import DType, float32, resolve
from nkigym.tiles.operators import MATMUL, OPERATORS, TENSOR_SCALAR, TENSOR_TENSOR, TRANSPOSE
from nkigym.tiles.program import (
    ALLOCATE,
    LOAD,
    STORE,
    Attribute,
    Interval,
    Reference,
    Shape,
    Statement,
    TileProgram,
    copies_of,
)


def live(program: TileProgram) -> TileProgram:
    """The program without the statements whose results reach no store.

    Merging calls leaves loads without readers, which are not lowered.
    """
    wanted: set[str] = set()
    kept = []
    for statement in reversed(program.statements):
        if statement.operator in (ALLOCATE, STORE) or statement.output.name in wanted:
            wanted.update(reference.name for reference in statement.references)
            kept.append(statement)
    return program._replace(statements=tuple(reversed(kept)))


class LoweringError(KernelError):
    """A tile program that the machine cannot run as it is written."""


class Location(NamedTuple):
    """Where a variable is: a buffer, and its first element there."""

    buffer: Buffer
    row: int = 0
    column: int = 0


def lower(program: TileProgram, target: str = "trn2") -> Program:
    """The kernel program of a tile program, a straight line.

    Raises LoweringError where a sum is read after something has been added to it.
    """
    dtype = resolve(program.dtype)
    parameters = tuple(Buffer(name, s, dtype, MemorySpace.hbm) for name, s in program.parameters)
    made = _Lowering(dtype, {buffer.name: Location(buffer) for buffer in parameters})
    for statement in live(program).statements:
        _TAKE.get(statement.operator, _Lowering.engine)(made, statement)
    return Program(program.name, parameters, tuple(made.body), program.returns, target)


@dataclass(slots=True)
class _Lowering:
    dtype: DType
    places: dict[str, Location]
    body: list[Written] = field(default_factory=list)
    overwritten: dict[str, list[tuple[str, Reference]]] = field(default_factory=dict)

    def allocate(self, statement: Statement) -> None:
        self._new(statement.output.name, statement.output.shape, self.dtype, MemorySpace.shared_hbm)

    def load(self, statement: Statement) -> None:
        made = self._new(
            statement.output.name, statement.output.shape, self.dtype, MemorySpace.sbuf
        )
        source = self._at(statement.references[0])
        for copy in range(copies_of(statement)):
            at = Affine(copy * source.shape[1])
            dst = Access(made.buffer, at, source.shape, made.strides)
            self._call("dma_copy", {}, dst=dst, src=source)

    def matmul(self, statement: Statement) -> None:
        given = statement.operands
        name = statement.output.name
        sums = given.get("accumulator")
        if sums is None:
            operands = {reference.name for reference in given.values()}
            into = self._new(
                name, statement.output.shape, float32, MemorySpace.psum, before=operands
            )
        else:
            into = self._at(sums)
            at, (rows, columns) = self.places[sums.name], sums.intervals
            self.places[name] = at._replace(row=at.row + rows[0], column=at.column + columns[0])
            self.overwritten.setdefault(sums.name, []).append((name, sums))
        operands = {n: self._in_sbuf(given[n]) for n in ("stationary", "moving")}
        self._call("nc_matmul", {}, dst=into, **operands)

    def engine(self, statement: Statement) -> None:
        """An instruction that makes a tile of its own, of tiles wherever they are."""
        name, space = statement.output.name, _PLACE.get(statement.operator, MemorySpace.sbuf)
        given = statement.operands
        others = {**OPERATORS[statement.operator].attributes, **statement.attributes}
        if statement.operator == TENSOR_SCALAR.name:
            others = {f"{name}0": value for name, value in others.items()}
        if others.get("bias") == 0:
            del others["bias"]  # a number as bias came with the third generation
        taken = statement.operator in _FROM_SBUF
        operands = {n: self._in_sbuf(v) if taken else self._at(v) for n, v in given.items()}
        into = self._new(name, statement.output.shape, self.dtype, space)
        self._call(statement.operator, others, dst=into, **operands)

    def store(self, statement: Statement) -> None:
        read, written = statement.references
        self._call("dma_copy", {}, dst=self._at(written), src=self._in_sbuf(read))

    # -- places -----------------------------------------------------------------------------------

    def _in_sbuf(self, reference: Reference) -> Access:
        """Part of a variable where DMA and the matrix unit can read it."""
        found = self._at(reference)
        if self.places[reference.name].buffer.space is not MemorySpace.psum:
            return found
        name = f"s{reference.name[1:]}"
        while name in self.places:
            name += "_"
        copied = self._new(name, reference.extents, self.dtype, MemorySpace.sbuf)
        self._call("tensor_copy", {}, dst=copied, src=found)
        return copied

    def _at(self, reference: Reference) -> Access:
        """Part of a variable. Raises LoweringError where it was overwritten."""
        for name, gone in self.overwritten.get(reference.name, ()):
            if all(map(_overlap, gone.intervals, reference.intervals)):
                raise LoweringError(
                    f"{reference.name} is read after {name} has added to it",
                    hint="a sum in PSUM has one place: read it before, or start another sum",
                )
        at = self.places[reference.name]
        rows, columns = reference.intervals
        width = at.buffer.shape[1]
        offset = (at.row + rows[0]) * width + at.column + columns[0]
        return Access(at.buffer.name, Affine(offset), reference.extents, (width, 1))

    def _new(
        self, name: str, shape: Shape, dtype: DType, space: MemorySpace, before: Container[str] = ()
    ) -> Access:
        """A buffer; in front of the loads of `before` where these come last, so that the first
        product of a sum has the same order of loads as the others, and one loop can contain all of
        them.
        """
        buffer = Buffer(name, shape, dtype, space)
        self.places[name] = Location(buffer)
        at = len(self.body)
        while at >= 2 and _allocates(self.body[at - 2], before):
            at -= 2
        self.body.insert(at, Allocate(buffer))
        return Access(name, Affine(), shape, (shape[1], 1))

    def _call(
        self, instruction: str, attributes: Mapping[str, Attribute], **operands: Access
    ) -> None:
        like = _like(instruction, tuple(attributes.items()))
        self.body.append(replace(like, operands={**like.operands, **operands}))


_TAKE: dict[str, Callable[[_Lowering, Statement], None]] = {
    ALLOCATE: _Lowering.allocate,
    LOAD: _Lowering.load,
    STORE: _Lowering.store,
    MATMUL.name: _Lowering.matmul,
}

_PLACE = {TRANSPOSE.name: MemorySpace.psum}
"""Where results are, if not in SBUF."""

_FROM_SBUF = {TRANSPOSE.name, TENSOR_TENSOR.name}
"""TensorE reads SBUF alone; of two tiles one at most may be in PSUM [NKI: tensor_tensor]."""


@cache
def _like(instruction: str, attributes: tuple[tuple[str, Any], ...]) -> Call:
    """A call with every default; the first matmul into fresh PSUM overwrites, later ones add."""
    return make_call(instruction, **dict(attributes))


def _allocates(statement: Written, names: Container[str]) -> bool:
    return isinstance(statement, Allocate) and statement.buffer.name in names


def _overlap(one: Interval, other: Interval) -> bool:
    return one[0] < other[1] and other[0] < one[1]
