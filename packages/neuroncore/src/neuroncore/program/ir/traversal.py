"""Visits statements and accesses of programs in program order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from neuroncore.program.ir.nodes import Access, Allocate, Call, Loop, Statement

Ranges = dict[str, range]
"""The values of each loop variable in scope, in rising order."""


def walk(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Every statement, outer before inner, in program order."""
    for statement in body:
        yield statement
        if isinstance(statement, Loop):
            yield from walk(statement.body)


def calls(body: tuple[Statement, ...]) -> Iterator[Call]:
    """Every call, in program order."""
    return (s for s in walk(body) if isinstance(s, Call))


def map_accesses(statement: Statement, change: Callable[[Access], Access]) -> Statement:
    """The statement with every access replaced by `change(access)`, index accesses first."""

    def access(old: Access) -> Access:
        if old.indirect is not None:
            old = replace(old, indirect=replace(old.indirect, index=access(old.indirect.index)))
        return change(old)

    match statement:
        case Loop():
            body = tuple(map_accesses(s, change) for s in statement.body)
            return replace(statement, body=body)
        case Call():
            operands = {
                name: access(value) if isinstance(value, Access) else value
                for name, value in statement.operands.items()
            }
            return Call(
                statement.instruction, operands, statement.attrs, statement.name, statement.origin
            )
    return statement


def accesses(statement: Statement) -> Iterator[Access]:
    """Every access in the order of `map_accesses`."""
    if isinstance(statement, Loop):
        for inner in statement.body:
            yield from accesses(inner)
    elif isinstance(statement, Call):
        for value in statement.operands.values():
            if isinstance(value, Access):
                yield from _with_index(value)


def _with_index(access: Access) -> Iterator[Access]:
    if access.indirect is not None:
        yield from _with_index(access.indirect.index)
    yield access


def visit(
    body: tuple[Statement, ...], ranges: Ranges | None = None
) -> Iterator[tuple[Allocate | Call | Loop, Ranges]]:
    """Every statement in program order with the loop variables around it."""
    ranges = ranges or {}
    for statement in body:
        yield statement, ranges
        if isinstance(statement, Loop):
            yield from visit(statement.body, {**ranges, statement.variable: statement.values})
