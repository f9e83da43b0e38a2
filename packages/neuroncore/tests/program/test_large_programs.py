"""The work on a program grows with its size, not with the square of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from neuroncore.program import Program, parse_program, peaks
from neuroncore.program.ir.naming import named_like_source
from neuroncore.targets import TARGETS
from neuroncore.timeline import estimate

PIECE = """    t{n} = buffer(float32[128, 4], sbuf)
    dma_copy(dst=t{n}[:, :], src=x[:, 0:4])
    for i in range(2):
        tensor_scalar(dst=t{n}[:, :], data=t{n}[:, :], operand0=2.0, op0=multiply)
    dma_copy(dst=x[:, 4:8], src=t{n}[:, :])
"""


def straight(pieces: int) -> Program:
    """So many tiles, one after the other, each with a loop of its own."""
    body = "".join(PIECE.format(n=n) for n in range(pieces))
    return parse_program(
        f'program("trn2", "0.6")\ndef k(x: float32[128, 8]):\n{body}    return x\n'
    )


def lines_executed(function: Callable[[], object]) -> int:
    """How many lines of Python a call executes, every round of a loop counted."""
    count = 0

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


WORK: dict[str, Callable[[Program], object]] = {
    "peaks": lambda program: peaks(program, TARGETS["trn2"]),
    "names": lambda program: named_like_source(program, {f"t{n}": "tile" for n in range(10**3)}),
    "estimate": lambda program: estimate(program, verified=True),
}


@pytest.mark.parametrize("work", WORK)
def test_work_grows_with_the_size_of_a_program(work):
    few, many = straight(100), straight(400)
    for program in (few, many):  # what is made once is made before
        WORK[work](program)

    fewer, more = (lines_executed(lambda p=p: WORK[work](p)) for p in (few, many))

    assert more <= 4.4 * fewer
