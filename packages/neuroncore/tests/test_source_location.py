"""Places in the source of a code."""

from __future__ import annotations

import random
from types import CodeType

from neuroncore import source_location
from neuroncore.source_location import place_in


def code_of(lines: int) -> CodeType:
    """A function of so many lines."""
    body = "".join(f"    x = g(x, {i})\n" for i in range(lines))
    module = compile("def f(x):\n" + body, "kernel.py", "exec")
    return next(const for const in module.co_consts if isinstance(const, CodeType))


def test_places_are_those_of_the_code_in_any_order():
    code, other = code_of(300), code_of(301)
    expected = list(code.co_positions())
    order = [*range(len(expected)), *random.Random(7).sample(range(len(expected)), 200)]

    for at in order:
        place = place_in(code, 2 * at)
        place_in(other, 2 * at)
        if None not in expected[at]:
            assert (place.line, place.end_line, place.column, place.end_column) == expected[at]


def test_the_positions_of_a_long_function_are_read_once(monkeypatch):
    code, starts = code_of(500), []

    def positions(of: CodeType, index: int) -> object:
        before = source_location._readers.get(id(of))
        found = read(of, index)
        starts.append(before is None or source_location._readers[id(of)][1] is not before[1])
        return found

    read = source_location._position
    monkeypatch.setattr(source_location, "_position", positions)
    for at in range(0, 2000, 7):
        place_in(code, 2 * at)

    assert sum(starts) == 1
