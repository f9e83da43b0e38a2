"""Results of compilations: what each costs by the model, and the file that contains them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from neuroncore.errors import LaunchError
from tokenplan.tile_ir import compiler

SHARED_BYTES, REGISTERS, MOST_RESIDENT, THREADS = 227 * 1024, 65536, 16, 128
"""Of a multiprocessor of sm_90 and sm_100, and of a CTA."""
BARRIER_COST = 50
"""Instructions that a barrier counts as in the model of a result."""


class SweepError(LaunchError):
    """The space or the store of a sweep cannot be used."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a compilation gave, or why it failed."""

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


_COLUMNS = ("key", "seconds", "registers", "shared_bytes", "barriers", "instructions", "remarks",
            "error", "compiler")  # fmt: skip


class Store:
    """Results by key in an SQLite file, with their binaries."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.database = self._do(lambda: sqlite3.connect(path, timeout=30))
        columns = ", ".join(_COLUMNS)
        self._do(lambda: self._execute(
            f"CREATE TABLE IF NOT EXISTS results ({columns}, cubin BLOB, PRIMARY KEY (key))"
        ))  # fmt: skip
        named = self.database.execute("SELECT name FROM pragma_table_info('results')").fetchall()
        for name in {*_COLUMNS} - {name for (name,) in named}:  # of a store of an older release
            self._do(lambda name=name: self._execute(f"ALTER TABLE results ADD {name} DEFAULT ''"))

    def _execute(self, statement: str, values: Sequence[object] = ()) -> sqlite3.Connection:
        with self.database:
            self.database.execute(statement, values)
        return self.database

    def _do(self, action: Callable[[], sqlite3.Connection]) -> sqlite3.Connection:
        try:
            return action()
        except sqlite3.Error as wrong:
            raise SweepError(
                f"the store {self.path} cannot be used: {wrong}",
                hint="name another file with --store, or make room on its disk",
            ) from None

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
