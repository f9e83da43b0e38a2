"""The two questions that can be asked of a tile program."""

from __future__ import annotations

from nkigym.checker.execution import executed
from nkigym.checker.findings import Finding
from nkigym.checker.functions import FUNCTIONS
from nkigym.checker.numbering import numbered, wrong_values
from nkigym.tiles.program import TileProgram


def check_tiles(program: TileProgram, function: str = "matmul") -> list[Finding]:
    """Everything for which the program is not this function, by value numbers; nothing if it is.

    Every tile is defined before it is read, every part exists, every atom of the output is written
    exactly once, with the function's value, sums in the function's order.
    """
    made = numbered(program, FUNCTIONS[function])
    return [*made.findings, *wrong_values(made)]


def run_tiles(program: TileProgram, function: str = "matmul", seed: int = 0) -> list[Finding]:
    """The same question, answered by running it on integers whose sums round, all of the output
    compared to the bit.
    """
    return executed(program, FUNCTIONS[function], seed)
