"""Contents of blocks of statements at all depths: computed once for each loop.

Programs that a search visits share most of their loops, whose contents are cached by identity.
"""

from __future__ import annotations

from typing import NamedTuple

from neuroncore.program import Allocate, Buffer, Loop, Statement

MAX_CACHED = 1 << 14
"""Loops whose contents are kept; beyond it the cache is cleared."""


class Contents(NamedTuple):
    """How many statements, the buffers that they make by name, the variables of their loops."""

    count: int
    buffers: dict[str, Buffer]
    variables: frozenset[str]


_loops: dict[int, tuple[Loop, Contents]] = {}


def contents_of(body: tuple[Statement, ...]) -> Contents:
    """The contents of a block's statements."""
    count = len(body)
    buffers: dict[str, Buffer] = {}
    variables: set[str] = set()
    for statement in body:
        if isinstance(statement, Allocate):
            buffers[statement.buffer.name] = statement.buffer
        elif isinstance(statement, Loop):
            inside = _in_loop(statement)
            count += inside.count
            buffers |= inside.buffers
            variables.add(statement.variable)
            variables |= inside.variables
    return Contents(count, buffers, frozenset(variables))


def _in_loop(loop: Loop) -> Contents:
    known = _loops.get(id(loop))
    if known is None:
        if len(_loops) >= MAX_CACHED:
            _loops.clear()
        known = _loops[id(loop)] = loop, contents_of(loop.body)
    return known[1]
