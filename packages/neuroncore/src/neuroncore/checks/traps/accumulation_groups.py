"""HW01, HW02, HW04, HW06: accumulation groups in PSUM.

A group is what matmuls add up in one region of PSUM, from the one that overwrites to the last that
adds. It is open until then. Another group that starts in its bank meanwhile, or an engine that
reads or writes the region, is a trap. A bank is 2 KiB per partition; a tensor at an address shares
its banks with others, a tensor without one has banks of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any

from neuroncore.checks.report import Report
from neuroncore.checks.tensor_labels import label
from neuroncore.checks.traps.detector import Detector, Probe
from neuroncore.checks.traps.undefined_results import UndefinedResults
from neuroncore.effects import Footprint
from neuroncore.enums import Engine, MemorySpace
from neuroncore.findings import Severity
from neuroncore.instructions import Call
from neuroncore.machine.accesses import footprint_of
from neuroncore.machine.launch import RUNNING
from neuroncore.machine.observe import Event
from neuroncore.memory import Storage, View, is_whole
from neuroncore.source_location import Place
from neuroncore.spec import Spec

_Key = tuple[object, ...]


def _key(spec: Spec) -> _Key:
    """Equal for views of a storage that name the same elements of a bank."""
    return spec.start, spec.bank_offset, spec.shape, spec.strides, spec.indirect


def _program() -> tuple[int, ...]:
    launch = RUNNING.get()
    return () if launch is None else launch.program


def _partitions(spec: Spec) -> tuple[int, int]:
    return spec.start, spec.start + spec.shape[0]


@dataclass(slots=True, eq=False)
class _Tensor:
    """A PSUM tensor: what findings call it, and its banks. It does not keep the elements."""

    name: str
    place: Place | None
    banks: list[_Bank]


@dataclass(slots=True, eq=False)
class _Group:
    """The matmuls into one region: when the first and the last of them ran, and what came since."""

    tensor: _Tensor
    footprints: tuple[Footprint, ...]
    partitions: tuple[int, int]
    started: int
    last: int
    place: Place | None
    read: Place | None = None
    overwritten: Place | None = None

    def overlaps(self, tensor: _Tensor, view: View) -> bool:
        """Whether a view of a tensor shares elements with the region."""
        if tensor is not self.tensor:
            return False
        return any(own.overlaps(part) for part in footprint_of(view) for own in self.footprints)


@dataclass(slots=True)
class _Bank:
    """A bank of PSUM: its groups by tensor and region, and the last that started on each range of
    partitions: tiles of columns (tile_position) fill partitions of one bank at the same time.
    """

    groups: dict[_Tensor, dict[_Key, _Group]] = field(default_factory=dict)
    latest: dict[tuple[int, int], _Group] = field(default_factory=dict)


class AccumulationGroups(Detector):
    """Follows which matmuls start a group and which continue one."""

    def __init__(self, report: Report, undefined: UndefinedResults) -> None:
        super().__init__(report, undefined)
        self._clock = count()
        self._at_addresses: dict[tuple[int, ...], dict[int, _Bank]] = {}
        """The banks of each running program, which has a core of its own."""

    def returned(self, value: Any) -> None:
        self._at_addresses.pop(_program(), None)

    def probe(self, call: Call) -> Probe | None:
        if call.engine is Engine.tensor:
            accumulates = "accumulate" in call.record.attrs and not call.attrs.get("is_transpose")
            mode = call.attrs["accumulate"] if accumulates else False
            if call.dst.indirect is not None:
                return None  # at an offset of the device
            key, partitions = _key(call.dst), _partitions(call.dst)
            return lambda event: self._multiplied(event, mode, key, partitions)
        names = [n for n, s in call.tiles.items() if s.space is MemorySpace.psum]
        outputs = call.record.outputs
        touched = tuple((n, n in outputs, _key(call.tiles[n])) for n in names)
        return (lambda event: self._touched(event, touched)) if touched else None

    def _reached(self, view: View) -> tuple[_Tensor, list[_Bank]]:
        """The PSUM tensor of a view, and the banks that the view reaches."""
        storage = view.storage
        assert storage.notes is not None
        tensor = storage.notes.get(self)
        if tensor is None:
            banks = self._banks_of(storage, view.core.target.psum_bank_bytes)
            tensor = storage.notes[self] = _Tensor(storage.name, storage.place, banks)
        if len(tensor.banks) == 1:
            return tensor, tensor.banks
        size = view.core.target.psum_bank_bytes
        begin = view.offset * view.array.itemsize % (storage.flat.nbytes // storage.shape[0])
        end = begin + view.spec.free_span_bytes
        return tensor, tensor.banks[begin // size : (end - 1) // size + 1]

    def _banks_of(self, storage: Storage, size: int) -> list[_Bank]:
        """All banks of a tensor, which are its own where the compiler chooses its place."""
        number = max(1, -(-storage.flat.nbytes // (size * storage.shape[0])))
        if storage.address is None:
            return [_Bank() for _ in range(number)]
        banks = self._at_addresses.setdefault(_program(), {})
        first = storage.address[1] // size
        return [banks.setdefault(i, _Bank()) for i in range(first, first + number)]

    def _multiplied(
        self, event: Event, accumulate: bool | None, key: _Key, partitions: tuple[int, int]
    ) -> None:
        """A matmul or transposition on TensorE is about to write PSUM."""
        dst, now = event.views["dst"], next(self._clock)
        tensor, banks = self._reached(dst)
        for bank in banks:
            groups = bank.groups.get(tensor)
            if groups is None:
                groups = bank.groups[tensor] = {}
            group = groups.get(key)
            if accumulate is False or group is None:
                group = _Group(tensor, footprint_of(dst), partitions, now, now, event.place)
                groups[key] = bank.latest[partitions] = group
                continue
            self._continued(bank, group, event, accumulate)
            group.last, group.read = now, None

    def _continued(self, bank: _Bank, group: _Group, event: Event, accumulate: bool | None) -> None:
        first, end = group.partitions
        for (start, stop), other in bank.latest.items():
            if other.started > group.last and start < end and first < stop:
                self._interleaved(group, other, event)
        if group.overwritten is not None:
            self.undefined.leave(event, event.views["dst"])
            self.found_at(
                event, "HW02", "adds to PSUM that another engine has written", "dst",
                severity=Severity.ERROR if accumulate else Severity.WARNING,
                expected="a first matmul that overwrites (accumulate=False)",
                got=f"{label(group.tensor)} written at {group.overwritten} after the "
                f"matmul at {group.place}",
            )  # fmt: skip
        elif group.read is not None and accumulate is None:
            self.found_at(
                event, "HW06", "adds to a result that has been read", "dst",
                severity=Severity.WARNING,
                expected="accumulate=False for a new result, True to continue this one",
                got=f"{label(group.tensor)} read at {group.read}, accumulate=None",
            )  # fmt: skip

    def _interleaved(self, group: _Group, other: _Group, event: Event) -> None:
        policy = event.call.options.interleaved_groups
        if policy == "ignore":
            return
        self.undefined.leave(event, event.views["dst"])
        overlaps = other.overlaps(group.tensor, event.views["dst"])
        which = "one that overlaps it" if overlaps else "another one"
        self.found_at(
            event, "HW04" if overlaps else "HW01",
            f"adds to an accumulation group after {which} started in its PSUM bank", "dst",
            severity=Severity.WARNING if overlaps or policy == "warn" else Severity.ERROR,
            expected="the last matmul of a group before the first of the next one",
            got=f"a group of {label(group.tensor)} that started at {group.place}; another of "
            f"{label(other.tensor)} that started at {other.place}",
        )  # fmt: skip

    def _touched(self, event: Event, touched: tuple[tuple[str, bool, _Key], ...]) -> None:
        """Another engine reads or writes PSUM."""
        for name, is_written, key in touched:
            view = event.views[name]
            tensor, banks = self._reached(view)
            for bank in banks:
                groups = bank.groups.get(tensor, {})
                own = groups.get(key)
                known = (own,) if own is not None else groups.values()
                for group in known:
                    if group is own or is_whole(view) or group.overlaps(tensor, view):
                        _touch(group, is_written, event.place)


def _touch(group: _Group, is_written: bool, place: Place | None) -> None:
    if is_written:
        group.overwritten = place
    else:
        group.read = place


DETECTOR = AccumulationGroups
