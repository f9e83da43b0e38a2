"""From a kernel program to what the planner sees of it: every effect that its records declare."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from neuroncore.effects import Footprint, Touch
from neuroncore.enums import MemorySpace
from neuroncore.machine.core import NeuronCore
from neuroncore.program import Access as Elements
from neuroncore.program import Affine, Allocate, Program, Statement, call_effects, check
from neuroncore.program import Buffer as Tensor
from neuroncore.program import Call as Instruction
from neuroncore.program import Loop as ProgramLoop
from neuroncore.program.ir.effects import BoundEffect, CallEffects
from tokenplan.kernel.addresses import has_address, in_memory, memory_of
from tokenplan.kernel.model import Access, Buffer, Kernel, Loop, Mode, Node, Op

_MODES = {
    Touch.read: Mode.read,
    Touch.write: Mode.write,
    Touch.accumulate: Mode.accumulate,
    Touch.clobber: Mode.write,
}
_ON_DEVICE = "an index that is read on the device decides"

Details = tuple[tuple[str, str], ...]


def read(program: Program, *, verified: bool = False) -> Kernel:
    """The planner's view of `program`; `verified` says that `check` has passed already.

    Tensors with a fixed address share one buffer per memory ("sbuf@"), every other tensor has its
    own; parameters are taken to be distinct tensors. Raises ProgramError with everything that is
    wrong with the program.
    """
    if not verified:
        check(program)
    return _Reader(program).kernel()


@dataclass(slots=True)
class _Reader:
    program: Program
    core: NeuronCore = field(init=False)
    tensors: dict[str, Tensor] = field(init=False)
    like: dict[str, tuple[int, int | None]] = field(init=False)
    """Of each tensor, a number for what a record sees of it, and how many elements are alike for it
    to begin at (None: all)."""
    buffers: dict[str, Buffer] = field(default_factory=dict)
    names: Counter[str] = field(default_factory=Counter)
    around: list[Loop] = field(default_factory=list)
    """The loops that are open, without their bodies."""
    values: dict[str, Affine] = field(default_factory=dict)
    """Variables of the open loops, in iterations."""
    known: dict[Hashable, tuple[CallEffects, Details | None]] = field(default_factory=dict)
    """Effects and details of calls that are alike; no details where each has its own."""

    def __post_init__(self) -> None:
        self.core = NeuronCore(self.program.target, watchers=())
        self.tensors = self.program.buffers()
        kinds = {name: _kind(tensor) for name, tensor in self.tensors.items()}
        number = {kind: n for n, kind in enumerate(dict.fromkeys(kinds.values()))}
        self.like = {n: (number[kinds[n]], _row(tensor)) for n, tensor in self.tensors.items()}

    def kernel(self) -> Kernel:
        for tensor in self.program.parameters:
            self._buffer(tensor, is_parameter=True)
        body = self._body(self.program.body)
        program = self.program
        return Kernel(
            program.name, program.target, self.buffers, body, program.results, program.nki
        )

    def _body(self, statements: tuple[Statement, ...]) -> tuple[Node, ...]:
        nodes: list[Node] = []
        for statement in statements:
            match statement:
                case Allocate(tensor):
                    self._buffer(tensor)
                case ProgramLoop():
                    nodes.append(self._loop(statement))
                case Instruction():
                    nodes.append(self._op(statement))
        return tuple(nodes)

    def _loop(self, loop: ProgramLoop) -> Loop:
        name, outer = self._unique(loop.variable), dict(self.values)
        opened = Loop(name, loop.variable, loop.trips, loop.start, loop.step, (), loop.origin)
        self.around.append(opened)
        self.values[loop.variable] = Affine.variable(name, loop.step) + loop.start
        body = self._body(loop.body)
        self.around.pop()
        self.values = outer
        return replace(opened, body=body)

    def _op(self, call: Instruction) -> Op:
        effects, details = self._effects(call)
        accesses = tuple([a for place in effects.places for a in self._accesses(call, place)])
        name = self._unique(call.name or call.instruction)
        loops = tuple([loop.id for loop in self.around])
        if details is None:
            details = self._own_details(call)
        return Op(
            name, call.instruction, effects.engine.name, loops, accesses, details, call.origin
        )

    def _effects(self, call: Instruction) -> tuple[CallEffects, Details | None]:
        """The effects and details that equal calls share, relative to where an operand begins."""
        key = self._alike(call)
        if key is None:
            return call_effects(call, self.tensors, self.core, self.program.nki), None
        found = self.known.get(key)
        if found is None:
            tensors = [self.tensors[access.buffer] for access in call.accesses.values()]
            found = self.known[key] = (
                call_effects(call, self.tensors, self.core, self.program.nki),
                None if any(map(has_address, tensors)) else self._own_details(call),
            )
        return found

    def _alike(self, call: Instruction) -> Hashable:
        """The same for calls that differ in nothing that their record sees; None: look at it."""
        key: list[Hashable] = [call.instruction]
        for name, value in call.operands.items():
            if not isinstance(value, Elements):
                key += name, repr(value)
                continue
            if value.indirect is not None:
                return None
            (kind, row), at = self.like[value.buffer], value.offset.constant
            begins = None if row is None else at // row if value.dtype is None else (at,)
            key += name, kind, value.shape, value.strides, value.dtype, begins
        key += call.attrs
        return *key, *map(_same, call.attrs.values())

    def _own_details(self, call: Instruction) -> Details:
        return tuple(sorted({**dict(_details(call)), **self._patterns(call)}.items()))

    def _unique(self, name: str) -> str:
        """The name itself the first time, then with a number."""
        self.names[name] += 1
        return name if self.names[name] == 1 else f"{name}.{self.names[name]}"

    # -- memory -----------------------------------------------------------------------------------

    def _buffer(self, tensor: Tensor, is_parameter: bool = False) -> None:
        if has_address(tensor):
            memory = memory_of(tensor, self.core)
            self.buffers.setdefault(memory.id, memory)
            return
        scope = tuple(loop.id for loop in self.around)
        content = tensor.content
        self.buffers[tensor.name] = Buffer(
            tensor.name, tensor.space.name, tensor.shape, tensor.dtype.itemsize, scope,
            is_parameter, tensor.dtype.name,
            None if content is None else hashlib.sha256(content).hexdigest(),
        )  # fmt: skip

    def _patterns(self, call: Instruction) -> dict[str, str]:
        """In which order each operand takes its elements, and as what: bytes alone do not say."""
        found = {name: self._pattern(access) for name, access in call.accesses.items()}
        for name, access in call.accesses.items():
            if access.indirect is not None:
                kind, dim = access.indirect.kind, access.indirect.dim
                found[name] += f" from {self._start(access)}, {kind} index of dimension {dim}"
                found[f"{name}.index"] = self._pattern(access.indirect.index)
        return found

    def _pattern(self, access: Elements) -> str:
        tensor = self.tensors[access.buffer]
        dtype = access.dtype or tensor.dtype
        text = f"{dtype.name}{list(access.shape)} by {list(access.strides)}"
        return f"{text} from {self._start(access)}" if has_address(tensor) else text

    def _start(self, access: Elements) -> str:
        """The offset in elements; loops go by their depth."""
        depths = {loop.id: depth for depth, loop in enumerate(self.around)}
        start = access.offset.substitute(self.values)
        moves = sorted((depths[name], c) for name, c in start.terms)
        return " + ".join([str(start.constant), *(f"{c}*loop{depth}" for depth, c in moves)])

    def _accesses(self, call: Instruction, place: BoundEffect) -> list[Access]:
        mode, operand, found = _MODES[place.effect.touch], place.effect.operand, place.at_zero
        if found is None:
            self.buffers.setdefault(operand, Buffer(operand, "register", (1,), 1))
            return [Access(operand, mode, Affine(), (), (), 1, operand)]
        begins = call.operands.get(operand, place)  # "src.index" is not an operand
        assert isinstance(begins, (Elements, BoundEffect))
        tensor, start, by = self.tensors[begins.buffer], begins.offset, place.width
        offset = (start.substitute(self.values) if start.terms else start) * by + found.offset
        on_device = _ON_DEVICE if getattr(begins, "indirect", None) else None
        name = memory_of(tensor, self.core).id if has_address(tensor) else tensor.name
        accesses = []
        for at, part, why in self._parts(tensor, found, offset):
            width = part.itemsize
            if on_device and at.is_constant and not part.shape:
                width = min(width, self.buffers[name].num_bytes - at.constant)  # indices in bounds
            accesses.append(
                Access(name, mode, at, part.shape, part.strides, width, operand, on_device or why)
            )
        return accesses

    def _parts(
        self, tensor: Tensor, found: Footprint, offset: Affine
    ) -> Iterable[tuple[Affine, Footprint, str | None]]:
        """Where the elements are in the buffer of the tensor's own or of its memory."""
        if not has_address(tensor):
            return [(offset, found, None)]
        trips = {loop.id: (0, max(0, loop.trips - 1)) for loop in self.around}
        return in_memory(tensor, found, offset - found.offset, trips, self.core)


def _kind(tensor: Tensor) -> Hashable:
    return tensor.shape, tensor.dtype, tensor.space, tensor.address, tensor.content is None


def _row(tensor: Tensor) -> int | None:
    """The partition is seen of where it begins; in PSUM its place in the bank, too."""
    if not tensor.space.on_chip:
        return None
    return max(1, tensor.row) if tensor.space is MemorySpace.sbuf else 1


def _same(value: object) -> Hashable:
    """Equal for values that are one and the same, numbers by what they are."""
    return repr(value) if isinstance(value, (int, float, str)) else id(value)


def _details(call: Instruction) -> Iterator[tuple[str, str]]:
    for name, value in call.operands.items():
        if isinstance(value, (int, float)):
            yield name, repr(value)
    for name, value in call.attrs.items():
        if not call.record.attrs[name].is_default(value):
            yield name, str(getattr(value, "name", None) or repr(value))
