"""What is wrong with the programs of a search, which share most of their calls.

The same answers as `neuroncore.program.verify` without content: limits of a call depend on the
call, its buffers and the values of its loop variables alone, and are found once for these. What is
legal is so under other names too.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from neuroncore.core import NeuronCore
from neuroncore.engines import Space
from neuroncore.program import Buffer, Call, Finding, Program
from neuroncore.program.findings import Ranges, visit
from neuroncore.program.limits import limits
from neuroncore.program.liveness import over_capacity
from neuroncore.program.nodes import accesses
from neuroncore.program.structure import structure
from neuroncore.program.verify import STRICT
from nkigym.loops.legal import form_of

KEPT = 1 << 15
"""Calls that are kept; beyond it they are looked at anew."""


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
        free = self._core.free_bytes_of(Space.sbuf)
        return [*findings, *over_capacity(program, self._core.target, free)]

    def _limits(self, call: Call, ranges: Ranges, buffers: Mapping[str, Buffer]) -> list[Finding]:
        used = [buffers[access.buffer] for access in accesses(call)]
        key = (id(call), *map(id, used), *ranges.items())
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= KEPT:
                self._known.clear()
            kept = (call, *used)  # so that no id comes again
            known = self._known[key] = kept, self._new_limits(call, ranges, buffers)
        return known[1]

    def _new_limits(
        self, call: Call, ranges: Ranges, buffers: Mapping[str, Buffer]
    ) -> list[Finding]:
        form = form_of(call, ranges, buffers)
        if form in self._legal:
            return []
        found = limits(call, ranges, buffers, self._core, self._nki)
        if form is not None and not found:
            if len(self._legal) >= KEPT:
                self._legal.clear()
            self._legal[form] = call.attrs  # so that their id remains theirs
        return found
