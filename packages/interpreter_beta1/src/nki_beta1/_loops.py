"""The loops around a place in a kernel, read from its bytecode."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, takewhile
from types import CodeType, FrameType

from neuroncore.errors import OUR_PACKAGES


def kernel_frame() -> FrameType:
    """The frame of the kernel that is running."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__", "").partition(".")[0] in OUR_PACKAGES and frame.f_back:
        frame = frame.f_back
    return frame


@lru_cache(maxsize=1024)
def loops_around(code: CodeType, at: int) -> tuple[str, ...]:
    """The variables of the `for` loops around bytecode offset `at`, outermost first.

    A loop over several variables counts with the first; `while` loops are not among them.
    """
    return tuple(variable for variable, _ in _loops_around(code, at))


@lru_cache(maxsize=1024)
def repeated_around(code: CodeType, at: int) -> tuple[str, ...]:
    """Those of `loops_around` whose body 0.1 ran once for all numbers.

    They are over nl.affine_range, nl.sequential_range or range, as the loop's own line calls them;
    nl.static_range was unrolled, and other iterables are Python's.
    """
    return tuple(variable for variable, calls in _loops_around(code, at) if calls & TRACED)


TRACED = frozenset({"affine_range", "sequential_range", "range"})


def _loops_around(code: CodeType, at: int) -> Iterator[tuple[str, frozenset[str]]]:
    """Each loop's variable, and the names that the expression it runs over mentions."""
    steps = [step for step in dis.get_instructions(code) if step.opname != "CACHE"]
    for n, step in enumerate(steps):
        if step.opname == "FOR_ITER" and step.offset < at < step.argval:
            yield _variable(islice(steps, n + 1, None)), _mentioned_before(steps, n)


def _mentioned_before(steps: list[dis.Instruction], at: int) -> frozenset[str]:
    """The names on the line of instruction `at` in front of it."""
    line = steps[at].positions
    before = takewhile(
        lambda s: s.positions and line and s.positions.lineno == line.lineno, steps[at - 1 :: -1]
    )
    return frozenset(step.argval for step in before if isinstance(step.argval, str))


def _variable(following: Iterator[dis.Instruction]) -> str:
    """The first name that is stored."""
    stored = next(step for step in following if step.opname.startswith("STORE_"))
    return str(stored.argval[0] if isinstance(stored.argval, tuple) else stored.argval)
