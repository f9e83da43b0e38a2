"""Several legal ways to write the same part of a kernel: the one that is predicted fastest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from neuroncore.engines import Space
from neuroncore.program import Allocate, Call, Program, Statement, print_program, walk
from neuroncore.timeline import estimate
from nkigen_lite.lower.refuse import LoweringError
from nkigen_lite.lower.writer import Writer


@dataclass(frozen=True, slots=True)
class Road:
    """One way: `write` adds its statements or raises LoweringError."""

    name: str
    write: Callable[[], None]


def fastest(writer: Writer, roads: Sequence[Road]) -> str:
    """Write the fastest of the roads; says which it was, against which.

    Time is the timeline's, mode compiled, of the road's own statements.
    Raises the first road's LoweringError if all do.
    """
    before, found, refused = writer.mark(), [], []
    for road in roads:
        try:
            road.write()
        except LoweringError as why:
            refused.append(why)
        else:
            after = writer.mark()
            statements = writer.since(before)
            time = predicted_us(writer, statements) if len(roads) > 1 else 0.0
            found.append((time, road.name, after))
        writer.go_back(before)
    if not found:
        raise refused[0]
    time, name, after = min(found, key=lambda f: f[0])
    writer.go_back(after)
    others = "; ".join(f"{n}: {t:.1f} us" for t, n, _ in found if n != name)
    return f"{name}: {time:.1f} us (not {others})" if others else name


def predicted_us(writer: Writer, body: tuple[Statement, ...]) -> float:
    """Time of statements alone; what they use of others is there from the start."""
    made = {s.buffer.name for s in walk(body) if isinstance(s, Allocate)}
    calls = [s for s in walk(body) if isinstance(s, Call)]
    used = dict.fromkeys(a.buffer for c in calls for a in c.accesses.values())
    outside = [writer.buffers[name] for name in used if name not in made]
    given = tuple(
        replace(b, space=Space.hbm, content=None) for b in outside if not b.space.on_chip
    )  # fmt: skip
    held = tuple(Allocate(b) for b in outside if b.space.on_chip)
    program = Program(
        writer.name, given, (*held, *body), (), target=writer.target, nki=writer.nki
    )  # fmt: skip
    text = print_program(program)
    if text not in writer.times:
        writer.times[text] = time_of(program)
    return writer.times[text]


def time_of(program: Program) -> float:
    """Predicted microseconds of a program that is not checked yet."""
    return estimate(program, mode="compiled", verified=True).total_ns / 1e3
