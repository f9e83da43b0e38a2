"""Keys of problems: content of the program, the machine, constants of the time model."""

from __future__ import annotations

import json
from functools import cache
from hashlib import sha256

from neuroncore.program import Program, print_program
from neuroncore.work import costs
from nkigym.store.store import Problem
from nkigym.tiles import TileProgram, print_tiles


def problem_of(program: Program) -> Problem:
    """A root to search from.

    Its key is that of its token graph (target and NKI version are part of it, names and the order
    of what is independent are not) with the version of the cost constants. The programs that are
    found are distinguished by their text: the same orderings written in another order have other
    latencies.

    Raises ProgramError for a program that breaks rules of the machine.
    """
    from tokenplan import analyse  # integer sets take a while to load
    from tokenplan.graph.canonical_key import key_of

    graph = key_of(analyse(program))
    content = json.dumps([graph, program.target, program.nki, costs_version()])
    key = f"sha256:{sha256(content.encode()).hexdigest()}"
    text = print_program(program)
    return Problem(key, program.name, program.target, program.nki, costs_version(), text)


def problem_of_tiles(program: TileProgram, kernel: Program) -> Problem:
    """A tile program to search from, which is known by its text; `kernel` is what it is lowered to.

    Its rewrites are not steps of the kernel, so the two share no key.
    """
    text = print_tiles(program)
    content = json.dumps([text, kernel.target, kernel.nki, costs_version()])
    key = f"sha256:{sha256(content.encode()).hexdigest()}"
    return Problem(key, program.name, kernel.target, kernel.nki, costs_version(), text)


@cache
def costs_version() -> str:
    """Of the timeline's constants and the machine's facts; another one where a value differs."""
    table = costs()
    values = {
        part: {name: row["value"] for name, row in table[part].items()}
        for part in ("constants", "machine")
    }
    return sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]
