"""Programs with some of their calls replaced by other statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from neuroncore.program import Call, Loop, Program, Statement

Change = Callable[[Call], tuple[Statement, ...]]


def rewritten(program: Program, change: Change) -> Program:
    """The program with the statements that `change` has for each call."""
    return replace(program, body=tuple(_mapped(program.body, change)))


def _mapped(body: tuple[Statement, ...], change: Change) -> Iterator[Statement]:
    for statement in body:
        if isinstance(statement, Loop):
            yield replace(statement, body=tuple(_mapped(statement.body, change)))
        elif isinstance(statement, Call):
            yield from change(statement)
        else:
            yield statement
