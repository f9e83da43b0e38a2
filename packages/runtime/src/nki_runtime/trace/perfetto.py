"""Perfetto traces: timelines written as tracks, slices, flows and counters; slices read.

Needs the `trace` extra.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, count
from pathlib import Path
from typing import Any, NamedTuple

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    Trace,
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)
from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

from neuroncore.program import Access
from neuroncore.timeline import Bar, Timeline, launch_starts, profiled_end_ns
from nki_runtime.trace.tracks import by_track, rows_of

SEQUENCE = 1
COUNTERS = {
    "SBUF held": "bytes per partition",
    "PSUM held": "banks",
    "HBM bandwidth": "GB/s",
}


def write_trace(timelines: Sequence[Timeline], file: Path) -> None:
    """Write launches one after the other, their cores side by side. Raises OSError where the file
    cannot be written.

    One track per engine (LoadStationary, which overlaps the multiply before, has its own) and per
    DMA queue; DMAs of a queue that overlap lie on tracks of one name, which the Perfetto UI shows
    as one. Flows lead from what was waited for. A time is in whole nanoseconds.
    """
    with file.open("wb") as stream:
        trace = _Trace(StreamingTraceProtoBuilder(stream))
        for timeline, start in launch_starts(timelines):
            trace.core = "" if timeline.core is None else f" {timeline.core}"
            _Kernel(trace, timeline, start).write()


@dataclass(slots=True)
class _Trace:
    """The file: its tracks by core and name, and the numbers that are still free."""

    builder: StreamingTraceProtoBuilder
    tracks: dict[tuple[str, str, int], int] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    is_begun: bool = False
    core: str = ""
    """Behind the names of the tracks that are written now, of a launch on several cores."""

    def track(self, name: str, row: int = 0, rank: int = 0, unit: str | None = None) -> int:
        """The uuid of the `row`-th track of that name; of a counter, with `unit`."""
        found = self.tracks.get((self.core, name, row))
        if found is not None:
            return found
        more: dict[str, Any] = {} if unit is None else {"counter": {"unit_name": unit}}
        if unit is None and rank:
            more = {"parent_uuid": self._above(), "sibling_order_rank": rank}
        elif self.core:
            more["parent_uuid"] = self._above()
        return self._new_track(name, row, **more)

    def _above(self) -> int:
        """The track above engines and queues."""
        name = f"NeuronCore{self.core}"
        found = self.tracks.get((self.core, name, 0))
        ordered = {"child_ordering": TrackDescriptor.EXPLICIT}
        return found or self._new_track(name, 0, **ordered)

    def _new_track(self, name: str, row: int, **more: Any) -> int:
        uuid = self.tracks[self.core, name, row] = next(self.numbers)
        self.add(track_descriptor=TrackDescriptor(uuid=uuid, name=name, **more))
        return uuid

    def add(self, **fields: Any) -> None:
        """Write a packet."""
        if not self.is_begun:
            fields["sequence_flags"] = TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
            self.is_begun = True
        self.builder.write_packet(TracePacket(trusted_packet_sequence_id=SEQUENCE, **fields))

    def event(self, time: int, kind: Any, track: int, **more: Any) -> None:
        self.add(timestamp=time, track_event=TrackEvent(type=kind, track_uuid=track, **more))

    def slice(
        self,
        track: int,
        name: str,
        start: int,
        end: int,
        arguments: Mapping[str, Any],
        flows: Sequence[int] = (),
        ends_flows: Sequence[int] = (),
    ) -> None:
        self.event(
            start, TrackEvent.TYPE_SLICE_BEGIN, track, name=name,
            debug_annotations=[_annotation(*argument) for argument in arguments.items()],
            flow_ids=flows, terminating_flow_ids=ends_flows,
        )  # fmt: skip
        self.event(end, TrackEvent.TYPE_SLICE_END, track)

    def counter(self, name: str, moments: Iterable[tuple[int, float]]) -> None:
        track = self.track(name, unit=COUNTERS[name])
        for time, value in moments:
            self.event(time, TrackEvent.TYPE_COUNTER, track, double_counter_value=float(value))


def _annotation(name: str, value: Any) -> dict[str, Any]:
    """An argument that the UI shows beside a slice."""
    field = _FIELD.get(type(value))
    return (
        {"name": name, "string_value": str(value)}
        if field is None
        else {"name": name, field: value}
    )


_FIELD = {bool: "bool_value", int: "int_value", float: "double_value"}
"""Where an argument of a type goes; any other is text."""


class _Kernel:
    """One timeline, `start` ns after the trace's begin."""

    def __init__(self, trace: _Trace, timeline: Timeline, start: float) -> None:
        self.trace, self.timeline, self.start = trace, timeline, start
        self.waiters: dict[int, list[int]] = {}
        self.flows: dict[int, int] = {}
        for bar in timeline.bars:
            if bar.waited_for is not None and bar.why != "engine":
                self.flows[bar.number] = flow = next(trace.numbers)
                self.waiters.setdefault(bar.waited_for, []).append(flow)

    def at(self, nanoseconds: float) -> int:
        return round(self.start + nanoseconds)

    def write(self) -> None:
        found = self.timeline
        arguments = {
            "target": found.target, "mode": found.mode, "MFU": found.mfu, "MBU": found.mbu,
            "DMA efficiency": found.dma_efficiency, "micro-ops": found.num_ops,
            "HBM bytes": found.hbm_bytes,
        }  # fmt: skip
        kernels = self.trace.track("kernels", rank=1)
        self.trace.slice(
            kernels, found.program.name, self.at(0), self.at(found.total_ns), arguments=arguments
        )
        self._carried()
        for (name, rank), bars in by_track(self.timeline.bars).items():
            for row, of_row in enumerate(rows_of(bars)):
                track = self.trace.track(name, row, rank)
                for bar in of_row:
                    self._bar(track, bar)
        occupancy = found.occupancy()
        for memory, moments in occupancy.items():
            moved = ((self.at(time), held) for time, held in moments)
            self.trace.counter(f"{memory.upper()} held", moved)
        rates = ((self.at(time), rate) for time, rate in _bandwidth(found.bars))
        self.trace.counter("HBM bandwidth", rates)

    def _carried(self) -> None:
        """Periods of loops that are not drawn: where they would be, and what they repeat."""
        bars = self.timeline.bars
        repeats = self.timeline.repeats
        outermost = [
            r for r in repeats
            if not any(o is not r and o[0] <= r[0] and r[1] <= o[1] for o in repeats)
        ]  # fmt: skip
        for first, behind, times, period in outermost:
            begin = max(bar.start_ns + bar.busy_ns for bar in bars[first:behind])
            self.trace.slice(
                self.trace.track("carried forward", rank=2),
                f"{times} x {period / 1e3:.2f} µs not drawn",
                self.at(begin), self.at(begin + times * period),
                arguments={"repeats from": self.at(bars[first].start_ns), "period ns": period},
            )  # fmt: skip

    def _bar(self, track: int, bar: Bar) -> None:
        self.trace.slice(
            track, bar.name or bar.instruction,
            self.at(bar.start_ns), self.at(bar.start_ns + bar.busy_ns),
            arguments=dict(_arguments(bar)) | {
                "result_ts": self.at(profiled_end_ns(bar, self.timeline))
            },
            flows=self.waiters.get(bar.number, ()),
            ends_flows=[self.flows[bar.number]] if bar.number in self.flows else (),
        )  # fmt: skip


