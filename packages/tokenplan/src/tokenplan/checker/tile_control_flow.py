"""Loops and branches of a tile block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tokenplan.checker.tile_arithmetic import UNKNOWN, Calculation, Unknown, bits_of

BOUNDS = ("lower", "upper", "step")
LEAVES = ("continue", "break", "return")
"""Operations that end more than the block that they are in, if it is a branch."""
ENDS = ("yield", *LEAVES)
MOST_GUESSES = 8
"""Iterations of a loop whose end is not calculated."""


def _for(run: Any, op: Any) -> list[Any]:
    (body,), carried = op.regions, run.all(op, "inits")
    variable, *inside = body.arguments
    kind = run.dtype(variable.type["element"])
    iterations = _iterations(run, op)
    run.repeated.update({id(op)} if len(iterations) > 1 else ())
    for at in iterations:
        run.values[variable] = at if at is UNKNOWN else np.asarray(at).astype(kind)
        run.values.update(zip(inside, carried, strict=True))
        carried = run._block(body)
        if run.end == "return":
            return carried
    run.end = "yield"
    return carried


def _loop(run: Any, op: Any) -> list[Any]:
    (body,), carried = op.regions, run.all(op, "inits")
    iterations, guessed, run.end = 0, run.guessed, "continue"
    while run.end == "continue":
        if iterations > MOST_GUESSES and run.guessed - guessed >= iterations:
            run.end = "yield"
            return run.unknown(op, "end")
        iterations += 1
        run.values.update(zip(body.arguments, carried, strict=True))
        carried = run._block(body)
    run.repeated.update({id(op)} if iterations > 1 else ())
    run.end = "yield" if run.end == "break" else run.end
    return carried


def _iterations(run: Any, op: Any) -> Sequence[Any]:
    """The numbers of the variable; a guess of how many there are where the bounds are unknown."""
    unknown = {name for name in BOUNDS if isinstance(run.value(op, name), Unknown)}
    if unknown - {"upper"}:
        return [UNKNOWN] * run.guess()
    first, by = (int(bits_of(run, op, name)) for name in ("lower", "step"))
    end = first + run.guess() * by if unknown else int(bits_of(run, op, "upper"))
    return range(first, end, by)


def _if(run: Any, op: Any) -> list[Any]:
    return run._block(op.regions[0 if bool(run.value(op, "condition")) else 1])


def _reduce(run: Any, op: Any) -> list[Any]:
    (body,), dim, sources = op.regions, op.attributes["dim"], run.all(op, "sources")
    rows = [list(np.moveaxis(source, dim, 0)) for source in sources]
    total = [row[0] for row in rows]
    for at in range(1, len(rows[0])):
        items = [row[at] for row in rows]
        arguments = [v for pair in zip(total, items, strict=True) for v in pair]
        run.values.update(zip(body.arguments, arguments, strict=True))
        total = run._block(body)
    return total


CONTROL_FLOW: dict[str, Calculation] = {
    "for": _for, "loop": _loop, "if": _if, "reduce": _reduce,
}  # fmt: skip
