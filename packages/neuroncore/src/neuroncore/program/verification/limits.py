"""Limits of every call in every iteration: bounds, partitions, banks, the record's limits.

Offsets are bounded by intervals. A record's limits see specs, in which loop variables show as the
first partition and, in PSUM, the place in the bank: all values of those are tried.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from math import prod

from neuroncore.enums import MemorySpace
from neuroncore.errors import AccessError
from neuroncore.findings import Finding
from neuroncore.instructions import Call as MachineCall
from neuroncore.instructions import check_recorded
from neuroncore.integers.affine import Affine
from neuroncore.machine.core import NeuronCore
from neuroncore.program.ir.binding import (
    astray,
    in_elements,
    machine_call,
    outside,
    place_of,
    spec_at,
)
from neuroncore.program.ir.nodes import Access, Buffer, Call
from neuroncore.program.ir.traversal import Ranges
from neuroncore.program.verification.findings import as_violation, found
from neuroncore.spec import Spec

TRIED = 1 << 16
"""Combinations of loop values tried where intervals cannot decide."""


def limits(
    call: Call, ranges: Ranges, buffers: Mapping[str, Buffer], core: NeuronCore, nki: str
) -> list[Finding]:
    """Everything that is wrong with a call while its loop variables run over their ranges."""
    return judged(call, ranges, buffers, core, nki)[0]


def judged(
    call: Call, ranges: Ranges, buffers: Mapping[str, Buffer], core: NeuronCore, nki: str
) -> tuple[list[Finding], MachineCall | None]:
    """As `limits`, and the call of the first iteration where all stay inside of their buffers."""
    wrong = [
        found(call, as_violation(problem))
        for access in call.accesses.values()
        for part in _parts(access)
        if (problem := _strays(part, buffers[part.buffer], ranges, call.is_dma))
    ]
    if wrong:
        return wrong, None
    specs, others = _operands(call, ranges, buffers, core)
    made = machine_call(call, specs, core, nki)
    every = (made, *(machine_call(call, {**specs, **other}, core, nki) for other in others))
    return [*_record_limits(call, every)], made


def _parts(access: Access) -> Iterator[Access]:
    if access.indirect is not None:
        yield from _parts(access.indirect.index)
    yield access


def _strays(access: Access, buffer: Buffer, ranges: Ranges, by_dma: bool) -> AccessError | None:
    problem = outside(access, buffer, access.offset.bounds(ranges))
    if problem is not None or not buffer.space.on_chip:
        return problem
    row = max(1, in_elements(access, buffer, buffer.row))
    problem = astray(access, buffer, _column(access.offset, row).bounds(ranges), by_dma)
    if problem is None:
        return None
    columns = {offset % row for offset in _offsets(access.offset, ranges)}
    exact = (astray(access, buffer, (column, column), by_dma) for column in sorted(columns))
    return next((p for p in exact if p is not None), None) if columns else problem


def _column(offset: Affine, row: int) -> Affine:
    """The part of an on-chip offset that moves inside a partition."""
    terms = tuple((name, c) for name, c in offset.terms if c % row)
    return Affine(offset.constant % row, terms)


def _offsets(offset: Affine, ranges: Ranges) -> Iterator[int]:
    """Every value of the offset; nothing where there are too many to try."""
    loops = [ranges[name] for name, _ in offset.terms]
    if prod((v[-1] - v[0]) // v.step + 1 for v in loops) <= TRIED:
        steps = ([c * v for v in ranges[name]] for name, c in offset.terms)
        yield from (offset.constant + sum(chosen) for chosen in itertools.product(*steps))


Specs = dict[str, Spec | type | None]


def _operands(
    call: Call, ranges: Ranges, buffers: Mapping[str, Buffer], core: NeuronCore
) -> tuple[Specs, list[dict[str, Spec]]]:
    """The operands at the first iteration, and each one of another spec later."""
    base: Specs = {}
    others: list[dict[str, Spec]] = []
    for name in call.record.operands:
        value = call.operands.get(name)
        if isinstance(value, Access):
            base[name], *more = _specs(value, ranges, buffers, core)
            others += [{name: spec} for spec in more]
        else:
            base[name] = None if value is None else type(value)
    return base, others


def _record_limits(call: Call, every: Sequence[MachineCall]) -> Iterator[Finding]:
    said: set[tuple[str, str | None]] = set()
    for made in every:
        for violation in check_recorded(made):
            key = (violation.error.__name__, violation.operand)
            if key not in said:
                said.add(key)
                yield found(call, violation)


def _specs(
    access: Access, ranges: Ranges, buffers: Mapping[str, Buffer], core: NeuronCore
) -> list[Spec]:
    """The spec at the first iteration, then every other one that the loops lead to."""
    buffer = buffers[access.buffer]
    first = access.offset.value({name: values[0] for name, values in ranges.items()})
    offsets = {first: None}
    if buffer.space.on_chip and not access.offset.is_constant:
        row = max(1, in_elements(access, buffer, buffer.row))
        low, high = access.offset.bounds(ranges)
        if buffer.space is MemorySpace.psum or low // row != high // row:
            reached = _reached(access.offset, ranges, row, access, buffer, core)
            offsets |= dict.fromkeys(reached)
    specs = (spec_at(access, buffers, core, offset) for offset in offsets)
    return list(dict.fromkeys(specs))


def _reached(
    offset: Affine, ranges: Ranges, row: int, access: Access, buffer: Buffer, core: NeuronCore
) -> Iterator[int]:
    """Offsets that between them have every first partition and place in a bank that occurs."""
    seen: dict[tuple[int, int], int] = {}
    sums = {offset.constant}
    for name, c in offset.terms:
        sums = {s + c * v for s in sums for v in ranges[name]}
        if len(sums) > TRIED:  # partitions and columns are few: keep one offset of each place
            sums = set({place_of(access, buffer, core, s): s for s in sums}.values())
    for s in sorted(sums):
        seen.setdefault(place_of(access, buffer, core, s), s)
    yield from seen.values()
