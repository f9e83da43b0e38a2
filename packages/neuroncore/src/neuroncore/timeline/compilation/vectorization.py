"""Vectorization: small elementwise loops become wide instructions.

An instruction that accesses k elements per partition in each of n iterations of an innermost loop
accesses n x k of them once. Buffers of the loop are expanded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from neuroncore.machine.core import NeuronCore
from neuroncore.program import Access, Allocate, Buffer, Call, Loop, Program, Statement
from neuroncore.program.ir.traversal import Ranges
from neuroncore.timeline.compilation.loop_transformations import Expansion, counts_from_zero
from neuroncore.timeline.compilation.rewriting import Legality, Room, read, written

WIDEST = 512
"""Elements per partition of the widest instruction that is made."""

ELEMENTWISE = frozenset({"tensor_tensor", "tensor_copy", "tensor_reduce"})


def vectorized(program: Program, core: NeuronCore) -> Program:
    """The program with its small elementwise loops as wide instructions."""
    making = _Vectorization(program, core)
    return replace(program, body=tuple(making.body(program.body, {})))


class _Vectorization:
    def __init__(self, program: Program, core: NeuronCore) -> None:
        self.legality, self.room = Legality(program), Room(program, core)

    def body(self, body: tuple[Statement, ...], ranges: Ranges) -> Iterator[Statement]:
        for statement in body:
            if not isinstance(statement, Loop):
                yield statement
            elif ranges and _is_plain(statement) and (wide := self._wide(statement, ranges)):
                yield from wide
            else:
                inside = {**ranges, statement.variable: statement.values}
                yield replace(statement, body=tuple(self.body(statement.body, inside)))

    def _wide(self, loop: Loop, ranges: Ranges) -> list[Statement]:
        """Calls that do the work of all iterations; empty where some cannot be one instruction."""
        own = {s.buffer.name: s.buffer for s in loop.body if isinstance(s, Allocate)}
        made = [s for s in loop.body if isinstance(s, Call)]
        if self._is_placed(made):
            return []
        expansions = {name: Expansion(buffer, (loop,)) for name, buffer in own.items()}
        wide = [*filter(None, (_wide_call(call, loop, expansions) for call in made))]
        expanded = [expansion.expanded() for expansion in expansions.values()]
        if len(wide) < len(made) or not self._is_legal(wide, ranges, expanded, own, loop.trips):
            return []
        return [*map(Allocate, expanded), *wide]

    def _is_legal(
        self, wide: Sequence[Call], ranges: Ranges, expanded: Sequence[Buffer],
        own: Mapping[str, Buffer], trips: int,
    ) -> bool:  # fmt: skip
        takes = all(self.legality.takes(call, ranges, expanded) for call in wide)
        has_room = takes and all(self.room.take(buffer, trips) for buffer in own.values())
        return has_room and not _is_carried(wide, own)

    def _is_placed(self, made: Sequence[Call]) -> bool:
        """Whether a tensor has a fixed address, where others may be too."""
        names = {access.buffer for call in made for access in call.accesses.values()}
        return any(self.legality.buffers[name].address is not None for name in names)


def _is_plain(loop: Loop) -> bool:
    """Whether calls and allocations, nothing else, are made several times, counted from 0."""
    has_inner = any(isinstance(statement, Loop) for statement in loop.body)
    return loop.trips > 1 and counts_from_zero(loop) and not has_inner


def _is_carried(wide: Sequence[Call], own: Mapping[str, Buffer]) -> bool:
    """Whether an iteration may read what another one wrote, or write what another one writes."""
    changed = {name for call in wide for name in written(call)} - own.keys()
    return any(not changed.isdisjoint(read(call)) for call in wide) or any(
        _overlap([a for call in wide for a in _outputs(call) if a.buffer == name])
        for name in changed
    )


def _outputs(call: Call) -> Iterator[Access]:
    return (call.accesses[n] for n in call.record.outputs if n in call.accesses)


def _overlap(accesses: Sequence[Access]) -> bool:
    """Whether accesses to one buffer may name an element twice."""
    if len({(access.offset.terms, access.dtype) for access in accesses}) > 1:
        return True
    elements = np.concatenate([_elements(access) for access in accesses])
    return len(np.unique(elements)) < len(elements)


def _elements(access: Access) -> np.ndarray:
    """The elements of its buffer, while the loop variables are 0."""
    found = np.array([access.offset.constant])
    for size, stride in zip(access.shape, access.strides, strict=True):
        found = np.add.outer(found, stride * np.arange(size)).ravel()
    return found


def _wide_call(call: Call, loop: Loop, expansions: Mapping[str, Expansion]) -> Call | None:
    if call.instruction not in ELEMENTWISE:
        return None
    operands = dict(call.operands)
    for name, access in call.accesses.items():
        expansion = expansions.get(access.buffer)
        placed = access if expansion is None else expansion.access(access)
        wide = None if placed is None else _all_iterations(placed, loop)
        if wide is None:
            return None
        operands[name] = wide
    axis = call.attrs.get("axis")
    attrs = call.attrs if axis is None else {**call.attrs, "axis": _inner_axis(axis)}
    return replace(call, operands=operands, attrs=attrs)


def _inner_axis(axis: object) -> object:
    """The axis behind that of the iterations."""
    return tuple(a + 1 for a in axis) if isinstance(axis, tuple) else axis


def _all_iterations(access: Access, loop: Loop) -> Access | None:
    """The access of all iterations, their number its second dimension; None where too wide."""
    terms = dict(access.offset.terms)
    step = terms.pop(loop.variable, 0)
    first, *free = access.shape
    wide = replace(
        access,
        shape=(first, loop.trips, *free),
        strides=(access.strides[0], step, *access.strides[1:]),
        offset=replace(access.offset, terms=tuple(sorted(terms.items()))),
    )
    return wide if wide.size <= first * WIDEST and access.indirect is None else None
