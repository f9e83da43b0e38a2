"""Results of searches in one SQLite file: latencies by program, schedules that replay, reports.

Writers in several processes take turns; a writer that is killed leaves what it had committed. A
file that is damaged, or that another version has written, is rejected and not touched.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol, Self
from urllib.parse import quote

from nkigym.store.errors import (
    StoreCorruptError,
    StoreError,
    StoreVersionError,
    sqlite_calls,
)

APPLICATION = 0x6E6B6967  # "nkig", in the header of the file
VERSION = 2
WAIT_S = 60.0
"""How long a writer waits for others."""
MAPPED = 1 << 30
"""Bytes of a file that are mapped while it is checked."""

_JOB = "json_extract(report, '$.job')"
"""The job of a sweep whose report a row is."""
_TABLES = (
    """CREATE TABLE roots (
        digest TEXT PRIMARY KEY, program TEXT NOT NULL
    ) WITHOUT ROWID""",
    """CREATE TABLE problems (
        key TEXT PRIMARY KEY, name TEXT NOT NULL, target TEXT NOT NULL, nki TEXT NOT NULL,
        costs TEXT NOT NULL, root TEXT NOT NULL REFERENCES roots (digest)
    ) WITHOUT ROWID""",
    """CREATE TABLE results (
        problem TEXT NOT NULL REFERENCES problems (key), digest TEXT NOT NULL,
        latency_ns REAL NOT NULL, bound_ns REAL NOT NULL,
        root TEXT NOT NULL REFERENCES roots (digest), schedule TEXT NOT NULL,
        PRIMARY KEY (problem, digest)
    ) WITHOUT ROWID""",
    """CREATE TABLE runs (
        number INTEGER PRIMARY KEY, problem TEXT NOT NULL REFERENCES problems (key),
        report TEXT NOT NULL
    )""",
    "CREATE INDEX fastest ON results (problem, latency_ns)",
)
_JOBS = f"CREATE INDEX IF NOT EXISTS jobs ON runs ({_JOB}) WHERE {_JOB} IS NOT NULL"
"""Also of stores that were written without it."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The subject of a search: `key` is its content; `costs` the version of the costs. Kernels
    that need the same orders share a key, also under different names.
    """

    key: str
    name: str
    target: str
    nki: str
    costs: str
    program: str
    """The root, as text; of kernels with one key, the first."""


@dataclass(frozen=True, slots=True)
class Result:
    """A program with its latency: its digest, and the steps as JSON values that lead to it."""

    digest: str
    latency_ns: float
    bound_ns: float
    schedule: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Stored(Result):
    """A result with the text of the program that its schedule begins with."""

    program: str


class Store:
    """An open store; closes as a context."""

    def __init__(self, path: str | Path, create: bool = True) -> None:
        """Opens the file, or makes it where there is none and `create`.

        Raises StoreError where it is absent or cannot be opened, StoreCorruptError and
        StoreVersionError where it is not to be used, StoreBusyError, StoreFullError.
        """
        self.path = Path(path)
        with sqlite_calls(self.path):
            self._made = self._open(create)

    def _open(self, create: bool) -> sqlite3.Connection:
        _check_file(self.path, create)
        mode = "rwc" if create else "ro"
        uri = f"file://{quote(os.fsencode(self.path.absolute()))}?mode={mode}"
        made = sqlite3.connect(uri, uri=True, timeout=WAIT_S, isolation_level=None)
        try:
            if create and self.path.stat().st_size == 0:
                _create(made)
            _examine(made, self.path)
            if create:
                made.execute(_JOBS)
        except BaseException:
            made.close()
            raise
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._made.close()

    # -- writing ----------------------------------------------------------------------------------

    def add(self, problem: Problem, results: Iterable[Result] = ()) -> None:
        """Results of a problem, all or none of them; what is there already stays."""
        root = _digest(problem.program)
        about = (problem.key, problem.name, problem.target, problem.nki, problem.costs, root)
        rows = [
            (problem.key, r.digest, r.latency_ns, r.bound_ns, root, json.dumps(r.schedule))
            for r in results
        ]
        with self._transaction() as made:
            made.execute("INSERT OR IGNORE INTO roots VALUES (?, ?)", (root, problem.program))
            made.execute("INSERT OR IGNORE INTO problems VALUES (?, ?, ?, ?, ?, ?)", about)
            made.executemany("INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?, ?, ?)", rows)

    def add_run(self, problem: Problem, report: Mapping[str, Any]) -> int:
        """Adds the report of a search; of a job of a sweep it replaces the one that is there."""
        row = (problem.key, json.dumps(report))
        with self._transaction() as made:
            made.execute(f"DELETE FROM runs WHERE {_JOB} = ?", (report.get("job"),))
            added = made.execute("INSERT INTO runs (problem, report) VALUES (?, ?)", row)
        assert added.lastrowid is not None
        return added.lastrowid

    def replace_run(self, number: int, report: Mapping[str, Any]) -> None:
        """A report that goes on."""
        with self._transaction() as made:
            made.execute(
                "UPDATE runs SET report = ? WHERE number = ?", (json.dumps(report), number)
            )

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with sqlite_calls(self.path):
            self._made.execute("BEGIN IMMEDIATE")
            try:
                yield self._made
                self._made.execute("COMMIT")
            except BaseException:
                if self._made.in_transaction:
                    self._made.execute("ROLLBACK")
                raise

    # -- reading ----------------------------------------------------------------------------------

    def problems(self) -> list[Problem]:
        """All of them, by name."""
        rows = self._read(
            "SELECT digest, key, name, target, nki, costs, program FROM problems, roots "
            "WHERE roots.digest = problems.root"
        )
        found = [Problem(*row) for digest, *row in rows if self._is_intact(digest, row[-1])]
        return sorted(found, key=lambda p: (p.name, p.key))

    def latencies(self, problem: str) -> dict[str, float]:
        """Digest → latency (ns), of one problem."""
        return dict(self._read("SELECT digest, latency_ns FROM results WHERE problem = ?", problem))

    def best(self, problem: str, number: int = 1) -> list[Stored]:
        """The fastest programs, fastest first; of equals, the shortest schedule."""
        rows = self._read(
            "SELECT results.digest, latency_ns, bound_ns, schedule, program, roots.digest "
            "FROM results, roots "
            "WHERE problem = ? AND roots.digest = results.root "
            "ORDER BY latency_ns, json_array_length(schedule), results.digest LIMIT ?",
            problem, number,
        )  # fmt: skip
        return [
            Stored(digest, latency_ns, bound, tuple(json.loads(schedule)), program)
            for digest, latency_ns, bound, schedule, program, root in rows
            if self._is_intact(root, program)
        ]

    def runs(self, problem: str) -> list[dict[str, Any]]:
        """The reports, oldest first."""
        rows = self._read("SELECT report FROM runs WHERE problem = ? ORDER BY number", problem)
        return [json.loads(report) for (report,) in rows]

    def finished(self) -> dict[str, dict[str, Any]]:
        """The report of every job of a sweep, by the job's key."""
        rows = self._read(
            f"SELECT {_JOB}, report FROM runs WHERE {_JOB} IS NOT NULL ORDER BY number"
        )
        return {job: json.loads(report) for job, report in rows}

    def _is_intact(self, digest: str, program: str) -> bool:
        """True. Raises StoreCorruptError where a text is not the one that was written."""
        if _digest(program) != digest:
            raise StoreCorruptError(
                f"{self.path}: the text of a kernel was changed", expected=digest[:19],
                got=_digest(program)[:19], hint="it is left as it is; name another file",
            )  # fmt: skip
        return True

    def _read(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with sqlite_calls(self.path), closing(self._made.execute(query, values)) as rows:
            return rows.fetchall()


def _check_file(path: Path, create: bool) -> None:
    """Raises StoreError for a file to read that is absent, or one that may not be written."""
    if not create and not path.exists():
        raise StoreError(f"store not found: {path}", hint="`nkigym tune --store` makes it")
    places = path, path.resolve().parent  # SQLite's journal is beside the file, not its link
    if create and path.is_file() and not all(os.access(place, os.W_OK) for place in places):
        raise StoreError(f"{path} may not be written", expected="a file and a folder that may")


def is_store(path: Path) -> bool:
    """Whether a file is one of any version."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        header = file.read(100)
    return header[:15] == b"SQLite format 3" and header[68:72] == APPLICATION.to_bytes(4, "big")


def _digest(program: str) -> str:
    return sha256(program.encode()).hexdigest()


def _create(made: sqlite3.Connection) -> None:
    """The tables, unless another process was faster."""
    made.execute("BEGIN EXCLUSIVE")
    if not _header(made, "application_id"):
        for table in _TABLES:
            made.execute(table)
        made.execute(f"PRAGMA application_id = {APPLICATION}")
        made.execute(f"PRAGMA user_version = {VERSION}")
    made.execute("COMMIT")


def _examine(made: sqlite3.Connection, path: Path) -> None:
    """Raises StoreCorruptError, StoreVersionError."""
    if _header(made, "application_id") != APPLICATION:
        raise StoreCorruptError(
            f"{path} is a database, but not a store of nkigym",
            hint="it is left as it is; name another file",
        )
    version = _header(made, "user_version")
    if version != VERSION:
        raise StoreVersionError(
            f"{path} was written by another version of nkigym", expected=f"version {VERSION}",
            got=f"version {version}", hint="it is left as it is; name another file",
        )  # fmt: skip
    made.execute(f"PRAGMA mmap_size = {MAPPED}")  # a third of the time, for reading all of it
    wrong = [text for (text,) in made.execute("PRAGMA quick_check") if text != "ok"]
    made.execute("PRAGMA mmap_size = 0")
    if wrong:
        raise StoreCorruptError(
            f"{path} is damaged", got=wrong[0], hint="it is left as it is; name another file"
        )


def _header(made: sqlite3.Connection, name: str) -> int:
    return made.execute(f"PRAGMA {name}").fetchone()[0]


# -- a search writes what it finds -----------------------------------------------------------------


AT_ONCE = 32
"""Results of one transaction: what a killed process may lose."""


class ResultSink(Protocol):
    """A receiver of results and reports: a store, or a connection to one."""

    def add(self, problem: Problem, results: Iterable[Result] = ()) -> None: ...

    def add_run(self, problem: Problem, report: Mapping[str, Any]) -> object: ...


@dataclass(slots=True)
class Recorder:
    """Adds results to a store. Where that fails, the search goes on without it; `trouble` says so.

    Ctrl-C between two results loses none of them, for `flush` comes at the end.
    """

    store: ResultSink
    problem: Problem
    trouble: StoreError | None = None
    _waiting: list[Result] = field(default_factory=list)

    def add(self, result: Result) -> None:
        """Sooner or later."""
        self._waiting.append(result)
        if len(self._waiting) >= AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Everything that waits, now."""
        self._keep(lambda: self.store.add(self.problem, self._waiting))
        self._waiting = []

    def close(self, report: dict) -> None:
        """The end of a search."""
        self.flush()
        self._keep(lambda: self.store.add_run(self.problem, report))

    def _keep(self, write: Callable[[], object]) -> None:
        if self.trouble is not None:
            return
        try:
            write()
        except StoreError as trouble:
            self.trouble = trouble
