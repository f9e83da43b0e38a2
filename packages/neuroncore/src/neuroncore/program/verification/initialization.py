"""Reads of elements that nothing has written, and PSUM accumulation that nothing has started.

A small program is played: one flag per byte and buffer, every iteration. For a large one, each
buffer keeps the smallest box around what has been written so far, loops taken as a whole: it finds
reads outside of every earlier write, and misses holes. Where an index decides what is
written, everything is taken as written. In 0.1 undefined elements are carried through VectorE and
ScalarE (see neuroncore.machine.undefined); by boxes, what comes of them is taken as written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from neuroncore.effects import Touch
from neuroncore.enums import Engine, MemorySpace
from neuroncore.errors import UndefinedError, Violation
from neuroncore.findings import Finding
from neuroncore.instructions import Call as MachineCall
from neuroncore.machine.undefined import carries, comes_by_element, defined
from neuroncore.memory import window
from neuroncore.program.ir.binding import in_elements, seen_as
from neuroncore.program.ir.nodes import Access, Allocate, Buffer, Call, Loop, Statement
from neuroncore.program.ir.program import Program
from neuroncore.program.ir.traversal import Ranges
from neuroncore.program.verification.findings import found

PLAYED_CALLS = 100_000
PLAYED_BYTES = 1 << 28

RULE = "NKI language guide: new tensors have undefined content"
GROUP_RULE = "NKI: nc_matmul, accumulate"


@dataclass(frozen=True, slots=True)
class Touches:
    """Reads and writes of a call, in that order; `group`: it must find a matmul's result."""

    reads: tuple[tuple[str, Access], ...]
    writes: tuple[tuple[str, Access], ...]
    group: Access | None
    is_matmul: bool
    """Whether what it writes in PSUM counts as written by a matmul."""
    carries: bool
    """Whether what it makes of undefined elements is undefined, instead of a finding."""
    by_element: bool


Legal = dict[int, MachineCall]
"""The calls that are legal, by the id of the statement, as the machine's records take them."""


def touches(call: Call, made: MachineCall) -> Touches:
    """The effects of a legal call on buffers."""
    mine = call.accesses
    reads, writes = [], []
    for effect in call.record.effects(made):
        access = mine.get(effect.operand)
        if access is not None and effect.operand in call.record.rows:
            shape, strides = call.record.rows[effect.operand].of(access.shape, access.strides)
            access = replace(access, shape=shape, strides=strides)
        if access is not None and not effect.is_register:
            (reads if effect.touch is Touch.read else writes).append((effect.operand, access))
    reads += [(f"index of {n}", a.indirect.index) for n, a in mine.items() if a.indirect]
    group = mine.get("dst") if call.attrs.get("accumulate") is True else None
    return Touches(
        tuple(reads), tuple(writes), group, made.engine is Engine.tensor, carries(made),
        comes_by_element(made),
    )  # fmt: skip


def uninitialised(program: Program, legal: Legal) -> Iterator[Finding]:
    """A finding for each call that reads what may never have been written."""
    buffers = program.buffers()
    num_bytes = sum(b.num_bytes for b in buffers.values())
    small = _played(program.body) <= PLAYED_CALLS and num_bytes <= PLAYED_BYTES
    kind = _Exact if small else _Boxes
    reader = kind(buffers, legal)
    for buffer in program.parameters:
        reader.begin(buffer, written=True)
    reader.block(program.body, {})
    yield from reader.findings.values()


def _played(body: tuple[Statement, ...]) -> int:
    """Calls that execution would make."""
    return sum(s.trips * _played(s.body) if isinstance(s, Loop) else 1 for s in body)


