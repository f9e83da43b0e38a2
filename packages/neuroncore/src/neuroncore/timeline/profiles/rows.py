"""A captured profile as rows: which engine was busy when, for which line of the source.

The columns are listed in profile_columns.json: the profiler's Instruction table, with its source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from itertools import accumulate, pairwise
from math import isfinite, nan
from typing import Any, NamedTuple

from neuroncore.errors import LaunchError
from neuroncore.timeline.model.lanes import DMA

REQUIRED = ("start_ts", "engine", "nki_source_location")
"""Beside them, end_ts or duration_ns."""

_ENGINE = re.compile("tensor|vector|scalar|gpsimd|sync|dma")
_PLACE = re.compile(r"""([^"'\[\],]+?):(\d+)""")
_OWN_LANE = (
    ("tensor", re.compile("LOAD|LDW|WEIGHT"), "load_stationary"),
    ("scalar", re.compile("TABLE"), "table_load"),
)
"""(engine, opcode, name): instructions beside the others of their engine."""

IN_ORDER = ("tensor", "vector", "scalar", "gpsimd")
SORTED = 0.05
"""Rows of an engine that step back in time less often are sorted, and each step is a reset."""
FEW = 8
"""Rows from which one step back is a reset: in random order they have one or none in 0.6 %."""
GAP = 10
"""A pause of so many times all else that was measured is a clock that was set."""


class Executed(NamedTuple):
    """An instruction that a device executed, or (engine "dma") a transfer that one triggered."""

    engine: str
    start_ns: float
    end_ns: float
    places: tuple[tuple[str, int], ...]
    """(file name, line) of the source: several where the compiler merged instructions."""
    hbm_bytes: float | None = None
    """What it reads from HBM and writes there; None where the profile does not say."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile of one launch, with remarks about its file."""

    name: str
    rows: list[Executed]
    notes: list[str]

    @property
    def span_ns(self) -> float:
        """From the first start to the last end."""
        return max(r.end_ns for r in self.rows) - min(r.start_ns for r in self.rows)


@cache
def columns() -> Mapping[str, Any]:
    """profile_columns.json."""
    return json.loads(files("neuroncore").joinpath("profile_columns.json").read_text("utf-8"))


def profile_of(name: str, table: Mapping[str, Sequence[Any]]) -> Profile:
    """The profile of an Instruction table: column → one value per row, None where there is none.

    Raises LaunchError for missing columns, for no row with a source line and for times that
    contradict one another.
    """
    notes: list[str] = []
    known = _known(name, table, notes)
    try:
        rows = [row for values in _records(known) for row in _executed(values)]
    except ValueError as wrong:
        raise LaunchError(f"{name}: {wrong}", hint="export the profile again") from None
    if not rows and any(known.get("pcore_idx", ())):
        raise LaunchError(f"{name} has no rows of core 0", hint="profile a launch on core 0")
    if not any(row.places for row in rows):
        raise LaunchError(
            f"{name}: no instruction names a source line",
            hint="compile the kernel with NKI_DEBUG_INFO=True and capture the profile again",
        )
    _reject_clock_resets(name, rows)
    return Profile(name, rows, [*notes, *_remarks(known, rows)])


def _remarks(known: Mapping[str, Sequence[Any]], rows: Sequence[Executed]) -> Iterator[str]:
    if count := sum(_contradicts(values) for values in _records(known)):
        yield f"{count} rows: duration_ns is not end_ts - start_ts, which counts"
    if without := sum(not row.places for row in rows):
        yield f"{without} of {len(rows)} rows name no source line: they are not compared"


def _known(
    name: str, table: Mapping[str, Sequence[Any]], notes: list[str]
) -> dict[str, Sequence[Any]]:
    """The columns by today's names. Raises LaunchError where one is missing."""
    older, said = columns()["older"], [*columns()["columns"], *columns()["own"]]
    known = {older.get(column, column): values for column, values in table.items()}
    unknown = [column for column in known if column not in said]
    missing = [column for column in REQUIRED if column not in known]
    missing += [] if {"end_ts", "duration_ns"} & set(known) else ["end_ts"]
    if missing:
        raise LaunchError(
            f"{name} has no column {', '.join(missing)}",
            expected="the columns of the profiler's Instruction table",
            got=f"unknown columns {', '.join(unknown)}" if unknown else None,
            hint=_renamed(missing, unknown),
        )
    if unknown:
        notes.append(f"unknown columns, not read: {', '.join(unknown)}")
    return known


def _renamed(missing: Sequence[str], unknown: Sequence[str]) -> str:
    """Which unknown columns the missing ones may be."""
    near = {m: get_close_matches(m, unknown, 1, 0.4) for m in missing}
    pairs = [f"{found[0]} to {m}" for m, found in near.items() if found]
    if pairs:
        return f"rename {', '.join(pairs)}, if that is what they hold"
    return "export the profile again with all columns"


def _records(table: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """The rows; of several cores, the first."""
    names = list(table)
    if len({len(values) for values in table.values()}) > 1:
        raise ValueError("its columns have different numbers of rows")
    for values in zip(*table.values(), strict=True):
        record = dict(zip(names, values, strict=True))
        if not _number(record, "pcore_idx"):
            yield record


def _executed(record: Mapping[str, Any]) -> Iterator[Executed]:
    """The instruction of a row, or the transfer that it triggered."""
    engine = _ENGINE.search(str(record["engine"]).lower())
    start, end = _number(record, "start_ts"), _number(record, "end_ts")
    length = _number(record, "duration_ns")
    if start is None or engine is None or end is length is None:
        return
    end = start + length if end is None and length is not None else end
    assert end is not None
    places = _places(record)
    done = _number(record, "dma_trigger_end_ts")
    lane = DMA if done else _lane(engine[0], str(record.get("opcode", "")))
    until = done or _number(record, "result_ts") or end
    yield Executed(lane, start, until, places, _hbm_bytes(record))


def _hbm_bytes(record: Mapping[str, Any]) -> float | None:
    found = [_number(record, f"hbm_{way}_bytes") for way in ("read", "write")]
    known = [each for each in found if each is not None]
    return sum(known) if known else None


def _contradicts(record: Mapping[str, Any]) -> bool:
    """Whether a row has two lengths, more than 1 % and a ns apart."""
    start, end = _number(record, "start_ts"), _number(record, "end_ts")
    length = _number(record, "duration_ns")
    if start is None or end is None or length is None:
        return False
    return abs(end - start - length) > max(1.0, 0.01 * length)


def _number(record: Mapping[str, Any], column: str) -> float | None:
    """The number of a column, if it has one; digits in a text are one. Raises ValueError.

    Whole numbers stay whole: nanoseconds of an epoch have more digits than a float.
    """
    value = record.get(column)
    if value is None or value == "":
        return None
    try:
        digits = isinstance(value, str) and value.strip().lstrip("-").isdecimal()
        number = int(value) if digits or isinstance(value, int) else float(value)
    except (TypeError, ValueError):
        number = nan
    if not isfinite(number):
        raise ValueError(f"{column} is {value!r} in a row, which is not a number")
    return number


def _lane(engine: str, opcode: str) -> str:
    for of, names, lane in _OWN_LANE:
        if of == engine and names.search(opcode.upper()):
            return lane
    return engine


def _places(record: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    text = record["nki_source_location"] or record.get("bir_debug_info_source_location") or ""
    found = _PLACE.findall(str(text))
    return tuple((re.split(r"[/\\]", file.strip())[-1], int(line)) for file, line in found)


def _reject_clock_resets(name: str, rows: Sequence[Executed]) -> None:
    """Raises LaunchError where the times of a profile cannot be of one clock."""
    for wrong in (_ends_before_start(rows), _steps_back(rows), _pause(rows)):
        if wrong:
            raise LaunchError(
                f"{name}: {wrong}: the clock of the device was set while it was captured",
                hint="capture the profile again",
            )


def _ends_before_start(rows: Sequence[Executed]) -> str:
    count = sum(row.end_ns < row.start_ns for row in rows)
    return f"{count} of {len(rows)} instructions end before they start" if count else ""


def _steps_back(rows: Sequence[Executed]) -> str:
    """Where the rows of an engine are in order of time but for a few steps."""
    for engine in IN_ORDER:
        starts = [row.start_ns for row in rows if row.engine == engine]
        back = sum(before > after for before, after in pairwise(starts))
        if 0 < back <= max(len(starts) >= FEW, SORTED * len(starts)):
            return f"the instructions of {engine} step back in time {back} times"
    return ""


def _pause(rows: Sequence[Executed]) -> str:
    """A time without any instruction that is longer than all others together by far."""
    ordered = sorted(rows, key=lambda row: row.start_ns)
    reached = list(accumulate((row.end_ns for row in ordered), max))
    longest = max(
        (r.start_ns - end for end, r in zip(reached, ordered[1:], strict=False)), default=0
    )
    rest = reached[-1] - ordered[0].start_ns - longest
    return f"nothing happens for {longest / 1e3:.0f} µs in it" if longest > GAP * rest else ""
