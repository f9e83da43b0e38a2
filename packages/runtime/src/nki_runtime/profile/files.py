"""Captured profiles in files: Parquet tables, JSON, Perfetto traces."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from neuroncore.documents import parse_json, read_utf8, unreadable, wrong_structure
from neuroncore.errors import LaunchError
from neuroncore.timeline import Profile, profile_of

TABLE = "Instruction"
"""The table with one row per instruction; large ones are cut into numbered files."""

_EXPECTED = (
    "a folder with Instruction.parquet, a .parquet file, the .json of the profiler, or a trace"
)


def read_profile(file: Path) -> Profile:
    """The profile of a file or folder.

    Raises LaunchError where it cannot be read, or is not a profile (see `profile_of`).
    """
    reader = _READERS.get("" if file.is_dir() else file.suffix)
    if not file.exists() or reader is None:
        what = "no such file" if not file.exists() else "this is not a profile"
        raise LaunchError(f"--profile {file}: {what}", expected=_EXPECTED)
    try:
        table = reader(file)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as wrong:
        is_ours = isinstance(wrong, (OSError, ValueError))
        reason = unreadable(wrong) if is_ours else wrong_structure(wrong)
        raise LaunchError(
            f"--profile {file} cannot be read: {reason}", expected=_EXPECTED
        ) from None
    if not any(len(values) for values in table.values()):
        raise LaunchError(f"--profile {file} has no instructions", expected=_EXPECTED)
    return profile_of(f"--profile {file}", table)


Table = Mapping[str, Sequence[Any]]


def _folder(folder: Path) -> Table:
    """All files of the Instruction table."""
    files = sorted(folder.glob(f"{TABLE}*.parquet"), key=_number)
    if not files:
        raise ValueError(f"no {TABLE}.parquet in it")
    return _parquet(*files)


def _number(file: Path) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", file.stem)))


def _parquet(*files: Path) -> Table:
    try:
        from pyarrow.parquet import read_table
    except ImportError as absent:
        raise LaunchError(
            f"--profile of Parquet tables needs the profile extra ({absent})",
            hint="pip install 'nki-runtime[profile]', or export the profile as JSON",
        ) from None
    tables = [read_table(file).to_pydict() for file in files]
    return {name: [v for table in tables for v in table[name]] for name in tables[0]}


def _json(file: Path) -> Table:
    """The instructions of the profiler's JSON; of a list of rows, all."""
    found = parse_json(read_utf8(file))
    rows = found if isinstance(found, list) else found["instruction"]
    return _by_column([dict(row) for row in rows])


def _by_column(rows: Sequence[Mapping[str, Any]]) -> Table:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _perfetto(file: Path) -> Table:
    """The slices of a trace, with their arguments; the track is the engine.

    A slice of `--trace` calls its line `source`.
    """
    try:
        from nki_runtime.trace.perfetto import slices
    except ImportError as absent:
        raise LaunchError(
            f"--profile of a trace needs the trace extra ({absent})",
            hint="pip install 'nki-runtime[trace]'",
        ) from None
    rows = [
        {"start_ts": s.start, "end_ts": s.end, "engine": s.track, "opcode": s.name}
        | {name: value for name, value in s.arguments.items() if name in _ARGUMENTS}
        for s in slices(file)
    ]
    return _by_column(list(_with_sources(rows)))


_ARGUMENTS = ("nki_source_location", "bir_debug_info_source_location", "source", "result_ts")


def _with_sources(rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        source = row.pop("source", None)
        yield {"nki_source_location": source, **row}


_READERS: Mapping[str, Callable[[Path], Table]] = {
    "": _folder,
    ".parquet": _parquet,
    ".json": _json,
    ".pftrace": _perfetto,
    ".perfetto-trace": _perfetto,
}
"""By the ending of the file; a folder has none."""