@dataclass(slots=True)
class _Reader:
    """Walks a program; subclasses say what a loop and a region are."""

    buffers: dict[str, Buffer]
    legal: Legal
    findings: dict[int, Finding] = field(default_factory=dict)
    known: dict[int, Touches] = field(default_factory=dict)

    def begin(self, buffer: Buffer, written: bool = False) -> None:
        raise NotImplementedError

    def touches(self, call: Call) -> Touches:
        seen = self.known.get(id(call))
        if seen is None:
            seen = touches(call, self.legal[id(call)])
            self.known[id(call)] = seen
        return seen

    def report(self, call: Call, operand: str, access: Access, what: str, at: str = "") -> None:
        name = access.buffer
        self.findings.setdefault(id(call), found(call, Violation(
            UndefinedError, f"{operand} reads {what} of {name} that nothing has written{at}",
            operand, hint=f"write {name} first, or read only what has been written", rule=RULE,
        )))  # fmt: skip

    def report_group(self, call: Call) -> None:
        self.findings.setdefault(id(call), found(call, Violation(
            UndefinedError, "accumulates onto PSUM that no matmul has written", "accumulate",
            expected="a first matmul with accumulate=False (or None) into the same locations",
            rule=GROUP_RULE,
        )))  # fmt: skip


Flags = dict[str, np.ndarray | bool]
"""Per buffer, one flag per byte; True or False while all bytes agree."""


@dataclass(slots=True)
class _Exact(_Reader):
    """One flag per byte, where bytes differ."""

    written: Flags = field(default_factory=dict)
    matmul: Flags = field(default_factory=dict)

    def begin(self, buffer: Buffer, written: bool = False) -> None:
        self.written[buffer.name] = written or buffer.content is not None
        if buffer.space is MemorySpace.psum:
            self.matmul[buffer.name] = False

    def block(self, body: tuple[Statement, ...], values: dict[str, int]) -> None:
        for statement in body:
            match statement:
                case Loop():
                    for value in range(statement.start, statement.stop, max(1, statement.step)):
                        self.block(statement.body, {**values, statement.variable: value})
                case Allocate(buffer):
                    self.begin(buffer)
                case Call() if id(statement) in self.legal:
                    self.call(statement, values)

    def call(self, call: Call, values: dict[str, int]) -> None:
        touched = self.touches(call)
        undefined = [*self.undefined(call, touched, values)]
        group = touched.group
        unsure = group is not None and self.matmul[group.buffer] is not True
        if group is not None and unsure and not self.flags(self.matmul, group, values).all():
            self.report_group(call)
        for _, access in touched.writes:
            sound = defined(touched.by_element, undefined, access.shape)
            self.mark(self.written, access, values, sound)
            if touched.is_matmul and access.buffer in self.matmul:
                self.mark(self.matmul, access, values)

    def undefined(
        self, call: Call, touched: Touches, values: dict[str, int]
    ) -> Iterator[np.ndarray]:
        """The elements that nothing has written of each read from which the call carries them to
        its result; missing elements of other reads are reported.
        """
        for operand, access in touched.reads:
            missing = self.missing(access, values)
            if missing is None:
                continue
            if touched.carries and all(access.shape[0] == w.shape[0] for _, w in touched.writes):
                yield missing
            elif id(call) not in self.findings:
                at = ", ".join(f"{n} = {v}" for n, v in values.items())
                elements = f"{np.count_nonzero(missing)} of {access.size} elements"
                self.report(call, operand, access, elements, f" (at {at})" if at else "")

    def missing(self, access: Access, values: dict[str, int]) -> np.ndarray | None:
        """The elements of a read that nothing has written, in its shape; None where there is none.

        Of what an index names, all or nothing.
        """
        if self.written[access.buffer] is True:
            return None
        flags = self.flags(self.written, access, values)
        if access.indirect is not None:
            return None if flags.any() else np.ones(access.shape, np.bool_)
        return None if flags.all() else np.logical_not(flags.all(axis=-1))

    def mark(
        self, of: Flags, access: Access, values: dict[str, int], sound: np.ndarray | None = None
    ) -> None:
        """The access's bytes have been written, with something defined where `sound`."""
        if sound is not None and access.indirect is None:
            self.flags(of, access, values)[...] = sound[..., None]
        elif of[access.buffer] is not True:
            if access.indirect is None and self.is_whole(access):
                of[access.buffer] = True
            else:
                self.flags(of, access, values)[...] = True

    def is_whole(self, access: Access) -> bool:
        """Whether it names each element of its buffer once."""
        buffer = self.buffers[access.buffer]
        return (
            access.dtype is None
            and access.shape == buffer.shape
            and (access.strides == buffer.strides)
        )

    def flags(self, of: Flags, access: Access, values: dict[str, int]) -> np.ndarray:
        """The flags of the access's bytes, as a view; of the whole buffer where an index moves."""
        flags = of[access.buffer]
        if isinstance(flags, bool):
            size = self.buffers[access.buffer].num_bytes
            flags = of[access.buffer] = np.full(size, flags, np.bool_)
        if access.indirect is not None:
            return flags
        width = seen_as(access, self.buffers[access.buffer]).itemsize
        offset = access.offset.value(values) * width
        strides = (*(s * width for s in access.strides), 1)
        return window(flags, offset, (*access.shape, width), strides)


