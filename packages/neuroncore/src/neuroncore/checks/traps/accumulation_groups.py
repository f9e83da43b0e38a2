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
from neuroncore.machine.observe import Event
from neuroncore.memory import Storage, View
from neuroncore.source_location import Place


@dataclass(slots=True, eq=False)
class _Group:
    """The matmuls into one region: when the first and the last of them ran, and what came since."""

    region: Footprint
    storage: Storage
    started: int
    last: int
    place: Place | None
    read: Place | None = None
    overwritten: Place | None = None


@dataclass(slots=True)
class _Bank:
    """A bank of PSUM: its groups by region, and the one that started last."""

    groups: dict[Footprint, _Group] = field(default_factory=dict)
    latest: _Group | None = None


class AccumulationGroups(Detector):
    """Follows which matmuls start a group and which continue one."""

    def __init__(self, report: Report, undefined: UndefinedResults) -> None:
        super().__init__(report, undefined)
        self._clock = count()
        self._at_addresses: dict[int, _Bank] = {}

    def returned(self, value: Any) -> None:
        self._at_addresses.clear()

    def probe(self, call: Call) -> Probe | None:
        if call.engine is Engine.tensor:
            accumulates = "accumulate" in call.record.attrs and not call.attrs.get("is_transpose")
            mode = call.attrs["accumulate"] if accumulates else False
            return lambda event: self._multiplied(event, mode)
        names = [n for n, s in call.tiles.items() if s.space is MemorySpace.psum]
        outputs = call.record.outputs
        touched = tuple((name, name in outputs) for name in names)
        return (lambda event: self._touched(event, touched)) if touched else None

    def _banks(self, view: View) -> list[_Bank]:
        """The banks that a view of a PSUM tensor reaches."""
        storage, width = view.storage, view.spec.dtype.itemsize
        size = view.core.target.psum_bank_bytes
        row = storage.free_elems * storage.dtype.itemsize
        first = (storage.address[1] if storage.address else 0) + view.offset * width % row
        numbers = range(first // size, (first + view.spec.free_span_bytes - 1) // size + 1)
        if storage.address is not None:
            banks = self._at_addresses
        else:
            assert storage.notes is not None
            banks = storage.notes.setdefault(self, {})
        return [banks.setdefault(number, _Bank()) for number in numbers]

    def _multiplied(self, event: Event, accumulate: bool | None) -> None:
        """A matmul or transposition on TensorE is about to write PSUM."""
        dst, now = event.views["dst"], next(self._clock)
        (region,) = footprint_of(dst)
        for bank in self._banks(dst):
            group = bank.groups.get(region)
            if group is not None and group.storage is not dst.storage:
                group = None
            if accumulate is False or group is None:
                self._started(bank, region, event, now, accumulate)
                continue
            self._continued(bank, group, event, accumulate)
            group.last, group.read = now, None

    def _started(
        self, bank: _Bank, region: Footprint, event: Event, now: int, accumulate: bool | None
    ) -> None:
        storage = event.views["dst"].storage
        group = _Group(region, storage, now, now, event.place)
        bank.groups[region] = bank.latest = group

    def _continued(self, bank: _Bank, group: _Group, event: Event, accumulate: bool | None) -> None:
        other, tensor = bank.latest, label(group.storage)
        if other is not None and other is not group and other.started > group.last:
            self._interleaved(group, other, event)
        if group.overwritten is not None:
            self.undefined.leave(event, event.views["dst"])
            self.found_at(
                event, "HW02", "adds to PSUM that another engine has written", "dst",
                severity=Severity.ERROR if accumulate else Severity.WARNING,
                expected="a first matmul that overwrites (accumulate=False)",
                got=f"{tensor} written at {group.overwritten} after the matmul at {group.place}",
            )  # fmt: skip
        elif group.read is not None and accumulate is None:
            self.found_at(
                event, "HW06", "adds to a result that has been read", "dst",
                severity=Severity.WARNING,
                expected="accumulate=False for a new result, True to continue this one",
                got=f"{tensor} read at {group.read}, accumulate=None",
            )  # fmt: skip

    def _interleaved(self, group: _Group, other: _Group, event: Event) -> None:
        self.undefined.leave(event, event.views["dst"])
        overlaps = other.storage is group.storage and other.region.overlaps(group.region)
        which = "one that overlaps it" if overlaps else "another one"
        self.found_at(
            event, "HW04" if overlaps else "HW01",
            f"adds to an accumulation group after {which} started in its PSUM bank", "dst",
            severity=Severity.WARNING if overlaps else Severity.ERROR,
            expected="the last matmul of a group before the first of the next one",
            got=f"a group of {label(group.storage)} that started at {group.place}; another of "
            f"{label(other.storage)} that started at {other.place}",
        )  # fmt: skip

    def _touched(self, event: Event, touched: tuple[tuple[str, bool], ...]) -> None:
        """Another engine reads or writes PSUM."""
        for name, is_written in touched:
            view = event.views[name]
            for bank in self._banks(view):
                for group in bank.groups.values():
                    if group.storage is view.storage and _shares(group.region, view):
                        if is_written:
                            group.overwritten = event.place
                        else:
                            group.read = event.place


def _shares(region: Footprint, view: View) -> bool:
    return any(region.overlaps(part) for part in footprint_of(view))


DETECTOR = AccumulationGroups
