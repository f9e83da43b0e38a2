"""Timelines as the profiler's Instruction table in Parquet: a row per micro-op.

Needs the `profile` extra. Neuroncore's profile_columns.json has the columns, their units, and why
the others are not written; `--profile` reads the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neuroncore.effects import Touch
from neuroncore.machine.core import NeuronCore
from neuroncore.program import Access, Buffer, Call, call_effects, calls
from neuroncore.timeline import Bar, Timeline, launch_starts, profiled_end_ns
from neuroncore.timeline.profiles.rows import columns
from nki_runtime.trace.tracks import track_of

EVENTS = "data", "buffer"
"""Causes of waits that are semaphores, not an engine or a resource that is in use."""
TYPES = {"ns": "double", "text": "string"}
"""Unit of a column → its type; others are whole numbers."""
OPCODES = {"load_stationary": "LDWEIGHTS", "multiply_moving": "MATMUL", "table_load": "TABLE_LOAD"}


@dataclass(frozen=True, slots=True)
class _Operand:
    """A tensor of an instruction: its memory, whether it is written, its bytes."""

    name: str
    memory: str
    is_written: bool
    num_bytes: int


@dataclass(slots=True)
class _Calls:
    """What is equal in all executions of a call of one program."""

    timeline: Timeline
    buffers: Mapping[str, Buffer] = field(init=False)
    numbers: dict[int, int] = field(init=False)
    core: NeuronCore = field(init=False)
    loads_weights: bool = field(init=False)
    """Whether the loads of weights are micro-ops."""
    operands: dict[int, list[_Operand]] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        program = self.timeline.program
        self.buffers = program.buffers()
        self.numbers = {id(call): number for number, call in enumerate(calls(program.body))}
        self.core = NeuronCore(program.target, watchers=())
        self.loads_weights = any(b.kind == "load_stationary" for b in self.timeline.bars)

    def of(self, call: Call) -> list[_Operand]:
        if id(call) not in self.operands:
            self.operands[id(call)] = list(self._operands(call))
        return self.operands[id(call)]

    def _operands(self, call: Call) -> Iterator[_Operand]:
        """An operand that is read and written is two."""
        program = self.timeline.program
        for place in call_effects(call, self.buffers, self.core, program.nki).places:
            access = call.accesses.get(place.effect.operand)
            if access is not None and not place.effect.is_register:
                buffer = self.buffers[access.buffer]
                size = access.size * (access.dtype or buffer.dtype).itemsize
                is_written = place.effect.touch is not Touch.read
                yield _Operand(place.effect.operand, buffer.space.name, is_written, size)

    def text(self, call: Call) -> str:
        if id(call) not in self.texts:
            self.texts[id(call)] = " ".join(f"{name}={text}" for name, text in self._text(call))
        return self.texts[id(call)]

    def _text(self, call: Call) -> Iterator[tuple[str, str]]:
        for name, value in call.given():
            text = getattr(value, "name", str(value))
            if isinstance(value, Access):
                dtype = value.dtype or self.buffers[value.buffer].dtype
                text = f"{value.buffer}:{dtype.name}{list(value.shape)}"
            yield name, text.replace(" ", "")


@dataclass(frozen=True, slots=True)
class _Row:
    """A micro-op: its launch, the count of those on its engine before, how long it waited."""

    number: int
    bar: Bar
    begin_ns: float
    core: int
    pc: int
    wait_ns: float
    calls: _Calls

    @property
    def start_ns(self) -> float:
        return self.begin_ns + self.bar.start_ns

    @property
    def line(self) -> str:
        return f"{self.bar.place.file}:{self.bar.place.line}" if self.bar.place else ""

    @property
    def text_number(self) -> int:
        """Of its call, among those in the text of the program."""
        return self.calls.numbers[id(self.bar.call)]

    @property
    def is_on_tensor(self) -> bool:
        return self.bar.lane == "tensor"

    @property
    def is_transpose(self) -> bool:
        call = self.bar.call
        return "transpose" in call.instruction or bool(call.attrs.get("is_transpose"))

    def num_bytes(self, memory: str, is_written: bool) -> int:
        """Bytes that the micro-op reads or writes.

        Where loads of weights are micro-ops, they read them, and multiplies the rest.
        """
        found = self.calls.of(self.bar.call)
        if self.bar.queue is not None and memory == "hbm":
            ends = [each.is_written for each in found if each.memory == "hbm"]
            return self.bar.hbm_bytes * ends.count(is_written) // (len(ends) or 1)
        loads = self.bar.kind == "load_stationary"
        return 0 if self.bar.kind == "table_load" else sum(
            each.num_bytes for each in found
            if (each.memory, each.is_written) == (memory, is_written)
            and (not self.calls.loads_weights or each.name.startswith("stationary") == loads)
        )  # fmt: skip

    @property
    def adjusted_flops(self) -> int:
        """In operations of bfloat16 that take as long."""
        moving = self.bar.call.accesses.get("moving")
        if moving is None or not self.bar.flops:
            return 0
        dtype = (moving.dtype or self.calls.buffers[moving.buffer].dtype).name
        factors = columns()["bf16_equivalent"][self.calls.timeline.target]
        return round(self.bar.flops * factors.get(dtype, 1))


VALUES: dict[str, Callable[[_Row], Any]] = {
    "start_ts": lambda row: row.start_ns,
    "end_ts": lambda row: row.start_ns + row.bar.busy_ns,
    "duration_ns": lambda row: row.bar.busy_ns,
    "result_ts": lambda row: row.begin_ns + profiled_end_ns(row.bar, row.calls.timeline),
    "engine": lambda row: row.bar.lane if row.bar.queue is None else f"dma{row.bar.queue}",
    "timeline_track": lambda row: track_of(row.bar)[0],
    "pcore_idx": lambda row: row.core,
    "opcode": lambda row: OPCODES.get(row.bar.kind, row.bar.instruction.upper()),
    "operands": lambda row: row.calls.text(row.bar.call),
    "compiler_opcode": lambda row: row.bar.instruction.upper(),
    "id": lambda row: row.number,
    "pc": lambda row: row.pc,
    "bir_id": lambda row: f"{row.calls.timeline.program.name}:{row.text_number}",
    "raw_bir_id": lambda row: row.text_number,
    "bir_instruction_name": lambda row: row.bar.instruction,
    "kernel_instruction_name": lambda row: row.bar.name or "",
    "evt_wait_time_ns": lambda row: row.wait_ns,
    "nki_source_location": lambda row: row.line,
    "bir_debug_info_source_location": lambda row: row.line,
    "hbm_read_bytes": lambda row: row.num_bytes("hbm", False),
    "hbm_write_bytes": lambda row: row.num_bytes("hbm", True),
    "sbuf_read_bytes": lambda row: row.num_bytes("sbuf", False),
    "sbuf_write_bytes": lambda row: row.num_bytes("sbuf", True),
    "psum_read_bytes": lambda row: row.num_bytes("psum", False),
    "psum_write_bytes": lambda row: row.num_bytes("psum", True),
    "psum_read_sbuf_write_bytes": lambda row: (
        row.num_bytes("psum", False) if row.num_bytes("sbuf", True) else 0
    ),
    "tensor_instruction_type": lambda row: (
        ("TRANSPOSE" if row.is_transpose else "REGULAR") if row.is_on_tensor else None
    ),
    "raw_flops": lambda row: row.bar.flops,
    "adjusted_flops": lambda row: row.adjusted_flops,
    "flops_transpose": lambda row: row.bar.flops * row.is_transpose,
    "adjusted_flops_transpose": lambda row: row.adjusted_flops * row.is_transpose,
    "scalar_activation_fn": lambda row: (
        row.bar.call.attrs["op"].name.upper()
        if row.bar.lane == "scalar" and row.bar.instruction.startswith("activation") else None
    ),
}  # fmt: skip
"""Column of the table → its value; its unit is in profile_columns.json."""


def write_instruction_table(timelines: Sequence[Timeline], file: Path) -> None:
    """Write launches one after the other, a row per micro-op, which is busy from start to end."""
    import pyarrow as pa
    from pyarrow import parquet

    rows, units = list(_rows(timelines)), columns()["written"]
    types = {name: pa.type_for_alias(TYPES.get(units[name], "int64")) for name in VALUES}
    schema = pa.schema([pa.field(n, t, metadata={"unit": units[n]}) for n, t in types.items()])
    found = {name: [value(row) for row in rows] for name, value in VALUES.items()}
    parquet.write_table(pa.table(found, schema=schema), file)


def _rows(timelines: Sequence[Timeline]) -> Iterator[_Row]:
    """The micro-ops of every launch; of one engine in the order of their starts."""
    number = 0
    for timeline, begin in launch_starts(timelines):
        of_calls = _Calls(timeline)
        waits = _waits(timeline.bars)
        for bar in timeline.bars:
            row = _Row(number, bar, begin, timeline.core or 0, *waits[bar.number], of_calls)
            number += 1
            yield row


def _waits(bars: Sequence[Bar]) -> dict[int, tuple[int, float]]:
    """Number of a bar → how many of its engine start before, how long it waits for an event.

    An engine waits from the end of all before; the first of an engine does not.
    """
    counts: Counter[object] = Counter()
    free: dict[object, float] = {}
    found = {}
    for bar in sorted(bars, key=lambda bar: bar.start_ns):
        lane = bar.lane, bar.queue
        idle = max(0.0, bar.start_ns - free.get(lane, bar.start_ns))
        found[bar.number] = counts[lane], idle if bar.why in EVENTS else 0.0
        counts[lane] += 1
        free[lane] = max(free.get(lane, 0.0), bar.start_ns + bar.busy_ns)
    return found
