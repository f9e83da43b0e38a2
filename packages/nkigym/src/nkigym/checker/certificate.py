"""Certificates: a tile program and what is claimed of it, as JSON, and whether the claims are true.

    {"format": "nkigym tile certificate", "version": 1, "function": "matmul", "atom": 128,
     "program": "def f(A: float32[128, 256], …", "tiles": {"t0": [3], …}, "output": [7, …]}

`tiles` claims a number for each atom of a variable and `output` for each atom of the outputs, one
after the other, row by row; equal numbers claim equal contents. A claim is checked against numbers
found from the statements alone, and the outputs against the function.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from neuroncore.documents import parse_json, wrong_structure
from nkigym.checker.findings import CertificateFileError, Finding, certified_program
from nkigym.checker.functions import FUNCTIONS
from nkigym.checker.value_numbering import Numbered, numbered, wrong_values
from nkigym.tiles import TileProgram, parse_tiles, print_tiles

FORMAT, VERSION = "nkigym tile certificate", 1
OUTPUTS = "output"
ATOM = 128
"""Claims are made of squares of this size."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """Claims: of each variable and of the output, a number per atom, row by row."""

    program: TileProgram
    tiles: Mapping[str, tuple[int, ...]]
    output: tuple[int, ...]
    function: str = "matmul"

    def to_json(self) -> str:
        """The file; `read_certificate` undoes it."""
        return json.dumps({
            "format": FORMAT, "version": VERSION, "function": self.function, "atom": ATOM,
            "program": print_tiles(self.program), "tiles": self.tiles, "output": self.output,
        })  # fmt: skip

    def findings(self) -> list[Finding]:
        """Everything that is wrong with the program or the claims."""
        function = FUNCTIONS[self.function]
        made = numbered(
            self.program, function.shapes([shape for _, shape in self.program.parameters])
        )
        expected = function.values(self.program.parameters, made.size, made.number)
        return [
            *made.findings,
            *wrong_values(made, expected),
            *(made.findings or self._false(made)),
        ]

    def _false(self, made: Numbered) -> list[Finding]:
        """Claims that are missing, or that claim unequal contents to be equal."""
        contents = self._contents(made)
        claims = {**self.tiles, OUTPUTS: self.output}
        if made.size != ATOM or claims.keys() != contents.keys():
            return [Finding(None, "the claims are not about the program's tiles")]
        found: list[Finding] = []
        true_of: dict[int, int] = {}
        for name, numbers in contents.items():
            if len(numbers) != len(claims[name]):
                found.append(Finding(None, f"{len(claims[name])} claims about {name}"))
                continue
            for number, claimed in zip(numbers, claims[name], strict=True):
                if true_of.setdefault(claimed, number) != number:
                    found.append(Finding(None, f"{name} has other contents than claimed"))
        return found

    def _contents(self, made: Numbered) -> dict[str, list[int]]:
        """The numbers of the atoms of every tile, and of all outputs."""
        tiles = {name: [n for row in atoms for n in row] for name, atoms in made.tiles.items()}
        returned = [made.outputs[name] for name in self.program.returns]
        return {**tiles, OUTPUTS: [n for output in returned for _, n in sorted(output.items())]}


def read_certificate(text: str) -> Certificate:
    """The certificate that a file contains. Raises CertificateFileError where it contains none."""
    try:
        given = parse_json(text)
    except ValueError as wrong:
        raise CertificateFileError(f"not a certificate: {wrong}") from None
    try:
        if (given["format"], given["version"], given["atom"]) != (FORMAT, VERSION, ATOM):
            raise CertificateFileError(
                "not a certificate", expected=f"{FORMAT!r}, version {VERSION}",
                got=f"format {given['format']!r}, version {given['version']!r}",
            )  # fmt: skip
        tiles = {str(name): tuple(map(int, claims)) for name, claims in given["tiles"].items()}
        output = tuple(map(int, given["output"]))
        function, program = str(given["function"]), str(given["program"])
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as wrong:
        raise CertificateFileError(
            f"not a certificate: {wrong_structure(wrong)}",
            expected=f"{FORMAT!r}, version {VERSION}",
        ) from None
    if function not in FUNCTIONS:
        raise CertificateFileError(
            f"{function!r} is not a function of the checker", expected=", ".join(FUNCTIONS)
        )
    with certified_program():
        return Certificate(parse_tiles(program), tiles, output, function)