Box = tuple[int, int, int, int]
"""First and last partition (or row), first and last byte in it."""


@dataclass(slots=True)
class _Boxes(_Reader):
    """The smallest box around all writes so far."""

    written: dict[str, Box | None] = field(default_factory=dict)
    matmul: dict[str, Box | None] = field(default_factory=dict)

    def begin(self, buffer: Buffer, written: bool = False) -> None:
        everything = (0, buffer.shape[0] - 1, 0, buffer.free_bytes - 1)
        known = written or buffer.content is not None
        self.written[buffer.name] = everything if known else None
        self.matmul[buffer.name] = None

    def block(self, body: tuple[Statement, ...], ranges: Ranges) -> None:
        for statement in body:
            match statement:
                case Loop():
                    self.block(statement.body, {**ranges, statement.variable: statement.values})
                case Allocate(buffer):
                    self.begin(buffer)
                case Call() if id(statement) in self.legal:
                    self.call(statement, ranges)

    def call(self, call: Call, ranges: Ranges) -> None:
        touched = self.touches(call)
        first = {name: values[:1] for name, values in ranges.items()}
        for operand, access in () if touched.carries else touched.reads:
            if not _inside(self.box(access, first), self.written[access.buffer], access):
                self.report(call, operand, access, "elements")
        group = touched.group
        if group and not _inside(self.box(group, first), self.matmul[group.buffer], group):
            self.report_group(call)
        for _, access in touched.writes:
            box = self.box(access, ranges)
            self.written[access.buffer] = _around(self.written[access.buffer], box)
            if touched.is_matmul:
                self.matmul[access.buffer] = _around(self.matmul[access.buffer], box)

    def box(self, access: Access, ranges: Ranges) -> Box:
        buffer = self.buffers[access.buffer]
        width = seen_as(access, buffer).itemsize
        row = max(1, in_elements(access, buffer, buffer.row))
        if access.indirect is not None:
            return 0, buffer.shape[0] - 1, 0, buffer.free_bytes - 1
        down, up = access.reach()
        low, high = access.offset.bounds(ranges)
        low, high = low + down, high + up
        if low // row == high // row:
            return low // row, low // row, low % row * width, (high % row + 1) * width - 1
        columns = type(access.offset)(
            access.offset.constant % row, tuple(t for t in access.offset.terms if t[1] % row)
        ).bounds(ranges)
        inner = Access(access.buffer, access.offset, access.shape[1:], access.strides[1:]).reach()
        left, right = columns[0] + inner[0], columns[1] + inner[1]
        if access.strides[0] % row or left < 0 or right >= row:
            left, right = 0, row - 1
        return low // row, high // row, left * width, (right + 1) * width - 1


def _inside(box: Box, written: Box | None, access: Access) -> bool:
    if written is None or access.indirect is not None:
        return written is not None
    rows, columns = box[:2], box[2:]
    return (
        written[0] <= rows[0]
        and rows[1] <= written[1]
        and written[2] <= columns[0]
        and columns[1] <= written[3]
    )


def _around(one: Box | None, other: Box) -> Box:
    if one is None:
        return other
    low, high = min(one[0], other[0]), max(one[1], other[1])
    return low, high, min(one[2], other[2]), max(one[3], other[3])
