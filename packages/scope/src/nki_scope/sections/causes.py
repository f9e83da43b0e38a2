"""Causes of waiting: the instructions that have one, and the change that takes it away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import prod
from typing import NamedTuple

from neuroncore.enums import DgeMode, Engine, MemorySpace
from neuroncore.program import Access, Allocate, Buffer, Call, Loop, Program, Statement, calls, walk
from neuroncore.timeline import Bar, Timeline
from nki_dtypes import bfloat16, float32
from nki_scope.sections.program_changes import (
    PARTITIONS,
    Cause,
    ChangeOfProgram,
    alternated,
    each,
    has_known_addresses,
    left_out,
    loaded_once,
    on_all_partitions,
    on_engine,
    place_of,
    rotated,
    spread,
    with_dtype,
    without_generators,
)
from nki_scope.sections.wide_transfers import SMALL_BYTES, with_wide_transfers

LEAST_BARS = 4
"""Micro-ops that have a cause; with fewer it is not mentioned."""
WIDER_BYTES = SMALL_BYTES // 8, SMALL_BYTES // 4, SMALL_BYTES
"""Of transfers that tiles of several iterations share."""
SHORT_RUN_BYTES = 512
"""Descriptors of fewer bytes do not reach the bandwidth of a DMA engine."""
SHORT_PASS = 64
"""Elements of a partition below which an instruction takes its least time."""
FEW_QUEUES = 4
"""If one issues at least as many of the transfers as each of so many would."""
SHOWN_LINES = 3
LEAST_SHARE = 0.02
"""Of the critical path, below which a line is not shown."""
EVACUATORS = (Engine.vector, Engine.scalar)
Buffers = Mapping[str, Buffer]


class _Cost(NamedTuple):
    """A cause that is a cost of the model, and whether a micro-op has it."""

    title: str
    has: Callable[[Bar, Buffers], bool]
    text: str
    """What is wrong and the cure, with {count} micro-ops and the {average} HBM bytes of each."""
    experiment: str
    zeros: tuple[str, ...] = ()
    changes: tuple[ChangeOfProgram | None, ...] = (None,)
    """The best of them counts."""


def _is_small(bar: Bar, buffers: Buffers) -> bool:
    return bar.queue is not None and bar.hbm_bytes < SMALL_BYTES


def _is_scattered(bar: Bar, buffers: Buffers) -> bool:
    return bar.queue is not None and any(
        not buffers[access.buffer].space.on_chip and _run_bytes(access, buffers) < SHORT_RUN_BYTES
        for access in bar.call.accesses.values()
    )


def _run_bytes(access: Access, buffers: Buffers) -> int:
    """Contiguous bytes of an access."""
    run = 1
    for size, stride in zip(reversed(access.shape), reversed(access.strides), strict=True):
        if size > 1 and stride != run:
            break
        run *= size
    return run * (access.dtype or buffers[access.buffer].dtype).itemsize


def _has_generated_descriptors(are_known: bool, bar: Bar, buffers: Buffers) -> bool:
    return (
        bar.queue is not None
        and bar.call.attrs.get("dge_mode") in (DgeMode.swdge, DgeMode.hwdge)
        and has_known_addresses(bar.call) == are_known
    )


def _is_short(bar: Bar, buffers: Buffers) -> bool:
    return bar.kind == "pass" and _free_elements(bar.call) < SHORT_PASS


def _free_elements(call: Call) -> int:
    return max((prod(access.shape[1:]) for access in call.accesses.values()), default=0)


COSTS = (
    _Cost(
        "Transfers are small", _is_small,
        f"{{count}} DMAs of fewer than {SMALL_BYTES} bytes move {{average}} bytes each on average. "
        "Load or store several tiles with one dma_copy, with long contiguous runs.",
        "parts of a tile, or tiles of several iterations, share a transfer, as many as gains most",
        changes=tuple(partial(with_wide_transfers, least_bytes=n) for n in WIDER_BYTES),
    ),
    _Cost(
        "Transfers are made of short runs", _is_scattered,
        f"{{count}} DMAs access HBM in contiguous runs of fewer than {SHORT_RUN_BYTES} bytes, a "
        "descriptor each. Move whole rows and choose or transpose on chip, or store the tensor in "
        "the order in which it is used.",
        "a descriptor takes the time of its bytes alone",
        ("DMA_DESCRIPTOR", "DMA_DESCRIPTOR_MIN"),
    ),
    _Cost(
        "Descriptors are generated one after the other", partial(_has_generated_descriptors, True),
        "{count} DMAs of known addresses have their descriptors made while the kernel runs. Leave "
        "dge_mode and engine out.",
        "they have no dge_mode", changes=(without_generators,),
    ),
    _Cost(
        "Descriptors are generated one after the other", partial(_has_generated_descriptors, False),
        "{count} DMAs of computed addresses have their descriptors made while the kernel runs. Use "
        "several engines as generators, or access more with each DMA.",
        "the generation of descriptors takes no time", ("DMA_ISSUE",),
    ),
    _Cost(
        "Tables of activation functions are loaded again", lambda bar, _: bar.kind == "table_load",
        "{count} times the scalar engine loads the table of a function that it has not loaded "
        "last. Execute all activations of one function before the next function, or use functions "
        "of one table.",
        "loading a table takes no time", ("ACT_TABLE_LOAD",),
    ),
    _Cost(
        "Instructions work on few elements", _is_short,
        f"{{count}} instructions work on fewer than {SHORT_PASS} elements of each partition, which "
        "takes as long as more of them would. Work on several tiles with one instruction.",
        "the least times and latencies of vector, scalar and gpsimd instructions are 0",
        ("MIN_II", "ACCESS_OVERHEAD", "GPSIMD_START", "VECTOR_LATENCY", "SCALAR_LATENCY",
         "GPSIMD_LATENCY"),
    ),
)  # fmt: skip


def _costs(timeline: Timeline) -> Iterator[Cause]:
    buffers = timeline.program.buffers()
    for cost in COSTS:
        found = [bar for bar in timeline.bars if cost.has(bar, buffers)]
        if len(found) >= LEAST_BARS:
            average = sum(bar.hbm_bytes for bar in found) // len(found)
            text = cost.text.format(count=len(found), average=average)
            places = _calls(timeline, found)
            for change in cost.changes:
                yield Cause(
                    cost.title, text, cost.experiment, places, cost.zeros, change,
                    is_bound=change is None,
                )  # fmt: skip


def _one_queue(timeline: Timeline) -> Iterator[Cause]:
    transfers = [bar for bar in timeline.bars if bar.queue is not None]
    counts = Counter(bar.queue for bar in transfers)
    most = max(counts.values(), default=0)
    if most >= LEAST_BARS and len(transfers) <= FEW_QUEUES * most:
        yield Cause(
            "Few queues issue the transfers",
            f"{len(transfers)} DMAs share {len(counts)} queues, up to {most} on one, each after "
            "the one before. Issue them from several dma_copy calls, each with a tile of its own, "
            "so that more queues share them.",
            "loops have four iterations in one, each with calls and tiles of its own",
            _calls(timeline, transfers), change=spread,
        )  # fmt: skip


def _evacuation(timeline: Timeline) -> Iterator[Cause]:
    readers = set(map(id, _psum_readers(timeline.program)))
    found = [bar for bar in timeline.bars if bar.kind == "pass" and id(bar.call) in readers]
    lane, most = _most_common(bar.lane for bar in found)
    if most < LEAST_BARS or 10 * most < 9 * len(found):
        return
    other = EVACUATORS[0] if lane != EVACUATORS[0].name else EVACUATORS[1]
    reading = _calls(timeline, found)
    movable = [call for call in reading if _may_run_on(call, other)]
    text = f"{most} of {len(found)} instructions that read PSUM are on {lane}."
    if movable:
        yield Cause(
            "One engine evacuates PSUM",
            f"{text} Give every other one to {other.name} with engine=, with its own tiles.",
            f"every other movable one is on {other.name}, with tiles of its own",
            movable, change=alternated(movable, partial(on_engine, other)),
        )  # fmt: skip
    else:
        yield Cause(
            "One engine evacuates PSUM",
            f"{text} {other.name} does not execute them: let it copy every other tile to SBUF "
            "first (tensor_copy with engine=), or do more in each of them.",
            f"every other one takes no time on {lane} and has tiles of its own",
            reading, change=alternated(reading, left_out), is_bound=True,
        )  # fmt: skip


def _may_run_on(call: Call, engine: Engine) -> bool:
    return engine in call.record.engines and "engine" in call.record.attrs


def _psum_readers(program: Program) -> Iterator[Call]:
    psum = {n for n, buffer in program.buffers().items() if buffer.space is MemorySpace.psum}
    for call in calls(program.body):
        read = {a.buffer for name, a in call.accesses.items() if name not in call.record.outputs}
        if read & psum:
            yield call


def _transposes(timeline: Timeline) -> Iterator[Cause]:
    found = [call for call in calls(timeline.source.body) if _transposes_tile(call)]
    if found:
        yield Cause(
            "Transposes take time",
            "Load the operand transposed (dma_transpose, or a layout that needs none), or swap the "
            "operands of the matmul so that its result is transposed already.",
            "the transposes are left out", found, change=each(set(map(id, found)), left_out),
            is_bound=True,
        )  # fmt: skip


def _transposes_tile(call: Call) -> bool:
    return "transpose" in call.instruction or bool(call.attrs.get("is_transpose"))


def _wide_matmuls(timeline: Timeline) -> Iterator[Cause]:
    buffers = timeline.source.buffers()
    names: set[str] = set()
    found: list[Call] = []
    for call in calls(timeline.source.body):
        tiles = {call.accesses[n].buffer for n in ("stationary", "moving") if n in call.accesses}
        wide = {name for name in tiles if buffers[name].dtype is float32}
        if wide and not _transposes_tile(call):
            found.append(call)
            names |= wide
    made = {id(s) for s in walk(timeline.source.body)
            if isinstance(s, Allocate) and s.buffer.name in names}  # fmt: skip
    if found:
        yield Cause(
            "Matmuls have float32 operands",
            "A matmul of float32 takes four times as long as one of bfloat16. Keep the tiles that "
            "it reads in bfloat16 where the result allows it; sums in PSUM are float32 anyway.",
            "the tiles that matmuls read are bfloat16",
            found, change=each(made, partial(with_dtype, bfloat16)),
        )  # fmt: skip


def _reloads(timeline: Timeline) -> Iterator[Cause]:
    body = timeline.source.body
    written = {c.accesses[n].buffer for c in calls(body) for n in c.record.outputs
               if n in c.accesses}  # fmt: skip
    found = {id(call): (call, loop) for call, loops in _with_loops(body, ())
             if (loop := _repeating(call, loops, written)) is not None}  # fmt: skip
    if found:
        times = max(loop.trips for _, loop in found.values())
        yield Cause(
            "The same data is loaded again",
            f"A load repeats in every iteration of a loop that its source does not depend on, up "
            f"to {times} times. Load the data once before that loop, into a tile that stays in "
            "SBUF.",
            "it is before that loop, if memory has room for its tiles",
            [call for call, _ in found.values()], change=loaded_once, automatic=True,
        )  # fmt: skip


def _repeating(call: Call, loops: Sequence[Loop], written: Collection[str]) -> Loop | None:
    """The outermost loop all of whose iterations load the same data, if there is one."""
    source = call.accesses.get("src")
    if not call.is_dma or source is None or source.indirect or source.buffer in written:
        return None
    variables = {name for name, _ in source.offset.terms}
    return next((x for x in loops if x.trips > 1 and x.variable not in variables), None)


def _with_loops(
    body: tuple[Statement, ...], around: tuple[Loop, ...]
) -> Iterator[tuple[Call, tuple[Loop, ...]]]:
    """Every call with the loops around it, the outermost first."""
    for statement in body:
        if isinstance(statement, Loop):
            yield from _with_loops(statement.body, (*around, statement))
        elif isinstance(statement, Call):
            yield statement, around


def _few_partitions(timeline: Timeline) -> Iterator[Cause]:
    found = [
        bar for bar in timeline.bars
        if bar.kind == "pass" and _free_elements(bar.call) >= SHORT_PASS
        and max(a.shape[0] for a in bar.call.accesses.values()) <= PARTITIONS // 2
    ]  # fmt: skip
    if len(found) >= LEAST_BARS:
        few = _calls(timeline, found)
        used = max(a.shape[0] for bar in found for a in bar.call.accesses.values())
        yield Cause(
            "Instructions use few partitions",
            f"{len(found)} instructions work on at most {used} of {PARTITIONS} partitions, so that "
            "each takes as long as on all of them. Lay tiles out with more rows in the partition "
            "dimension and fewer elements in the free ones.",
            "they work on as many elements on all partitions", few,
            change=each(set(map(id, few)), on_all_partitions), is_bound=True,
        )  # fmt: skip


def _single_buffers(timeline: Timeline) -> Iterator[Cause]:
    if rotated(timeline.source) != timeline.source:
        waiting = [bar for bar in timeline.bars if bar.why == "buffer"]
        yield Cause(
            "Tiles of a loop have one place each",
            "Allocate them in the loop, twice, and use them in turn (double buffering): the loads "
            "of the next iteration then need not wait until this one has used its tiles.",
            "every other iteration has tiles of its own", _calls(timeline, waiting),
            change=rotated, automatic=True,
        )  # fmt: skip


RULES: tuple[Callable[[Timeline], Iterator[Cause]], ...] = (
    _costs, _one_queue, _evacuation, _transposes, _wide_matmuls, _reloads,
    _few_partitions, _single_buffers,
)  # fmt: skip


def causes_of(timeline: Timeline) -> Iterator[Cause]:
    """The causes that a kernel may have."""
    for rule in RULES:
        yield from rule(timeline)


def lines_of(timeline: Timeline) -> Iterator[Cause]:
    """The lines with the largest shares of the critical path."""
    for where, share in list(timeline.by_line().items())[:SHOWN_LINES]:
        found = [call for call in calls(timeline.source.body) if _where(call) == where]
        if found and share >= LEAST_SHARE:
            yield Cause(
                f"{found[0].instruction} on the critical path",
                f"{share:.1%} of it is line {where.rpartition(':')[2]}. The bound may be more: "
                "without the line, what needs its results starts at once.",
                "its instructions are left out: no change of the line gains more",
                found, change=each(set(map(id, found)), left_out), is_bound=True,
            )  # fmt: skip


def _most_common(names: Iterable[str]) -> tuple[str, int]:
    """The name that comes most often, and how often."""
    return next(iter(Counter(names).most_common(1)), ("", 0))


def _calls(timeline: Timeline, bars: Sequence[Bar]) -> list[Call]:
    """The calls of the program that the bars come from."""
    places = {place_of(bar.call) for bar in bars}
    return [call for call in calls(timeline.source.body) if place_of(call) in places]


def _where(call: Call) -> str:
    return f"{call.origin.file}:{call.origin.line}" if call.origin else call.instruction
