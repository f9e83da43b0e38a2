"""Several legal ways to write the same part of a kernel: the one that is predicted fastest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

from neuroncore.enums import MemorySpace
from neuroncore.program import Allocate, Call, Loop, Program, Statement, print_program, walk
from neuroncore.timeline import estimate
from nkigen_lite.codegen.emission.writer import Mark, Writer
from nkigen_lite.selection.unsupported import CodegenError


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way: `write` adds its statements or raises CodegenError. What it loads may stay on chip
    in its kernel if it `agrees` with the part that stored it."""

    name: str
    write: Callable[[], None]
    agrees: bool = False


def fastest(writer: Writer, candidates: Sequence[Candidate], known_as: str | None = None) -> str:
    """Write the fastest of the candidates; return its name and time, and the others'. Candidates of
    the same name and the same `known_as` take the same time.

    Time is the timeline's, mode compiled, of the candidate's own statements; a candidate of so many
    instructions that it cannot be the fastest is not played.
    Raises the first candidate's CodegenError if all do.
    """
    with writer.choice() as forced:
        written = _written(writer, candidates)
    times: dict[str, float] = {}
    for each in sorted(written, key=lambda w: w.instructions):
        if len(candidates) == 1 or each.least_us > min(times.values(), default=inf):
            continue
        text = f"{known_as}, {each.name}" if known_as else None
        times[each.name] = predicted_us(writer, each.statements, text)
    order = sorted(written, key=lambda w: (w.name != forced, times.get(w.name, inf)))
    best = order[0]
    writer.go_back(best.after)
    if forced is not None:
        writer.choices.append(_near(candidates, times, best.name))
    others = "; ".join(
        f"{w.name}: {times[w.name]:.1f} us" if w.name in times
        else f"{w.name}: {w.instructions:,} instructions"
        for w in written if w is not best
    )  # fmt: skip
    return f"{best.name}: {times[best.name]:.1f} us (not {others})" if others else best.name


def _near(candidates: Sequence[Candidate], times: Mapping[str, float], best: str) -> list[str]:
    """The candidates that may be faster than the best in their kernel, the fastest first."""
    most = {c.name: NEAR * times.get(best, 0.0) + DMA_US * c.agrees for c in candidates}
    return sorted(
        (n for n, us in times.items() if n != best and us <= most[n]), key=times.__getitem__
    )


NEAR = 1.1
"""Times the time of the fastest candidate up to which another may be faster in its kernel."""

DMA_US = 2.0
"""About what a DMA takes to begin and end: so much later a candidate may be that needs none."""


def _written(writer: Writer, candidates: Sequence[Candidate]) -> list[_Written]:
    """The candidates that can be written; the writer is as before."""
    before, written, rejected = writer.mark(), [], []
    for candidate in candidates:
        try:
            candidate.write()
        except CodegenError as why:
            rejected.append(why)
        else:
            written.append(_Written(candidate.name, writer.mark(), writer.since(before)))
        writer.go_back(before)
    if not written:
        raise rejected[0]
    return written


@dataclass(frozen=True, slots=True)
class _Written:
    """A candidate that was written: the writer behind it, its statements."""

    name: str
    after: Mark
    statements: tuple[Statement, ...]

    @property
    def instructions(self) -> int:
        """How many are executed."""
        return _executed(self.statements)

    @property
    def least_us(self) -> float:
        """No less time, however they are dealt out."""
        return self.instructions * _LEAST_NS / 1e3


_LEAST_NS = 20 / 5
"""Of an instruction: 64 cycles (NKI 0.1 API documents, least initiation interval) take 23 ns at
2.8 GHz, the fastest clock of an engine (NKI architecture guides); five engines at once."""


def _executed(body: tuple[Statement, ...]) -> int:
    return sum(
        s.trips * _executed(s.body) if isinstance(s, Loop) else int(isinstance(s, Call))
        for s in body
    )


def predicted_us(writer: Writer, body: tuple[Statement, ...], known_as: str | None = None) -> float:
    """Time of statements alone; what they use of others is there from the start."""
    if known_as in writer.times:
        return writer.times[known_as]
    made = {s.buffer.name for s in walk(body) if isinstance(s, Allocate)}
    calls = [s for s in walk(body) if isinstance(s, Call)]
    used = dict.fromkeys(a.buffer for c in calls for a in c.accesses.values())
    outside = [writer.buffers[name] for name in used if name not in made]
    given = tuple(
        replace(b, space=MemorySpace.hbm, content=None) for b in outside if not b.space.on_chip
    )  # fmt: skip
    held = tuple(Allocate(b) for b in outside if b.space.on_chip)
    program = Program(
        writer.name, given, (*held, *body), (), target=writer.target, nki=writer.nki
    )  # fmt: skip
    text = known_as or print_program(program)
    if text not in writer.times:
        writer.times[text] = time_of(program)
    return writer.times[text]


def time_of(program: Program) -> float:
    """Predicted microseconds of a program that is not checked yet."""
    return estimate(program, verified=True).total_ns / 1e3


@dataclass(frozen=True)
class TimedProgram:
    """A program and its predicted time, known where it is compared."""

    program: Program

    @cached_property
    def us(self) -> float:
        return time_of(self.program)
