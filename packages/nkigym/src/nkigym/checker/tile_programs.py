"""The checks of tile programs: against a function, against another program, by execution."""

from __future__ import annotations

from math import gcd

from nkigym.checker.execution import executed
from nkigym.checker.findings import Finding
from nkigym.checker.functions import FUNCTIONS
from nkigym.checker.value_numbering import Numbers, atom_size, numbered, wrong_values
from nkigym.tiles.program import ALLOCATE, TileProgram


def check_tiles(program: TileProgram, function: str = "matmul") -> list[Finding]:
    """Everything for which the program is not this function, by value numbers; nothing if it is.

    Every tile is defined before it is read, every part exists, every atom of the output is written
    exactly once, with the function's value, sums in the function's order.
    """
    if others := _other_parameters(program, function):
        return others
    meant = FUNCTIONS[function]
    made = numbered(program, meant.shapes([shape for _, shape in program.parameters]))
    return [
        *made.findings,
        *wrong_values(made, meant.values(program.parameters, made.size, made.number)),
    ]


def check_same(program: TileProgram, root: TileProgram) -> list[Finding]:
    """Everything for which the program does not give what `root` gives, by value numbers: the same
    value for each atom of each output, sums in the same order; nothing where it does.
    """
    if program.parameters != root.parameters:
        return [Finding(None, "it has other parameters")]
    if program.dtype != root.dtype:
        return [Finding(None, f"it computes in {program.dtype}, not {root.dtype}")]
    size, number = gcd(atom_size(program), atom_size(root)), Numbers()
    meant = numbered(root, None, size, number)
    if meant.findings:
        return meant.findings
    shapes = {s.output.name: s.output.shape for s in root.statements if s.operator == ALLOCATE}
    made = numbered(program, [shapes[name] for name in root.returns], size, number)
    wanted = [meant.outputs[name] for name in root.returns]
    return [*made.findings, *wrong_values(made, wanted)]


def check_root(program: TileProgram) -> list[Finding]:
    """Everything that is wrong with the statements of a program of any function."""
    return numbered(program).findings


def run_tiles(program: TileProgram, function: str = "matmul", seed: int = 0) -> list[Finding]:
    """The same question as check_tiles, answered by running it on integers whose sums round, all of
    the output compared to the bit.
    """
    return _other_parameters(program, function) or executed(program, FUNCTIONS[function], seed)


def _other_parameters(program: TileProgram, function: str) -> list[Finding]:
    count = len(program.parameters)
    return [] if count == 2 else [Finding(None, f"{function} takes 2 parameters, not {count}")]
