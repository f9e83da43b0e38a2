"""What a program's time depends on: everything but names, source lines and what it returns.

Names of buffers and loop variables are numbers, in the order in which they appear. Programs that a
search visits share most of their calls, so the form of a call is found once for each.
"""

from __future__ import annotations

from enum import Enum
from itertools import count
from typing import Any

from neuroncore.activations import Activation
from neuroncore.alu import AluOp
from neuroncore.program import Access, Allocate, Buffer, Call, Loop, Program, Statement
from nki_dtypes import DType

Form = tuple[int, ...]

KEPT = 1 << 14
"""Calls, and contents, that are kept; beyond it they are looked at anew."""

_LOOP, _END, _MADE = -1, -2, -3
"""Stand in a form where a loop begins, where one ends, and where a buffer is made."""

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
            _, number, used = _calls.get(id(statement)) or _known(statement)
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


def _known(call: Call) -> tuple[Call, int, tuple[str, ...]]:
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
