"""Names whose values go from one turn of a loop to the next, read from its bytecode."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType


@lru_cache(maxsize=256)
def carried_names(code: CodeType, at: int) -> frozenset[str]:
    """Names that a turn of the `for` at offset `at` sets, and may read before it sets them.

    Among them are those that functions in the code set (`nonlocal`).
    """
    steps = [step for step in dis.get_instructions(code) if step.opname != "CACHE"]
    loop = next((s for s in steps if s.offset == at and s.opname == "FOR_ITER"), None)
    body = [s for s in steps if loop is not None and at < s.offset < loop.argval]
    names = {name for step in body for name, is_set in _mentions(step) if is_set}
    around = {name for name in names if _may_read_first(body, name)}
    return frozenset(around | set(_set_by_functions(code)))


def _may_read_first(body: list[dis.Instruction], name: str) -> bool:
    """Whether a way through the body comes to a read of the name before it sets it."""
    places = {step.offset: n for n, step in enumerate(body)}
    to_do, seen = [0], {len(body)}
    while to_do:
        at = to_do.pop()
        if at in seen:
            continue
        seen.add(at)
        step = body[at]
        first = next((is_set for found, is_set in _mentions(step) if found == name), None)
        if first is False:
            return True
        if first is None:
            if not step.opname.startswith(_GOES_ELSEWHERE):
                to_do.append(at + 1)
            if step.opcode in dis.hasjrel and step.argval in places:
                to_do.append(places[step.argval])
    return False


_GOES_ELSEWHERE = ("JUMP_", "RETURN_", "RAISE_", "RERAISE")
"""Instructions after which the next one does not run, but for a jump's target."""


def _mentions(step: dis.Instruction) -> Iterator[tuple[str, bool]]:
    """The names that an instruction reads (False) or sets (True), in their order."""
    kinds = [part for part in step.opname.split("_") if part in ("LOAD", "STORE")]
    names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
    is_name = any(part in step.opname for part in ("FAST", "DEREF", "GLOBAL", "NAME"))
    if kinds and is_name and step.opname != "LOAD_FAST_AND_CLEAR":  # a comprehension's variable
        yield from ((str(n), k == "STORE") for n, k in zip(names, kinds, strict=False))


def _set_by_functions(code: CodeType) -> Iterator[str]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            steps = dis.get_instructions(inner)
            yield from (s.argval for s in steps if s.opname == "STORE_DEREF")
            yield from _set_by_functions(inner)
