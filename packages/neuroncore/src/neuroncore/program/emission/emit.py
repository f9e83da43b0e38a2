"""Writes a program as NKI source of any version from 0.2 on, to be read and run.

Signatures are read backward: a record's fields become that version's parameters. The first two are
given by position, the others by name where they differ from the default. Every statement says in a
comment which source line it came from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from math import isfinite
from pathlib import PurePath
from typing import Any

from neuroncore.activations import Activation
from neuroncore.alu import AluOp
from neuroncore.enums import (
    DgeMode,
    DmaEngine,
    Engine,
    MatmulPerfMode,
    MemorySpace,
    OobMode,
    ReduceCmd,
)
from neuroncore.errors import KernelError, LaunchError, UnsupportedError
from neuroncore.instructions import Instruction
from neuroncore.integers.affine import Affine
from neuroncore.machine.scalars import SCALAR_FUNCTIONS
from neuroncore.program.emission.constant_arrays import (
    MODULES,
    array_names,
    carrier_of,
    definition,
    with_imports,
)
from neuroncore.program.emission.legalization import through_hbm, with_whole_constants
from neuroncore.program.emission.line_breaking import INDENT, folded
from neuroncore.program.emission.meaning import in_version
from neuroncore.program.ir.constants import elements_of, is_scalar, is_turn
from neuroncore.program.ir.naming import names_of, without_clashes
from neuroncore.program.ir.nodes import (
    Access,
    Allocate,
    Buffer,
    Call,
    Loop,
    Statement,
    plain_number,
)
from neuroncore.program.ir.printer import item_text, range_text
from neuroncore.program.ir.program import Program
from neuroncore.program.ir.subscripts import Item, Slice, subscript
from neuroncore.program.verification.findings import need_program
from neuroncore.program.verification.verify import check_calls
from neuroncore.source_location import Place
from neuroncore.surface import (
    DEFAULT_VERSION,
    VERSIONS,
    Param,
    Signature,
    signature,
    span,
    version_tuple,
)
from nki_dtypes import DType

WIDTH = 100
BY_POSITION = 2

_ENUMS: dict[type[Enum], str] = {
    Engine: "engine",
    DgeMode: "dge_mode",
    OobMode: "oob_mode",
    ReduceCmd: "reduce_cmd",
    MatmulPerfMode: "matmul_perf_mode",
    DmaEngine: "dma_engine",
}
_HEAD = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n"
_NEEDED = frozenset({"nki", "nisa", "nl", "range", "float"})  # names that statements refer to


def emit(program: Program, version: str = DEFAULT_VERSION, *, verified: bool = False) -> str:
    """The program as a kernel of that NKI version: imports, one decorated function. `verified`:
    `check` has passed already, for the program as it is.

    Raises ProgramError where calls break a rule of that version, UnsupportedError where the version
    has no way to write something, LaunchError for a version that is none.
    """
    need_program(program)
    if version not in VERSIONS[1:]:
        raise LaunchError(
            f"no source can be written for NKI {version}",
            expected="one of " + ", ".join(VERSIONS[1:]),
        )
    adapted = in_version(with_whole_constants(through_hbm(program)), version)
    if not verified or adapted != program:
        check_calls(adapted)
    has_arrays = any(b.content is not None for b in adapted.buffers().values())
    needed = _NEEDED | MODULES if has_arrays else _NEEDED
    return _Writer(without_clashes(adapted, needed), version).source()


@dataclass(slots=True)
class _Writer:
    """Source lines of one program."""

    program: Program
    version: str
    buffers: dict[str, Buffer] = field(default_factory=dict)
    ranges: dict[str, range] = field(default_factory=dict)
    depth: int = 1
    arrays: dict[str, str] = field(default_factory=dict)
    """Constant → the name of its NumPy array."""

    def source(self) -> str:
        program = self.program
        self.buffers = program.buffers()
        constants = [b for b in self.buffers.values() if b.content is not None]
        self.arrays = array_names(constants, names_of(program) | _NEEDED | MODULES)
        parameters = ", ".join(b.name for b in program.parameters)
        lines = folded(f"def {program.name}({parameters}):", WIDTH)
        lines += _indented(self.docstring())
        lines += _indented(self.statements(program.body))
        lines += _indented(self.returned())
        arrays = [list(definition(b, self.arrays[b.name])) for b in constants]
        for array in arrays:
            lines += ["", "", *array]
        head = with_imports(_HEAD, arrays)
        return f"{head}\n\n@nki.jit\n" + "\n".join(lines) + "\n"

    def docstring(self) -> Iterator[str]:
        program = self.program
        about = f"Program {program.name}, for {program.target}, NKI {self.version}."
        takes = [f"{b.name}: {b.shape}, {b.dtype}" for b in program.parameters]
        arrays = ((a, self.buffers[name]) for name, a in self.arrays.items())
        takes += [f"{a}, behind the kernel: {b.shape}, {b.dtype}" for a, b in arrays]
        if not takes:
            yield f'"""{about}"""'
            return
        yield f'"""{about}'
        yield ""
        yield from takes
        yield '"""'
        for b in program.parameters:
            yield f"assert {b.name}.shape == {b.shape}"

    def returned(self) -> Iterator[str]:
        names = ", ".join(self.program.results)
        if names:
            line, room = f"return {names}", WIDTH - len(INDENT)
            yield from [line] if len(line) <= room else folded(f"return ({names})", room)
        elif not self.program.body:
            yield "pass"

    # -- statements -------------------------------------------------------------------------------

    def statements(self, body: tuple[Statement, ...]) -> Iterator[str]:
        for statement in body:
            match statement:
                case Loop():
                    yield from self.loop(statement)
                case Allocate(buffer) if buffer.content is not None:
                    yield from self.laid_out(*self.constant(buffer), statement.origin)
                case Allocate(buffer):
                    yield from self.laid_out(*self.allocation(buffer), statement.origin)
                case Call():
                    yield from self.laid_out(*self.call(statement), statement.origin)

    def laid_out(self, head: str, parts: list[str], origin: Place | None) -> Iterator[str]:
        """head(parts) on one line, or with a part per line where it would be too long."""
        comment = f"  # from {PurePath(origin.file).name}:{origin.line}" if origin else ""
        line, room = f"{head}({', '.join(parts)}){comment}", WIDTH - self.depth * len(INDENT)
        if len(line) <= room:
            yield line
            return
        if len(f"{head}({comment}") > room:
            yield comment.strip()
            comment = ""
        yield f"{head}({comment}"
        for part in parts:
            yield from _indented(folded(f"{part},", room - len(INDENT)))
        yield ")"

    def loop(self, loop: Loop) -> Iterator[str]:
        outer = self.ranges.get(loop.variable)
        self.ranges[loop.variable] = loop.values
        yield f"for {loop.variable} in range({range_text(loop)}):"
        self.depth += 1
        yield from _indented(self.statements(loop.body) if loop.body else ["pass"])
        self.depth -= 1
        if outer is None:
            del self.ranges[loop.variable]
        else:
            self.ranges[loop.variable] = outer

    def allocation(self, buffer: Buffer) -> tuple[str, list[str]]:
        space = buffer.space
        if not space.on_chip:
            returned = buffer.name in self.program.results
            space = MemorySpace.shared_hbm if returned else MemorySpace.private_hbm
        parts = [repr(buffer.shape), f"dtype={self.dtype(buffer.dtype)}", f"buffer=nl.{space.name}"]
        if buffer.address is not None:
            parts.append(f"address={buffer.address}")
        return f"{buffer.name} = nl.ndarray", parts

    def constant(self, buffer: Buffer) -> tuple[str, list[str]]:
        made, array = f"{buffer.name} = nl.shared_constant", self.arrays[buffer.name]
        dtype = self.dtype(buffer.dtype)
        if carrier_of(buffer.dtype) is not buffer.dtype:
            return f"{made}({array}).view", [dtype]
        return made, [array]

    def call(self, call: Call) -> tuple[str, list[str]]:
        found = signature(call.instruction, self.version)
        if found is None:
            having = [v for v in VERSIONS[1:] if signature(call.instruction, v)]
            raise self.cannot(
                call.instruction, f"it is part of NKI {span(having)}" if having else None, call
            )
        if call.instruction in SCALAR_FUNCTIONS:
            return self.scalar_call(call)
        self.say_everything(call, found)
        return f"nisa.{call.instruction}", list(self.arguments(call, found))

    def scalar_call(self, call: Call) -> tuple[str, list[str]]:
        """A load or store of a scalar: kernels name the scalar, programs the cell behind it."""
        dst, src = (self.value(call.operands[name]) for name in ("dst", "src"))
        return "nisa.scalar_store", [dst, f"nisa.scalar_load({src})"]

    def arguments(self, call: Call, found: Signature) -> Iterator[str]:
        """The text between the parentheses, without defaults."""
        shown_before = 0
        for position, param in enumerate(found.params):
            value = self.argument(call, param)
            if not param.required and self.is_default(
                call.record, param.field, value, param.default
            ):
                continue
            by_position = position < BY_POSITION and position == shown_before
            shown_before += 1
            shown = self.value(value)
            yield shown if by_position else f"{param.name}={shown}"

    def argument(self, call: Call, param: Param) -> Any:
        """The call's value for a parameter."""
        if param.more:
            listed = [self.field(call, name) for name in param.fields]
            return [value for value in listed if value is not None]
        return call.name if param.name == "name" else self.field(call, param.field)

    @staticmethod
    def field(call: Call, name: str) -> Any:
        return call.operands[name] if name in call.operands else call.attrs.get(name)

    @staticmethod
    def is_default(record: Instruction, name: str, value: Any, default: Any) -> bool:
        """Whether leaving the parameter out says the same."""
        if name not in record.attrs:
            same_kind = isinstance(default, bool) == isinstance(value, bool)
            return value is None if default is None else (same_kind and value == default)
        return value == record.attrs[name].convert(default)

    def say_everything(self, call: Call, found: Signature) -> None:
        """Reject a field without a parameter in this version, unless it has its default."""
        attrs = call.record.attrs
        lost = {n: f"{n}=…" for n, value in call.operands.items() if value is not None}
        lost |= {n: f"{n}={v!r}" for n, v in call.attrs.items() if not attrs[n].is_default(v)}
        lost |= {"name": "name=…"} if call.name is not None else {}
        written = {name for p in found.params for name in p.fields}
        for name, shown in lost.items():
            if name not in written:
                raise self.cannot(f"{call.instruction}({shown})", None, call)

    def cannot(self, what: str, hint: str | None, call: Call | None = None) -> KernelError:
        return UnsupportedError(
            f"{what} cannot be written in NKI {self.version}",
            hint=hint,
            place=call.origin if call else None,
            rule=f"NKI {self.version}: nki.isa",
        )

    # -- values -----------------------------------------------------------------------------------

    def value(self, value: Any) -> str:
        match value:
            case Access():
                return self.access(value)
            case list():
                return f"[{', '.join(map(self.value, value))}]"
            case AluOp() | Activation():
                return f"nl.{value.name}"
            case DType():
                return self.dtype(value)
            case Enum():
                return f"nisa.{_ENUMS[type(value)]}.{value.name}"
            case tuple() if value and all(isinstance(v, tuple) for v in value):
                return repr([list(v) for v in value])
        plain = plain_number(value)
        if isinstance(plain, float) and not isfinite(plain):
            return f'float("{plain}")'
        return repr(plain)

    def dtype(self, dtype: DType) -> str:
        if version_tuple(dtype.since) > version_tuple(self.version):
            raise self.cannot(f"dtype {dtype}", f"it came with NKI {dtype.since}")
        return f"nl.{dtype}"

    def access(self, access: Access) -> str:
        buffer = self.buffers[access.buffer]
        name = buffer.name
        items = subscript(access, buffer)
        if items is not None and self.indexes_alike(items, access, buffer):
            shown = [item_text(i, n) for i, n in zip(items, buffer.shape, strict=True)]
            return name if set(shown) == {":"} else f"{name}[{', '.join(shown)}]"
        return f"{name}.ap({self.pattern(access)})"

    def indexes_alike(self, items: tuple[Item, ...], access: Access, buffer: Buffer) -> bool:
        """Whether the language's brackets give this shape, and stay inside for all iterations."""
        if isinstance(items[0], Affine) and buffer.space.on_chip:
            return False  # an index on partitions keeps the dimension
        if len(access.shape) < (2 if buffer.space.on_chip else 1):
            return False  # the last index would keep its dimension
        if buffer.space.on_chip and isinstance(items[0], Slice) and items[0].step != 1:
            return False
        return all(self.inside(item, n) for item, n in zip(items, buffer.shape, strict=True))

    def inside(self, item: Item, size: int) -> bool:
        first, last = (item.start, item.stop) if isinstance(item, Slice) else (item, item + 1)
        return first.bounds(self.ranges)[0] >= 0 and last.bounds(self.ranges)[1] <= size

    def index(self, access: Access) -> str:
        """The source of an index: a tensor, or a register with a loop's number."""
        buffer = self.buffers[access.buffer]
        if is_turn(buffer):
            return f"nisa.register_alloc({elements_of(buffer).item()})"
        read = self.access(access)
        return f"nisa.scalar_load({read})" if is_scalar(buffer) else read

    def pattern(self, access: Access) -> str:
        pairs = [[s, n] for s, n in zip(access.strides, access.shape, strict=True)]
        parts = [f"pattern={pairs}", f"offset={access.offset}"]
        if access.indirect is not None:
            moved = access.indirect
            parts.append(f"{moved.kind}_offset={self.index(moved.index)}")
            parts.append(f"indirect_dim={moved.dim}")
        seen, buffer = access.dtype, self.buffers[access.buffer]
        if buffer.content is not None and carrier_of(buffer.dtype) is not buffer.dtype:
            seen = seen or buffer.dtype  # a pattern is one of the storage, with any dtype
        if seen is not None:
            parts.append(f"dtype={self.dtype(seen)}")
        return ", ".join(parts)


def _indented(lines: Any) -> list[str]:
    return [INDENT + line if line else line for line in lines]
