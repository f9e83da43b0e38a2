"""Statements by their place, and programs with one part replaced; all the rest is shared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, make_dataclass, replace
from typing import Any, TypeVar

from neuroncore.program import (
    Access,
    Affine,
    Allocate,
    Buffer,
    Call,
    Loop,
    Program,
    Statement,
    map_accesses,
)
from nkigym.kernels.contents import contents_of
from nkigym.kernels.step import Path, TransformError

Body = tuple[Statement, ...]
_Made = TypeVar("_Made", Access, Call, Loop, Program)
Scope = dict[str, Loop]
"""The loops around a place by variable: no two of them have the same, loops elsewhere may."""

MAX_CACHED_PROGRAMS = 256
"""Programs of which the buffers are kept by name."""

LARGEST = 512
"""The most statements of a program after a step that writes iterations out."""

_buffers: dict[int, tuple[Program, Mapping[str, Buffer]]] = {}


def statement_at(program: Program, at: Path) -> Statement:
    """The statement at a place. Raises TransformError where there is none."""
    body: Body = program.body
    found: Statement | None = None
    for n in at:
        if found is not None:
            body = found.body if isinstance(found, Loop) else ()
        if not 0 <= n < len(body):
            raise TransformError(f"statement not found: {'.'.join(map(str, at))}")
        found = body[n]
    if found is None:
        raise TransformError("a step needs the place of a statement")
    return found


def loop_at(program: Program, at: Path) -> Loop:
    """The loop at a place. Raises TransformError where there is another statement or none."""
    found = statement_at(program, at)
    if not isinstance(found, Loop):
        raise TransformError(f"{'.'.join(map(str, at))} is not a loop")
    return found


def loops_around(program: Program, at: Path) -> tuple[Loop, ...]:
    """The loops around a place, outermost first."""
    found, body = [], program.body
    for n in at[:-1]:
        loop = body[n]
        assert isinstance(loop, Loop)
        found.append(loop)
        body = loop.body
    return tuple(found)


def block_of(program: Program, at: Path) -> Body:
    """The statements among which a place is."""
    around = loops_around(program, at)
    return around[-1].body if around else program.body


def following(block: Body, n: int) -> int | None:
    """The number of the next statement behind n that is not an allocation."""
    later = (m for m in range(n + 1, len(block)) if not isinstance(block[m], Allocate))
    return next(later, None)


def replaced(program: Program, at: Path, new: Body) -> Program:
    """The program with other statements in the place of one."""
    return with_statements(program, _spliced(program.body, at, new))


def with_block(program: Program, at: Path, body: Body) -> Program:
    """The program with other statements in the block in which a place is."""
    if len(at) == 1:
        return with_statements(program, body)
    loop = loop_at(program, at[:-1])
    return replaced(program, at[:-1], (with_body(loop, body),))


def with_statements(program: Program, body: Body) -> Program:
    """The program with other statements."""
    return _new_program(
        program.name, program.parameters, body, program.results, program.target, program.nki,
        program.places,
    )  # fmt: skip


def with_body(loop: Loop, body: Body) -> Loop:
    """The loop around other statements."""
    return _new_loop(loop.variable, loop.start, loop.stop, body, loop.step, loop.origin)


def _spliced(body: Body, at: Path, new: Body) -> Body:
    n = at[0]
    if len(at) == 1:
        return (*body[:n], *new, *body[n + 1 :])
    loop = body[n]
    assert isinstance(loop, Loop)
    inner = with_body(loop, _spliced(loop.body, at[1:], new))
    return (*body[:n], inner, *body[n + 1 :])


def _constructor(cls: type[_Made]) -> Callable[..., _Made]:
    """A constructor that takes every field of a frozen dataclass, and a third of the time of its
    own: the instance of a plain class with the same slots becomes one of `cls`.
    """
    plain = make_dataclass(cls.__name__, [field.name for field in fields(cls)], slots=True)

    def construct(*values: Any) -> _Made:
        made = plain(*values)
        made.__class__ = cls
        return made

    return construct


_new_access = _constructor(Access)
_new_call = _constructor(Call)
_new_loop = _constructor(Loop)
_new_program = _constructor(Program)


def check_size(program: Program) -> Program:
    """The program; raises TransformError where it has more than LARGEST statements."""
    check_count(contents_of(program.body).count)
    return program


def check_count(count: int) -> None:
    """Raise TransformError where so many statements are more than LARGEST."""
    if count > LARGEST:
        raise TransformError(f"it would have {count} statements, more than {LARGEST}")


def places(program: Program) -> Iterator[tuple[Path, Statement]]:
    """Every statement with its place, outer before inner, in program order."""
    yield from _places(program.body, ())


def _places(body: Body, prefix: Path) -> Iterator[tuple[Path, Statement]]:
    for n, statement in enumerate(body):
        at = (*prefix, n)
        yield at, statement
        if isinstance(statement, Loop):
            yield from _places(statement.body, at)


def used_names(program: Program) -> set[str]:
    """The names of all loops and buffers."""
    return {*buffers_of(program), *contents_of(program.body).variables}


def buffers_of(program: Program) -> Mapping[str, Buffer]:
    """Every buffer by name; found once for each of the latest programs."""
    known = _buffers.get(id(program))
    if known is None:
        if len(_buffers) >= MAX_CACHED_PROGRAMS:
            _buffers.clear()
        found = {b.name: b for b in program.parameters} | contents_of(program.body).buffers
        known = _buffers[id(program)] = (program, found)
    return known[1]


class Names:
    """Names in use."""

    def __init__(self, used: set[str]) -> None:
        self.used = used
        self.last: dict[str, int] = {}
        """Stem → the number up to which all are in use."""
        self.stems: dict[str, str] = {}
        """Names that were requested → their stems."""

    def unused(self, like: str) -> str:
        """A name that is not in use: like1, like2, …; it is in use from now on."""
        stem = self.stems.get(like)
        if stem is None:
            stem = self.stems[like] = like.rstrip("0123456789") or like
        n = self.last.get(stem, 0) + 1
        while (name := f"{stem}{n}") in self.used:
            n += 1
        self.last[stem] = n
        self.used.add(name)
        return name


def unused_name(program: Program, like: str) -> str:
    """A name that no loop and no buffer of the program has."""
    return Names(used_names(program)).unused(like)


def rewritten(body: Body, values: Mapping[str, Affine], names: Mapping[str, str]) -> Body:
    """The statements with loop variables replaced by expressions and buffers of other names, in one
    pass; what has neither is shared.
    """
    known: dict[tuple[int, tuple[tuple[str, int], ...]], Affine] = {}

    def change(access: Access) -> Access:
        offset = access.offset
        for term in offset.terms:
            if term[0] in values:
                place = offset.constant, offset.terms
                found = known.get(place)
                if found is None:
                    found = known[place] = offset.substitute(values)
                offset = found
                break
        name = names.get(access.buffer)
        if name is None:
            if offset is access.offset:
                return access
            name = access.buffer
        return access_like(access, name, offset, access.strides)

    return changed_body(body, change, names)


def substituted(body: Body, values: Mapping[str, Affine]) -> Body:
    """The statements with loop variables replaced by expressions."""
    return rewritten(body, values, {})


def renamed(body: Body, names: Mapping[str, str]) -> Body:
    """The statements with buffers of other names."""
    return rewritten(body, {}, names)


def with_offset(access: Access, offset: Affine) -> Access:
    """The same elements from another first one."""
    return access_like(access, access.buffer, offset, access.strides)


def access_like(access: Access, buffer: str, offset: Affine, strides: tuple[int, ...]) -> Access:
    """As many elements, in another place."""
    return _new_access(buffer, offset, access.shape, strides, access.dtype, access.indirect)


def changed_body(
    body: Body,
    change: Callable[[Access], Access],
    names: Mapping[str, str] | None = None,
    scope: Scope | None = None,
) -> Body:
    """The statements with every access replaced, and the names of what they make; itself where
    nothing changes. While an access is replaced, the scope is that of its place.
    """
    new, same = [], True
    for statement in body:
        made: Statement = statement
        if isinstance(statement, Call):
            made = _changed_call(statement, change)
        elif isinstance(statement, Loop):
            if scope is not None:
                scope[statement.variable] = statement
            inner = changed_body(statement.body, change, names, scope)
            if inner is not statement.body:
                made = with_body(statement, inner)
        elif names and statement.buffer.name in names:
            made = renamed_allocation(statement, names[statement.buffer.name])
        same = same and made is statement
        new.append(made)
    return body if same else tuple(new)


def renamed_allocation(made: Allocate, name: str) -> Allocate:
    """The same buffer under another name."""
    return Allocate(replace(made.buffer, name=name), made.origin)


def _changed_call(call: Call, change: Callable[[Access], Access]) -> Call:
    operands: dict[str, Access | float | int | None] | None = None
    for name, value in call.operands.items():
        if not isinstance(value, Access):
            continue
        if value.indirect is not None:
            moved = map_accesses(call, change)
            assert isinstance(moved, Call)
            return moved
        new = change(value)
        if new is not value:
            if operands is None:
                operands = dict(call.operands)
            operands[name] = new
    return call if operands is None else with_operands(call, operands)


def with_operands(call: Call, operands: Mapping[str, Access | float | int | None]) -> Call:
    """The call on other operands."""
    return _new_call(call.instruction, operands, call.attrs, call.name, call.origin)


def allocated(body: Body) -> dict[str, int]:
    """The buffers that are made right here, and the number of the statement that makes each."""
    return {s.buffer.name: n for n, s in enumerate(body) if isinstance(s, Allocate)}
