"""Structure of a program: names, scopes, loops, fields of calls, forms of accesses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from neuroncore.enums import HBM, MemorySpace
from neuroncore.errors import (
    AccessError,
    AttributeValueError,
    KernelError,
    LaunchError,
    MemorySpaceError,
    ShapeError,
    SignatureError,
    Violation,
)
from neuroncore.findings import Finding
from neuroncore.instructions import INSTRUCTIONS, Operand
from neuroncore.instructions._execute import is_beyond, too_large
from neuroncore.machine.core import NeuronCore
from neuroncore.program.ir.binding import RULE, seen_as
from neuroncore.program.ir.constants import is_scalar, is_turn
from neuroncore.program.ir.nodes import Access, Allocate, Buffer, Call, Indirect, Loop, Statement
from neuroncore.program.ir.program import Program
from neuroncore.program.verification.findings import as_violation, found
from neuroncore.source_location import Place
from neuroncore.surface import VERSIONS
from nki_dtypes import int32, uint32

FARTHEST = 1 << 62
"""The greatest bound of a loop: its trips can be counted in 64 bits."""


def structure(program: Program, core: NeuronCore) -> tuple[list[Finding], set[int]]:
    """Everything that is out of place, and the ids of the calls that are not."""
    reader = _Reader(core)
    findings = [*reader.program(program)]
    return findings, reader.sound


@dataclass(slots=True)
class _Reader:
    core: NeuronCore
    names: set[str] = field(default_factory=set)
    sound: set[int] = field(default_factory=set)

    def program(self, program: Program) -> Iterator[Finding]:
        if program.nki not in VERSIONS:
            yield found(None, Violation(
                LaunchError, f"NKI {program.nki} is unknown", expected=", ".join(VERSIONS),
            ), program.places.get("nki"))  # fmt: skip
        visible: dict[str, Buffer] = {}
        for buffer in program.parameters:
            yield from self.enter(None, buffer, visible)
            if buffer.space not in HBM or buffer.content is not None:
                what = "a constant" if buffer.content is not None else (
                    f"in {buffer.space.name.upper()}"
                )  # fmt: skip
                yield found(None, Violation(
                    MemorySpaceError, f"parameter {buffer.name} is {what}",
                    expected="HBM that the caller fills", rule="NKI: kernel arguments",
                ))  # fmt: skip
        yield from self.block(program.body, visible, ())
        for name in program.results:
            yield from self.result(name, visible, program.places.get("results"))

    def result(
        self, name: str, visible: Mapping[str, Buffer], place: Place | None
    ) -> Iterator[Finding]:
        buffer = visible.get(name)
        if buffer is None:
            yield found(None, Violation(
                LaunchError, f"result {name} is not a buffer outside of loops",
                expected=", ".join(n for n, b in visible.items() if b.space in HBM) or "a buffer",
            ), place)  # fmt: skip
        elif buffer.space not in HBM:
            yield found(None, Violation(
                MemorySpaceError, f"result {name} is in {buffer.space.name.upper()}",
                expected="a tensor in shared HBM", rule="NKI: kernel outputs",
            ), place)  # fmt: skip
        elif buffer.content is not None:
            yield found(None, Violation(
                MemorySpaceError, f"result {name} is a constant",
                expected="a tensor that the program writes", hint="copy it there with dma_copy",
            ), place)  # fmt: skip

    def block(
        self, body: tuple[Statement, ...], visible: dict[str, Buffer], loops: tuple[str, ...]
    ) -> Iterator[Finding]:
        """`visible` gains what the block allocates."""
        for statement in body:
            match statement:
                case Loop():
                    yield from self.loop(statement, loops)
                    inner = (*loops, statement.variable)
                    yield from self.block(statement.body, dict(visible), inner)
                case Allocate(buffer):
                    yield from self.enter(statement, buffer, visible)
                    if buffer.content is not None:
                        yield from _odd_constant(statement, loops)
                case Call():
                    wrong = [*self.call(statement, visible, loops)]
                    yield from wrong
                    if not wrong:
                        self.sound.add(id(statement))

    def enter(
        self, statement: Allocate | None, buffer: Buffer, visible: dict[str, Buffer]
    ) -> Iterator[Finding]:
        visible[buffer.name] = buffer
        if buffer.name in self.names:
            yield found(statement, Violation(
                SignatureError, f"there are two buffers {buffer.name}", expected="unique names"
            ))  # fmt: skip
        self.names.add(buffer.name)
        try:
            self.core._layout(buffer.shape, buffer.dtype, buffer.space, buffer.address)
        except KernelError as wrong:
            violation = as_violation(wrong)
            yield found(statement, Violation(
                violation.error, f"{buffer.name}: {violation.what}", None, violation.expected,
                violation.got, violation.hint, violation.rule,
            ))  # fmt: skip

    def loop(self, loop: Loop, outer: tuple[str, ...]) -> Iterator[Finding]:
        if loop.step < 1 or loop.trips < 1:
            yield found(loop, Violation(
                ShapeError, f"loop {loop.variable} never runs",
                expected="start < stop and step >= 1",
                got=f"range({loop.start}, {loop.stop}, {loop.step})",
            ))  # fmt: skip
        if max(abs(loop.start), abs(loop.stop), loop.step) > FARTHEST:
            yield found(loop, Violation(
                ShapeError, f"loop {loop.variable} runs too far",
                expected=f"bounds and a step from {-FARTHEST} to {FARTHEST}",
                got=f"range({loop.start}, {loop.stop}, {loop.step})",
            ))  # fmt: skip
        if loop.variable in outer:
            yield found(loop, Violation(
                SignatureError, f"loop variable {loop.variable} is in use by an outer loop",
                expected="another name",
            ))  # fmt: skip

    # -- calls ------------------------------------------------------------------------------------

    def call(
        self, call: Call, visible: Mapping[str, Buffer], loops: tuple[str, ...]
    ) -> Iterator[Finding]:
        record = INSTRUCTIONS.get(call.instruction)
        if record is None:
            yield found(call, Violation(
                SignatureError, f"{call.instruction} is not an instruction",
                expected=", ".join(INSTRUCTIONS),
            ))  # fmt: skip
            return
        given = {**call.operands, **call.attrs}
        for name in given:
            if name not in record.operands and name not in record.attrs:
                yield found(call, Violation(SignatureError, f"unknown field {name}", name,
                            expected=", ".join((*record.operands, *record.attrs))))  # fmt: skip
        for name, operand in record.operands.items():
            violation = wrong_operand(name, operand, call.operands.get(name))
            if violation:
                yield found(call, violation)
        for name, attr in record.attrs.items():
            yield from self.attribute(call, name, attr.convert)
        for name, access in call.accesses.items():
            for violation in self.access(name, access, visible, loops):
                yield found(call, violation)

    def attribute(self, call: Call, name: str, convert: Any) -> Iterator[Finding]:
        if name not in call.attrs:
            yield found(call, Violation(AttributeValueError, f"{name} is missing", name,
                        hint="make_call fills in what is not given"))  # fmt: skip
            return
        try:
            converted = convert(call.attrs[name])
        except KernelError as wrong:
            yield found(call, as_violation(wrong))
        except (TypeError, ValueError, OverflowError) as wrong:
            yield found(call, Violation(AttributeValueError, f"{name}: {wrong}", name))
        else:
            if converted != call.attrs[name]:
                yield found(call, Violation(
                    AttributeValueError, f"{name} is not the record's value", name,
                    expected=repr(converted), got=repr(call.attrs[name]),
                    hint="make_call converts what kernels write",
                ))  # fmt: skip

    def access(
        self, name: str, access: Access, visible: Mapping[str, Buffer], loops: tuple[str, ...]
    ) -> Iterator[Violation]:
        buffer = visible.get(access.buffer)
        if buffer is None:
            yield Violation(
                AccessError, f"{access.buffer} is not a buffer here", name,
                expected=", ".join(visible) or "a buffer",
                hint="it is visible after its allocation, in the same block and its loops"
                if access.buffer in self.names else None,
            )  # fmt: skip
            return
        for variable, _ in access.offset.terms:
            if variable not in loops:
                yield Violation(AccessError, f"{variable} is not a loop variable here", name,
                                expected=", ".join(loops) or "a constant offset")  # fmt: skip
        if not access.shape or len(access.shape) != len(access.strides) or min(access.shape) < 1:
            yield Violation(
                AccessError, "the access has no elements or odd strides", name,
                got=f"shape {access.shape}, strides {access.strides}", rule=RULE,
            )  # fmt: skip
        row = buffer.free_bytes if buffer.space.on_chip else buffer.num_bytes
        if row % seen_as(access, buffer).itemsize:
            yield Violation(AccessError, f"{buffer.name} does not hold whole {access.dtype} "
                            "elements", name, got=f"{row} bytes", rule=RULE)  # fmt: skip
        if access.indirect is not None:
            yield from self.indirect(name, access, buffer, visible, loops)

    def indirect(
        self, name: str, access: Access, buffer: Buffer, visible: Mapping[str, Buffer],
        loops: tuple[str, ...],
    ) -> Iterator[Violation]:  # fmt: skip
        moved = access.indirect
        assert moved is not None
        wrong = [*self.access(name, moved.index, visible, loops)]
        yield from wrong
        if not 0 <= moved.dim < len(buffer.shape):
            yield Violation(
                AccessError, f"dim {moved.dim} is not a dimension of {buffer.name}", name,
                expected=f"0 <= dim < {len(buffer.shape)}", rule=RULE,
            )  # fmt: skip
        if wrong:
            return
        index = visible[moved.index.buffer]
        count = 1 if moved.kind == "scalar" else access.shape[0]
        if not _is_index(moved, index) or moved.index.size != count:
            yield Violation(
                AccessError, "the index of a dynamic access does not fit", name,
                expected=f"{count} int32 or uint32 in SBUF", rule="NKI: NkiTensor.ap",
                got=f"{moved.index.size} {seen_as(moved.index, index)} in {index.space}",
            )  # fmt: skip
        if moved.kind == "vector" and (buffer.space.on_chip or moved.dim):
            yield Violation(AccessError, "vector_offset indexes dimension 0 of an HBM tensor", name,
                            got=f"dim {moved.dim} of {buffer.space}",
                            rule="NKI: NkiTensor.ap")  # fmt: skip


def _is_index(moved: Indirect, index: Buffer) -> bool:
    """Whether a buffer holds integers where the index of a dynamic access may be."""
    if moved.kind == "scalar" and (is_turn(index) or is_scalar(index)) and not moved.index.dtype:
        return True
    has_integers = seen_as(moved.index, index) in (int32, uint32)
    return moved.kind in ("scalar", "vector") and has_integers and index.space is MemorySpace.sbuf


def _odd_constant(made: Allocate, loops: tuple[str, ...]) -> Iterator[Finding]:
    """Findings about the allocation of a constant."""
    buffer, rule = made.buffer, "NKI: nl.shared_constant"
    if loops:
        yield found(made, Violation(
            LaunchError, f"constant {buffer.name} is made in a loop",
            expected="constants outside of loops", rule=rule,
        ))  # fmt: skip
    if buffer.space is not MemorySpace.shared_hbm or buffer.address is not None:
        yield found(made, Violation(
            MemorySpaceError, f"constant {buffer.name} is in {buffer.space.name.upper()}",
            expected="shared HBM, without an address", rule=rule,
        ))  # fmt: skip
    if len(buffer.content or b"") != buffer.num_bytes:
        yield found(made, Violation(
            ShapeError, f"{buffer.name} has {len(buffer.content or b'')} bytes of content",
            expected=f"{buffer.num_bytes} for {buffer.dtype}{list(buffer.shape)}", rule=rule,
        ))  # fmt: skip


def wrong_operand(name: str, operand: Operand, value: Any) -> Violation | None:
    """The violation by the kind of an operand."""
    is_number = isinstance(value, (int, float))
    if is_beyond(value) and operand.number:
        return too_large(name, value)
    if isinstance(value, Access) and operand.tile:
        return None
    if (value is None and operand.optional) or (is_number and operand.number):
        return None
    kinds = ["an access"] * operand.tile + ["a number"] * operand.number
    what = f"{name} is missing" if value is None else f"{name} cannot be {value!r}"
    return Violation(SignatureError, what, name, expected=" or ".join(kinds))
