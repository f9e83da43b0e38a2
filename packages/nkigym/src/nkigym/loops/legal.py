"""Whether the machine takes a call, remembered by its form."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cache
from typing import Any

from neuroncore.core import NeuronCore
from neuroncore.options import Options
from neuroncore.program import Access, Buffer, Call, Program
from neuroncore.program.limits import limits
from nkigym.loops.step import Refused

KEPT = 1 << 14
"""Forms that are remembered; beyond it all are looked at anew."""

_known: dict[Hashable, tuple[Mapping[str, Any], str | None]] = {}
"""The attributes are kept, so that no others take their place in memory."""


@cache
def _strict(target: str) -> NeuronCore:
    return NeuronCore(target, Options(start_partition="error"), watchers=())


def refuse_illegal(
    call: Call, ranges: Mapping[str, range], buffers: Mapping[str, Buffer], program: Program
) -> None:
    """Raise Refused with the limit that a call breaks while its loops run over `ranges`."""
    looks = form_of(call, ranges, buffers)
    if looks is None:
        raise Refused(f"{call.instruction} reads an index on the device")
    form = (program.target, program.nki, *looks)
    known = _known.get(form)
    if known is None:
        core = _strict(program.target)
        wrong = next(iter(limits(call, dict(ranges), buffers, core, program.nki)), None)
        if len(_known) >= KEPT:
            _known.clear()
        known = _known[form] = (call.attrs, None if wrong is None else wrong.violation.what)
    if known[1] is not None:
        raise Refused(f"{call.instruction}: {known[1]}")


def form_of(
    call: Call, ranges: Mapping[str, range], buffers: Mapping[str, Buffer]
) -> tuple[Hashable, ...] | None:
    """All of a call that limits depend on, as long as its attributes live; None where it reads an
    index on the device.
    """
    if any(access.indirect is not None for access in call.accesses.values()):
        return None
    operands = [_form(value, ranges, buffers) for value in call.operands.values()]
    return (call.instruction, id(call.attrs), *operands)


def _form(value: Any, ranges: Mapping[str, range], buffers: Mapping[str, Buffer]) -> Hashable:
    """All of an operand that limits depend on; names of buffers are no part of it."""
    if not isinstance(value, Access):
        return type(value), value
    buffer, offset = buffers[value.buffer], value.offset
    moves = tuple((c, ranges[name]) for name, c in offset.terms)
    return (
        value.shape, value.strides, value.dtype, offset.constant, moves,
        buffer.shape, buffer.dtype, buffer.space, buffer.address, buffer.content is None,
    )  # fmt: skip
