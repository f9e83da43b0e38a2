"""Legality of calls and programs: limits of the machine, cached by the signatures of calls.

The verifier reports the same as `neuroncore.program.verify` without content: limits of a call
depend on the call, its buffers and the values of its loop variables alone, and are cached for
these.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cache
from typing import Any

from neuroncore.enums import MemorySpace
from neuroncore.machine.core import NeuronCore
from neuroncore.options import Options
from neuroncore.program import Access, Buffer, Call, Finding, Program
from neuroncore.program.ir.traversal import Ranges, accesses, visit
from neuroncore.program.verification.limits import limits
from neuroncore.program.verification.liveness import over_capacity
from neuroncore.program.verification.structure import structure
from neuroncore.program.verification.verify import STRICT
from nkigym.kernels.step import TransformError

MAX_CACHED = 1 << 15
"""Entries of each cache; beyond it the cache is cleared."""


class Verifier:
    """Programs of one target and NKI version."""

    def __init__(self, target: str, nki: str) -> None:
        self._core, self._nki = NeuronCore(target, STRICT, watchers=()), nki
        self._known: dict[tuple[Any, ...], tuple[Any, list[Finding]]] = {}
        self._legal: dict[Hashable, Mapping[str, Any]] = {}

    def findings(self, program: Program) -> list[Finding]:
        """Structure, limits of all calls in all iterations, capacity."""
        findings, sound = structure(program, self._core)
        buffers = program.buffers()
        for statement, ranges in visit(program.body):
            if isinstance(statement, Call) and id(statement) in sound:
                findings += self._limits(statement, ranges, buffers)
        free = self._core.free_bytes_of(MemorySpace.sbuf)
        return [*findings, *over_capacity(program, self._core.target, free)]

    def _limits(self, call: Call, ranges: Ranges, buffers: Mapping[str, Buffer]) -> list[Finding]:
        used = [buffers[access.buffer] for access in accesses(call)]
        key = (id(call), *map(id, used), *ranges.items())
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MAX_CACHED:
                self._known.clear()
            kept = (call, *used)  # so that ids stay theirs
            known = self._known[key] = kept, self._new_limits(call, ranges, buffers)
        return known[1]

    def _new_limits(
        self, call: Call, ranges: Ranges, buffers: Mapping[str, Buffer]
    ) -> list[Finding]:
        form = call_signature(call, ranges, buffers)
        if form in self._legal:
            return []
        found = limits(call, ranges, buffers, self._core, self._nki)
        if form is not None and not found:
            if len(self._legal) >= MAX_CACHED:
                self._legal.clear()
            self._legal[form] = call.attrs  # so that their id remains theirs
        return found


_known: dict[Hashable, tuple[Mapping[str, Any], str | None]] = {}
"""Attributes are stored too, so that their ids stay theirs."""


@cache
def _strict(target: str) -> NeuronCore:
    return NeuronCore(target, Options(start_partition="error"), watchers=())


def check_legal(
    call: Call, ranges: Mapping[str, range], buffers: Mapping[str, Buffer], program: Program
) -> None:
    """Raise TransformError with the limit that a call breaks while its loops run over `ranges`."""
    looks = call_signature(call, ranges, buffers)
    if looks is None:
        raise TransformError(f"{call.instruction} reads an index on the device")
    form = (program.target, program.nki, *looks)
    known = _known.get(form)
    if known is None:
        core = _strict(program.target)
        wrong = next(iter(limits(call, dict(ranges), buffers, core, program.nki)), None)
        if len(_known) >= MAX_CACHED:
            _known.clear()
        known = _known[form] = (call.attrs, None if wrong is None else wrong.message)
    if known[1] is not None:
        raise TransformError(f"{call.instruction}: {known[1]}")


def call_signature(
    call: Call, ranges: Mapping[str, range], buffers: Mapping[str, Buffer]
) -> tuple[Hashable, ...] | None:
    """The parts of a call that limits depend on, valid while its attributes live; None where it
    reads an index on the device.
    """
    if any(access.indirect is not None for access in call.accesses.values()):
        return None
    operands = [_form(value, ranges, buffers) for value in call.operands.values()]
    return (call.instruction, id(call.attrs), *operands)


def _form(value: Any, ranges: Mapping[str, range], buffers: Mapping[str, Buffer]) -> Hashable:
    """The parts of an operand that limits depend on, which names of buffers are not."""
    if not isinstance(value, Access):
        return type(value), value
    buffer, offset = buffers[value.buffer], value.offset
    composite_steps = tuple((c, ranges[name]) for name, c in offset.terms)
    return (
        value.shape, value.strides, value.dtype, offset.constant, composite_steps,
        buffer.shape, buffer.dtype, buffer.space, buffer.address, buffer.content is None,
    )  # fmt: skip