def _arguments(bar: Bar) -> Iterator[tuple[str, Any]]:
    """Properties of a micro-op beside its time."""
    yield "instruction", bar.instruction
    yield "micro-op", bar.kind
    if bar.place is not None:
        yield "source", str(bar.place)
    yield "result ns", bar.end_ns
    if bar.waited_for is not None:
        yield "waited for", bar.why
    if bar.hbm_bytes:
        yield "HBM bytes", bar.hbm_bytes
    for name, value in bar.call.given():
        is_access = isinstance(value, Access)
        yield name, f"{value.buffer} {list(value.shape)}" if is_access else _plain(value)


def _plain(value: Any) -> Any:
    return value if type(value) in _FIELD else getattr(value, "name", str(value))


def _bandwidth(bars: Sequence[Bar]) -> Iterator[tuple[float, float]]:
    """HBM bytes per ns (GB/s) over time; a DMA moves its bytes evenly while it is busy."""
    changes: dict[float, float] = {}
    for bar in bars:
        if bar.hbm_bytes and bar.busy_ns:
            rate = bar.hbm_bytes / bar.busy_ns
            end = bar.start_ns + bar.busy_ns
            changes[bar.start_ns] = changes.get(bar.start_ns, 0.0) + rate
            changes[end] = changes.get(end, 0.0) - rate
    times = sorted(changes)
    for time, rate in zip(times, accumulate(changes[t] for t in times), strict=True):
        yield time, max(0.0, round(rate, 6))


class Slice(NamedTuple):
    """A slice: its track, its name, its times, its arguments."""

    track: str
    name: str
    start: int
    end: int
    arguments: dict[str, Any]


def slices(file: Path) -> Iterator[Slice]:
    """Every slice that ends, in the order of their ends. Raises ValueError for another file."""
    trace, names = Trace(), {}
    try:
        trace.ParseFromString(file.read_bytes())
    except Exception:  # protobuf has several classes for it, by its backend
        raise ValueError("it is not a Perfetto trace") from None
    open_slices: dict[int, list[tuple[int, TrackEvent]]] = defaultdict(list)
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            names[packet.track_descriptor.uuid] = packet.track_descriptor.name
        event = packet.track_event
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            open_slices[event.track_uuid].append((packet.timestamp, event))
        elif event.type == TrackEvent.TYPE_SLICE_END and open_slices[event.track_uuid]:
            start, begun = open_slices[event.track_uuid].pop()
            track = names.get(event.track_uuid, "")
            yield Slice(track, begun.name, start, packet.timestamp, _arguments_of(begun))


def _arguments_of(event: Any) -> dict[str, Any]:
    found = {}
    for note in event.debug_annotations:
        field = note.WhichOneof("value")
        found[note.name] = getattr(note, field) if field else None
    return found
