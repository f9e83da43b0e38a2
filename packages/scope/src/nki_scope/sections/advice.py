"""Advice: what the model gains where one cause of waiting is taken away, the largest gain first.

Each entry was measured: the program, or the constants of the model, were changed as its
`experiment` states, and the timeline was played again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from math import inf
from typing import Any

from neuroncore.enums import DgeMode, Engine, MemorySpace
from neuroncore.errors import KernelError
from neuroncore.integers.affine import Affine
from neuroncore.program import (
    Access,
    Allocate,
    Call,
    Loop,
    Program,
    Statement,
    calls,
    map_accesses,
    walk,
)
from neuroncore.timeline import Bar, Timeline, estimate
from nki_scope.document import Sources
from nki_scope.sections.own_constants import constants_of

SMALL_BYTES = 64 * 1024
"""Transfers of fewer bytes spend most of their time on fixed costs."""
FIXED_COSTS = (
    "DMA_START", "DMA_COMPLETION", "DMA_TO_CONSUMER", "DMA_DESCRIPTOR", "DMA_DESCRIPTOR_MIN",
    "DMA_GAP", "DMA_STAGGER",
)  # fmt: skip
FEW_QUEUES = 4
LEAST_GAIN = 0.01
"""Share of the total below which a line is left out."""
SHOWN_LINES = 3
MOST_PLAYED = 50_000
"""Micro-ops of a kernel beyond which no experiment is made."""
EVACUATORS = (Engine.vector, Engine.scalar)


@dataclass(frozen=True, slots=True)
class Change:
    """The change of an experiment: constants that become 0, the program."""

    zeros: tuple[str, ...] = ()
    program: Callable[[Program], Program] = lambda program: program

    def after(self, before: Change) -> Change:
        """Both."""
        both = (*before.zeros, *self.zeros)
        return Change(both, lambda program: self.program(before.program(program)))

    def total_ns(self, timeline: Timeline) -> float:
        """The time of the changed program; infinite where it cannot be played."""
        program, values = timeline.source, constants_of(timeline)
        for name in set(self.zeros) & values.values.keys():
            values = values.but(name, program.target, 0)
        try:
            changed = self.program(program)
            return estimate(changed, mode=timeline.mode, constants=values, verified=True).total_ns
        except KernelError:
            return inf


@dataclass(frozen=True, slots=True)
class Advice:
    """A cause of waiting, the calls that have it, and the experiment without it."""

    title: str
    text: str
    experiment: str
    calls: Sequence[Call]
    change: Change
    is_line: bool = False
    """Whether it is one line of many: it is not combined with others."""


def advice_section(timeline: Timeline, written: Timeline, sources: Sources) -> list[dict[str, Any]]:
    """The advice on a kernel as a document; none on a kernel that is too large to play again.

    The kernel as `written` has the causes; experiments are played as `timeline` was. Causes come
    first, then single lines, the largest gain of each first.

    `gainNs` is the gain alone, `nextNs` the gain where the ones before have been followed.
    """
    if not 0 < timeline.num_ops <= MOST_PLAYED:
        return []
    least = LEAST_GAIN * timeline.total_ns
    found = [(timeline.total_ns - entry.change.total_ns(timeline), entry)
             for rule in RULES for entry in rule(written)]  # fmt: skip
    section, before, reached = [], Change(), timeline.total_ns
    for gain, entry in sorted(found, key=lambda pair: (pair[1].is_line, -pair[0])):
        both = entry.change.after(before)
        step = 0.0 if entry.is_line else reached - both.total_ns(timeline)
        if gain == -inf or (entry.is_line and gain < least):
            continue
        step = max(step, 0.0)
        if step:
            before, reached = both, reached - step
        section.append(_document(entry, gain, step, sources))
    return section


def _document(entry: Advice, gain: float, step: float, sources: Sources) -> dict[str, Any]:
    places = {str(call.origin): sources.at(call.origin) for call in entry.calls if call.origin}
    return {
        "title": entry.title, "text": entry.text, "experiment": entry.experiment,
        "gainNs": gain, "nextNs": None if entry.is_line else step, "lines": list(places.values()),
    }  # fmt: skip


def _small_transfers(timeline: Timeline) -> Iterator[Advice]:
    small = [bar for bar in timeline.bars if bar.queue is not None and bar.hbm_bytes < SMALL_BYTES]
    if len(small) < 4:
        return
    average = sum(bar.hbm_bytes for bar in small) // len(small)
    yield Advice(
        "Transfers are small",
        f"{len(small)} DMAs of fewer than {SMALL_BYTES} bytes move {average} bytes each on "
        "average. Load or store several tiles with one dma_copy, with long contiguous runs.",
        "the fixed costs of every transfer and descriptor are 0, the bandwidth is as it was",
        _calls(small), Change(FIXED_COSTS),
    )  # fmt: skip


def _one_queue(timeline: Timeline) -> Iterator[Advice]:
    transfers = [bar for bar in timeline.bars if bar.queue is not None]
    counts = Counter(bar.queue for bar in transfers)
    most = max(counts.values(), default=0)
    if most < 4 or len(counts) > FEW_QUEUES:
        return
    yield Advice(
        "Few queues issue the transfers",
        f"{len(transfers)} DMAs share {len(counts)} queues, up to {most} on one, each after the "
        "one before. Issue them from several dma_copy calls, so that more queues share them.",
        "a queue issues its next transfer without waiting", _calls(transfers),
        Change(("DMA_QUEUE_FLOOR",)),
    )  # fmt: skip


def _generators(timeline: Timeline) -> Iterator[Advice]:
    found = [bar for bar in timeline.bars if bar.queue is not None
             and bar.call.attrs.get("dge_mode") in (DgeMode.swdge, DgeMode.hwdge)]  # fmt: skip
    if len(found) < 4:
        return
    yield Advice(
        "Descriptors are generated one after the other",
        f"{len(found)} DMAs have their descriptors made while the kernel runs. Leave dge_mode out "
        "where addresses are known, or use several engines as generators.",
        "the generation of descriptors takes no time", _calls(found), Change(("DMA_ISSUE",)),
    )  # fmt: skip


def _evacuation(timeline: Timeline) -> Iterator[Advice]:
    readers = set(map(id, _psum_readers(timeline.program)))
    found = [bar for bar in timeline.bars if bar.kind == "pass" and id(bar.call) in readers]
    lane, most = _most_common(bar.lane for bar in found)
    if most < 4 or 10 * most < 9 * len(found):
        return
    other = EVACUATORS[0] if lane != EVACUATORS[0].name else EVACUATORS[1]
    reading = _calls(found)
    movable = [call for call in reading if _may_run_on(call, other)]
    text = f"{most} of {len(found)} instructions that read PSUM are on {lane}."
    if movable:
        yield Advice(
            "One engine evacuates PSUM",
            f"{text} Give every other one to {other.name} with engine=.",
            f"every other movable one is on {other.name}",
            movable, _alternation(movable, partial(_on, other)),
        )  # fmt: skip
    else:
        yield Advice(
            "One engine evacuates PSUM",
            f"{text} {other.name} does not execute them: let it copy every other tile to SBUF "
            "first (tensor_copy with engine=), or do more in each of them.",
            f"every other one takes no time on {lane}",
            reading, _alternation(reading, _nothing),
        )  # fmt: skip


def _alternation(chosen: Sequence[Call], change: ChangeOfCall) -> Change:
    ids = set(map(id, chosen))
    return Change(
        program=lambda program: replace(program, body=tuple(_alternated(program.body, ids, change)))
    )


def _may_run_on(call: Call, engine: Engine) -> bool:
    return engine in call.record.engines and "engine" in call.record.attrs


def _psum_readers(program: Program) -> Iterator[Call]:
    psum = {n for n, buffer in program.buffers().items() if buffer.space is MemorySpace.psum}
    for call in calls(program.body):
        read = {a.buffer for name, a in call.accesses.items() if name not in call.record.outputs}
        if read & psum:
            yield call


def _transposes(timeline: Timeline) -> Iterator[Advice]:
    def transposes(call: Call) -> bool:
        return "transpose" in call.instruction or bool(call.attrs.get("is_transpose"))

    found = [call for call in calls(timeline.program.body) if transposes(call)]
    if found:
        yield Advice(
            "Transposes take time",
            "Load the operand transposed (dma_transpose, or a layout that needs none), or swap the "
            "operands of the matmul so that its result is transposed already.",
            "the transposes are left out", found, Change(program=_left_out(found)),
        )  # fmt: skip


def _single_buffers(timeline: Timeline) -> Iterator[Advice]:
    loops = [s for s in walk(timeline.program.body) if isinstance(s, Loop)]
    if any(_own_buffers(loop) for loop in loops):
        yield Advice(
            "Tiles of a loop have one place each",
            "Allocate them twice and use them in turn (double buffering): the loads of the next "
            "iteration then need not wait until this one has used its tiles.",
            "every other iteration has tiles of its own", [],
            Change(program=lambda program: replace(program, body=tuple(_rotated(program.body)))),
        )  # fmt: skip


def _lines(timeline: Timeline) -> Iterator[Advice]:
    """The lines with the largest shares of the critical path."""
    for where, share in list(timeline.by_line().items())[:SHOWN_LINES]:
        found = [call for call in calls(timeline.program.body) if _where(call) == where]
        if found:
            yield Advice(
                f"Much of the critical path is {found[0].instruction}",
                f"{share:.0%} of the critical path is this line.",
                "its instructions are left out: no change of the line gains more",
                found, Change(program=_left_out(found)), is_line=True,
            )  # fmt: skip


RULES: tuple[Callable[[Timeline], Iterator[Advice]], ...] = (
    _small_transfers, _one_queue, _generators, _evacuation, _transposes, _single_buffers, _lines,
)  # fmt: skip


def _most_common(names: Iterable[str]) -> tuple[str, int]:
    """The name that comes most often, and how often."""
    return next(iter(Counter(names).most_common(1)), ("", 0))


def _calls(bars: Sequence[Bar]) -> list[Call]:
    return list({id(bar.call): bar.call for bar in bars}.values())


def _where(call: Call) -> str:
    return f"{call.origin.file}:{call.origin.line}" if call.origin else call.instruction


def _left_out(left_out: Sequence[Call]) -> Callable[[Program], Program]:
    """A program without some calls; what reads their results finds them ready."""
    ids = set(map(id, left_out))

    def kept(body: tuple[Statement, ...]) -> Iterator[Statement]:
        for statement in body:
            if isinstance(statement, Loop):
                yield replace(statement, body=tuple(kept(statement.body)))
            elif id(statement) not in ids:
                yield statement

    return lambda program: replace(program, body=tuple(kept(program.body)))


def _alternated(
    body: tuple[Statement, ...], chosen: Collection[int], change: ChangeOfCall
) -> Iterator[Statement]:
    """Every other call of `chosen` changed; a loop around some has two iterations in one."""
    turns = cycle((False, True))

    def changed(statement: Statement) -> Sequence[Statement]:
        return change(statement) if id(statement) in chosen else (statement,)

    for statement in body:
        if isinstance(statement, Loop):
            own = any(id(inner) in chosen for inner in statement.body)
            if own and statement.trips % 2 == 0:
                yield _doubled(statement, changed)
            else:
                yield replace(statement, body=tuple(_alternated(statement.body, chosen, change)))
        elif id(statement) in chosen and next(turns):
            yield from change(statement)
        else:
            yield statement


ChangeOfCall = Callable[[Statement], Sequence[Statement]]


def _doubled(loop: Loop, change: ChangeOfCall) -> Loop:
    """Two iterations in one, the second one changed."""
    later = {loop.variable: Affine.variable(loop.variable) + loop.step}

    def moved(access: Access) -> Access:
        return replace(access, offset=access.offset.substitute(later))

    second = [map_accesses(s, moved) for statement in loop.body for s in change(statement)]
    return replace(loop, step=2 * loop.step, body=(*loop.body, *second))


def _own_buffers(loop: Loop) -> dict[str, str]:
    """On-chip buffers that each iteration allocates, with a second name; none to double."""
    made = [s.buffer for s in loop.body if isinstance(s, Allocate)]
    chosen = [b.name for b in made if b.space.on_chip and b.address is None]
    return {name: f"{name}.second" for name in chosen} if loop.trips % 2 == 0 else {}


def _rotated(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Loops with two places for each of their buffers."""
    for statement in body:
        if isinstance(statement, Loop):
            inner = replace(statement, body=tuple(_rotated(statement.body)))
            names = _own_buffers(inner)
            yield _doubled(inner, partial(_renamed, names)) if names else inner
        else:
            yield statement


def _renamed(names: Mapping[str, str], statement: Statement) -> Sequence[Statement]:
    if isinstance(statement, Allocate):
        made = replace(
            statement.buffer, name=names.get(statement.buffer.name, statement.buffer.name)
        )
        return (replace(statement, buffer=made),)
    return (map_accesses(statement, lambda a: replace(a, buffer=names.get(a.buffer, a.buffer))),)


def _on(engine: Engine, statement: Statement) -> Sequence[Statement]:
    assert isinstance(statement, Call)
    return (replace(statement, attrs={**statement.attrs, "engine": engine}),)


def _nothing(statement: Statement) -> Sequence[Statement]:
    return ()
