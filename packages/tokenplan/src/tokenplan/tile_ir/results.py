"""Results of compilations: what each costs by the model, and the file that contains them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

from neuroncore.errors import LaunchError
from tokenplan.tile_ir import compiler

SHARED_BYTES, REGISTERS, MOST_RESIDENT, THREADS = 227 * 1024, 65536, 16, 128
"""Of a multiprocessor of sm_90 and sm_100, and of a CTA."""
BARRIER_COST = 50
"""Instructions that a barrier counts as in the model of a result."""


class SweepError(LaunchError):
    """The space or the store of a sweep cannot be used."""


class FunctionError(LaunchError):
    """The function of the kernel fails for a choice of parameters."""

    def __init__(self, what: str, *, expected: str | None = None, got: str | None = None) -> None:
        super().__init__(what, expected=expected, got=got)
        self.place = None


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a compilation, or why it failed."""

    key: str
    seconds: float
    registers: int = 0
    shared_bytes: int = 0
    barriers: int = 0
    instructions: int = 0
    remarks: tuple[str, ...] = ()
    error: str = ""
    compiler: str = ""
    """The version of tileiras, which is part of the key."""

    def cost(self, steps: int) -> float:
        """The model: instructions and barriers of all steps, shared by what fits in beside it."""
        if self.error:
            return float("inf")
        by_registers = REGISTERS // max(1, self.registers * THREADS)
        by_memory = SHARED_BYTES // max(1, self.shared_bytes)
        resident = max(1, min(by_registers, by_memory, MOST_RESIDENT))
        return steps * (self.instructions + BARRIER_COST * self.barriers) / resident


@dataclass
class Funnel:
    """How many candidates each stage took."""

    candidates: int = 0
    illegal: int = 0
    slow_path: int = 0
    duplicate: int = 0
    cached: int = 0
    compiled: int = 0
    failed: int = 0
    not_evaluated: int = 0
    seconds: float = 0.0
    """Of compilations that were made."""
    seconds_saved: float = 0.0
    """Of compilations that duplicates and the store made unnecessary, as measured."""
    lost: list[str] = field(default_factory=list)
    """Why workers were lost."""
    reasons: dict[str, int] = field(default_factory=dict)
    """Why candidates are illegal or failed, what of them is ignored, and how many."""

    def note(self, stage: str, reason: object) -> None:
        """Counts a reason."""
        lines = str(reason).splitlines() or [type(reason).__name__]
        text = f"{stage}: {lines[0]}"
        self.reasons[text] = self.reasons.get(text, 0) + 1

    def text(self) -> str:
        """One line: each stage with its count."""
        return (
            f"{self.candidates} candidates -> {self.illegal} illegal -> {self.slow_path} slow path "
            f"-> {self.duplicate} duplicate -> {self.cached} cached -> {self.compiled} compiled "
            f"-> {self.failed} failed -> {self.not_evaluated} not evaluated; {self.seconds:.1f} s "
            f"compiled, {self.seconds_saved:.1f} s saved"
        )


_COLUMNS = ("key", "seconds", "registers", "shared_bytes", "barriers", "instructions", "remarks",
            "error", "compiler")  # fmt: skip


_LOCK = "lock"
"""The file of a temporary folder that is locked as long as its run lasts."""


class Store:
    """Results by key in an SQLite file, with their binaries."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    @cached_property
    def database(self) -> sqlite3.Connection:
        """The file, which the first use makes."""
        return self._do(self._opened)

    def _opened(self) -> sqlite3.Connection:
        columns = ", ".join(_COLUMNS)
        with sqlite3.connect(self.path, timeout=30) as database:
            database.execute(
                f"CREATE TABLE IF NOT EXISTS results ({columns}, cubin BLOB, PRIMARY KEY (key))"
            )
            named = database.execute("SELECT name FROM pragma_table_info('results')").fetchall()
            for name in {*_COLUMNS} - {name for (name,) in named}:  # an older release's store
                database.execute(f"ALTER TABLE results ADD {name} DEFAULT ''")
        return database

    def _execute(self, statement: str, values: Sequence[object] = ()) -> sqlite3.Connection:
        with self.database:
            self.database.execute(statement, values)
        return self.database

    def _do(self, action: Callable[[], sqlite3.Connection]) -> sqlite3.Connection:
        try:
            return action()
        except sqlite3.Error as wrong:
            raise SweepError(
                f"the store {self.path} {_reason(wrong)}",
                hint="name another file with --store, or make room on its disk",
            ) from None

    @contextmanager
    def temporary_folder(self) -> Iterator[Path]:
        """A folder beside the store; folders of runs that were killed are removed."""
        import fcntl

        parent, prefix = self.path.resolve().parent, f".{self.path.name}-"
        for lock in parent.glob(f"{prefix}*/{_LOCK}"):
            with suppress(OSError), lock.open() as file:  # locked by a run that has not ended
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                rmtree(lock.parent)
        with TemporaryDirectory(prefix=prefix, dir=parent) as name:
            new = Path(name) / "new"  # other runs find the file once it is locked
            with new.open("w") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                new.rename(new.with_name(_LOCK))
                yield Path(name)

    def find(self, key: str) -> Result | None:
        """The stored result."""
        query = f"SELECT {', '.join(_COLUMNS)} FROM results WHERE key = ?"
        row = self.database.execute(query, (key,)).fetchone()
        if row is None:
            return None
        found = dict(zip(_COLUMNS, row, strict=True))
        of_key = found["compiler"] or compiler.version()  # the key has the version
        remarks = tuple(json.loads(found["remarks"]))
        return Result(**found | {"remarks": remarks, "compiler": of_key})

    def versions(self) -> dict[str, int]:
        """How many results each compiler version has; "" is a version that was not recorded."""
        query = "SELECT compiler, count(*) FROM results GROUP BY compiler ORDER BY compiler"
        return dict(self.database.execute(query).fetchall())

    def add(self, result: Result, cubin: bytes) -> None:
        """Stores a result at once."""
        row = [getattr(result, name) for name in _COLUMNS]
        row[_COLUMNS.index("remarks")] = json.dumps(result.remarks)
        columns, marks = ", ".join((*_COLUMNS, "cubin")), ", ".join("?" * (len(row) + 1))
        statement = f"INSERT OR REPLACE INTO results ({columns}) VALUES ({marks})"
        self._do(lambda: self._execute(statement, (*row, cubin)))


_REASONS = {
    sqlite3.SQLITE_FULL: "has no room for more",
    sqlite3.SQLITE_BUSY: "is being written by another process",
    sqlite3.SQLITE_LOCKED: "is being written by another process",
    sqlite3.SQLITE_NOTADB: "is damaged or not a store",
    sqlite3.SQLITE_CORRUPT: "is damaged or not a store",
    sqlite3.SQLITE_READONLY: "can only be read",
}


def _reason(wrong: sqlite3.Error) -> str:
    """What an error of SQLite, whose extended codes have the primary one in their last byte, is."""
    code = getattr(wrong, "sqlite_errorcode", 0) & 0xFF
    return _REASONS.get(code, "cannot be opened, read or written")
