"""A program as JSON, for another process: its text, and the source lines of its statements."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import astuple, replace
from typing import Any

from neuroncore.documents import parse_json, wrong_structure
from neuroncore.errors import LaunchError
from neuroncore.program.ir.nodes import Loop, Statement
from neuroncore.program.ir.program import Program
from neuroncore.program.ir.traversal import walk
from neuroncore.program.parsing.parser import parse_program
from neuroncore.source_location import Place


def program_to_json(program: Program) -> str:
    """The program, with the place in the kernel's source that each statement is from."""
    origins = [statement.origin for statement in walk(program.body)]
    places = [None if origin is None else astuple(origin) for origin in origins]
    return json.dumps({"program": str(program), "places": places})


def program_from_json(text: str) -> Program:
    """The program of `program_to_json`. Raises LaunchError for another text."""
    try:
        written = parse_json(text)
        program, places = parse_program(written["program"]), iter(written["places"])
        return replace(program, body=tuple(_placed(program.body, places)), places={})
    except (ValueError, KeyError, TypeError, RuntimeError) as wrong:
        raise LaunchError(f"not a program in JSON: {wrong_structure(wrong)}") from None


def _placed(body: tuple[Statement, ...], places: Iterator[Any]) -> Iterator[Statement]:
    """The statements, outer before inner, each with the next of the places."""
    for statement in body:
        fields = next(places)
        placed = replace(statement, origin=None if fields is None else Place(*fields))
        if isinstance(placed, Loop):
            placed = replace(placed, body=tuple(_placed(placed.body, places)))
        yield placed
