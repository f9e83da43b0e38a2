"""The loops around a place in a kernel, read from its bytecode."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
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
    steps = [step for step in dis.get_instructions(code) if step.opname != "CACHE"]
    return tuple(
        _variable(islice(steps, n + 1, None))
        for n, step in enumerate(steps)
        if step.opname == "FOR_ITER" and step.offset < at < step.argval
    )


def _variable(following: Iterator[dis.Instruction]) -> str:
    """The first name that is stored."""
    stored = next(step for step in following if step.opname.startswith("STORE_"))
    return str(stored.argval[0] if isinstance(stored.argval, tuple) else stored.argval)
