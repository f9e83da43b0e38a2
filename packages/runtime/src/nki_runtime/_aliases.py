"""Arguments that share memory: a program has no word for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np

from neuroncore.errors import LaunchError
from neuroncore.program import Call, Loop, Program, Statement


def refuse_aliases(program: Program, named: Mapping[str, Any]) -> None:
    """Raises LaunchError where two parameters share memory and the program writes one of them.

    named: the arguments by parameter.
    """
    arrays = {name: value for name, value in named.items() if isinstance(value, np.ndarray)}
    pairs = combinations(arrays, 2)
    shared = [(a, b) for a, b in pairs if np.shares_memory(arrays[a], arrays[b])]
    if not shared:
        return
    written = set(_written(program.body))
    for one, other in shared:
        if one in written or other in written:
            raise LaunchError(
                f"arguments {one} and {other} share memory, and the kernel writes "
                f"{one if one in written else other}",
                expected="distinct arrays: the program takes its parameters to be distinct tensors",
                hint="pass a copy of one, or give the kernel one parameter for both",
            )


def _written(body: tuple[Statement, ...]) -> Iterator[str]:
    for statement in body:
        if isinstance(statement, Loop):
            yield from _written(statement.body)
        elif isinstance(statement, Call):
            outputs = statement.record.outputs
            yield from (a.buffer for n, a in statement.accesses.items() if n in outputs)
