"""Names whose values go from one turn of a loop to the next, read from its bytecode."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from types import CodeType


@lru_cache(maxsize=256)
def carried_names(code: CodeType, at: int) -> frozenset[str]:
    """Names that the code changes in place, or that the `for` at offset `at` reads before it sets.

    Among them are those that functions in it set (`nonlocal`).
    """
    steps = [step for step in dis.get_instructions(code) if step.opname != "CACHE"]
    stores = (b for a, b in pairwise(steps) if a.opname == "BINARY_OP" and a.argrepr.endswith("="))
    in_place = {name for step in stores for name, is_set in _mentions(step) if is_set}
    loop = next((s for s in steps if s.offset == at and s.opname == "FOR_ITER"), None)
    body = [s for s in steps if loop is not None and at < s.offset < loop.argval]
    mentions = [mention for step in body for mention in _mentions(step)]
    first = dict(reversed(mentions))
    around = {name for name, is_set in mentions if is_set and not first[name]}
    return frozenset(in_place | around | set(_set_by_functions(code)))


def _mentions(step: dis.Instruction) -> Iterator[tuple[str, bool]]:
    """The names that an instruction reads (False) or sets (True), in their order."""
    kinds = [part for part in step.opname.split("_") if part in ("LOAD", "STORE")]
    names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
    is_name = any(part in step.opname for part in ("FAST", "DEREF", "GLOBAL", "NAME"))
    if kinds and is_name:
        yield from ((str(n), k == "STORE") for n, k in zip(names, kinds, strict=False))


def _set_by_functions(code: CodeType) -> Iterator[str]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            steps = dis.get_instructions(inner)
            yield from (s.argval for s in steps if s.opname == "STORE_DEREF")
            yield from _set_by_functions(inner)
