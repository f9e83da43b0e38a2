"""Timelines of programs that were played before, by everything that their time depends on.

That is everything but names, source lines and results. Names of buffers and loop variables are
numbers, in the order in which they appear. Programs that a search visits share most of their calls,
so the key of a call is computed once for each.
"""

from __future__ import annotations

from enum import Enum
from itertools import count
from typing import Any

from neuroncore.activations import Activation
from neuroncore.alu import AluOp
from neuroncore.program import Access, Allocate, Buffer, Call, Loop, Program, Statement
from neuroncore.timeline.results.timeline import Timeline
from nki_dtypes import DType

MOST_PROGRAMS = 256
MOST_BARS = 1 << 17
"""Of all cached programs; the least recently used are dropped first."""

MOST_LATENCIES = 1 << 14

Key = tuple[Any, ...]

_known: dict[Key, Timeline] = {}
_latencies: dict[Key, float] = {}


def key_of(program: Program, values: dict[str, float], skip_periods: bool) -> Key | None:
    """What the time of a program played as it is written depends on; None where it is unknown."""
    form = form_of(program)
    if form is None:
        return None
    return form, program.target, program.nki, skip_periods, *values.items()


def remembered(key: Key, program: Program) -> Timeline | None:
    """The timeline of a program with this key, if one was played."""
    found = _known.pop(key, None)
    if found is None:
        return None
    _known[key] = found  # the last that was asked for
    return found.of(program)


def remember(key: Key, timeline: Timeline) -> None:
    """Keep a timeline that was played, and fewer others."""
    _known[key] = timeline
    left = sum(known.num_bars for known in _known.values())
    while len(_known) > MOST_PROGRAMS or left > MOST_BARS:
        left -= _known.pop(next(iter(_known))).num_bars


def known_latency(key: Key | None) -> float | None:
    """The total (ns) of a program with this key, if it was played."""
    if key is None:
        return None
    timeline = _known.get(key)
    return timeline.total_ns if timeline is not None else _latencies.get(key)


def remember_latency(key: Key | None, total_ns: float) -> None:
    """Keep a total."""
    if len(_latencies) >= MOST_LATENCIES:
        _latencies.clear()
    if key is not None:
        _latencies[key] = total_ns


def forget() -> None:
    """Every program that was played is new again."""
    _known.clear()
    _latencies.clear()


Form = tuple[int, ...]

KEPT = 1 << 14
"""Calls, and contents, that are kept; beyond it they are looked at anew."""

_LOOP, _END, _MADE = -1, -2, -3
"""Mark in a form the beginning of a loop, its end, and the allocation of a buffer."""

_calls: dict[int, tuple[Call, int, tuple[str, ...]]] = {}
_numbers: dict[Any, int] = {}
"""Content → its number, which no other content ever has."""
_next = count()


class _UnknownValueError(Exception):
    """An attribute of which it cannot be told whether two are equal."""


def form_of(program: Program) -> Form | None:
    """Equal for programs that take the same time; None where that cannot be told."""
    form: list[int] = []
    names: dict[str, int] = {}
    try:
        for buffer in program.parameters:
            _add_buffer(form, names, buffer)
        _add_body(form, names, program.body)
    except _UnknownValueError:
        return None
    return tuple(form)


def _add_body(form: list[int], names: dict[str, int], body: tuple[Statement, ...]) -> None:
    for statement in body:
        if isinstance(statement, Call):
            _, number, used = _calls.get(id(statement)) or _add_call(statement)
            form.append(number)
            form += [names.setdefault(name, len(names)) for name in used]
        elif isinstance(statement, Loop):
            variable = names.setdefault(statement.variable, len(names))
            form += (_LOOP, variable, statement.start, statement.stop, statement.step)
            _add_body(form, names, statement.body)
            form.append(_END)
        elif isinstance(statement, Allocate):
            _add_buffer(form, names, statement.buffer)


def _add_buffer(form: list[int], names: dict[str, int], buffer: Buffer) -> None:
    has_content = buffer.content is not None
    about = buffer.shape, buffer.dtype.name, buffer.space, buffer.address, has_content
    form += (_MADE, _number(about), names.setdefault(buffer.name, len(names)))


def _add_call(call: Call) -> tuple[Call, int, tuple[str, ...]]:
    """The call, the number of what it is but for names, and the names in it."""
    names: list[str] = []
    operands = tuple([
        _access(value, names) if isinstance(value, Access) else _plain(value)
        for value in call.operands.values()
    ])  # fmt: skip
    attrs = tuple([(name, _plain(value)) for name, value in call.attrs.items()])
    number = _number((call.instruction, tuple(call.operands), operands, attrs))
    if len(_calls) >= KEPT:
        _calls.clear()
    found = _calls[id(call)] = call, number, tuple(names)
    return found


def _access(access: Access, names: list[str]) -> Any:
    offset, indirect = access.offset, None
    names += [access.buffer, *[name for name, _ in offset.terms]]
    if access.indirect is not None:
        moved = access.indirect
        indirect = moved.kind, moved.dim, _access(moved.index, names)
    factors = tuple([factor for _, factor in offset.terms])
    dtype = access.dtype.name if access.dtype is not None else None
    return offset.constant, factors, access.shape, access.strides, dtype, indirect


def _plain(value: Any) -> Any:
    """Equal for equal values of one type alone: 1, 1.0 and True differ."""
    if value is None or isinstance(value, bool | int | float | str | Enum):
        return type(value), repr(value)
    if isinstance(value, DType):
        return DType, value.name
    if isinstance(value, AluOp | Activation):
        return value
    if isinstance(value, tuple | list):
        return tuple, tuple(map(_plain, value))
    raise _UnknownValueError


def _number(content: Any) -> int:
    found = _numbers.get(content)
    if found is None:
        if len(_numbers) >= KEPT:
            _numbers.clear()
            _calls.clear()
        found = _numbers[content] = next(_next)
    return found
