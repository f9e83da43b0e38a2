"""A sweep over the parameters of a kernel that compiles only what can win.

Candidates are dropped in this order: illegal ones, accesses on a slow path that other candidates
avoid, equal modules, what the store contains already. The rest is compiled, the most promising
first, by several compilers at once until the budget is used; a candidate whose least possible cost
exceeds the best compiled one is dropped. Each result is stored before the next one is taken, so
that a sweep that is killed goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import random
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from itertools import islice, product
from math import prod
from pathlib import Path
from time import monotonic

from neuroncore.errors import LaunchError
from tokenplan.tile_ir import bytecode, compiler
from tokenplan.tile_ir.description import (
    Compute,
    Repeat,
    Statement,
    TileKernel,
    Transfer,
    walk,
)
from tokenplan.tile_ir.emission import emit
from tokenplan.tile_ir.orders import orders_of
from tokenplan.tile_ir.verdicts import has_slow_load

Parameters = Mapping[str, object]
DEFAULT_HINTS = {"allow_tma": True, "occupancy": 1, "num_cta_in_cga": 1}
"""Hints that change nothing."""
SHARED_BYTES, REGISTERS, MOST_RESIDENT, THREADS = 227 * 1024, 65536, 16, 128
"""Of a multiprocessor of sm_90 and sm_100, and of a CTA."""
STEP_COST, MOST_IN_REGISTERS, SPILL_FACTOR = 300, 2**14, 4
"""Of the estimate: instructions of a step beside its tile, elements that registers contain, and how
much more expensive a greater tile is."""
LEAST_INSTRUCTIONS = 8
"""Of any binary: instructions have 16 bytes, and code is padded to 128."""
BARRIER_COST = 50
"""Instructions that a barrier counts as in the model of a result."""


class SweepError(LaunchError):
    """The space or the store of a sweep cannot be used."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A kernel for one choice of the parameters."""

    parameters: Parameters
    data: bytes = field(repr=False)
    key: str
    steps: int
    """Loads and stores that all instances execute."""
    promise: float
    """The estimate by which candidates are ordered before they are compiled: the least first."""
    is_slow: bool

    @property
    def bound(self) -> float:
        """No result of this candidate costs less: the smallest binary, as often as resident."""
        return self.steps * LEAST_INSTRUCTIONS / MOST_RESIDENT


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


@dataclass
class Funnel:
    """How many candidates each stage took."""

    candidates: int = 0
    illegal: int = 0
    slow_path: int = 0
    duplicate: int = 0
    cached: int = 0
    bounded: int = 0
    """Not compiled, since their bound is above the best result."""
    compiled: int = 0
    failed: int = 0
    not_evaluated: int = 0
    seconds: float = 0.0
    """Of compilations that were made."""
    seconds_saved: float = 0.0
    """Of compilations that duplicates, bounds and the store made unnecessary."""

    def text(self) -> str:
        """One line: each stage with its count."""
        return (
            f"{self.candidates} candidates -> {self.illegal} illegal -> {self.slow_path} slow path "
            f"-> {self.duplicate} duplicate -> {self.cached} cached -> {self.bounded} above the "
            f"bound -> {self.compiled} compiled -> {self.failed} failed -> {self.not_evaluated} "
            f"not evaluated; {self.seconds:.1f} s compiled, {self.seconds_saved:.1f} s saved"
        )


@dataclass(frozen=True, slots=True)
class Sweep:
    """The results of candidates in the order in which they were evaluated, and the funnel."""

    evaluated: tuple[tuple[Candidate, Result], ...]
    funnel: Funnel

    def best(self) -> tuple[Candidate, Result]:
        """The candidate of the least cost; SweepError where nothing compiled."""
        found = [pair for pair in self.evaluated if not pair[1].error]
        if not found:
            raise SweepError("no candidate was compiled")
        return min(found, key=lambda pair: pair[1].cost(pair[0].steps))

    def curve(self) -> list[float]:
        """The least cost after each evaluation."""
        least, found = float("inf"), []
        for candidate, result in self.evaluated:
            least = min(least, result.cost(candidate.steps))
            found.append(least)
        return found


# -- candidates ------------------------------------------------------------------------------------


def canonical_key(module: bytecode.Module, target: str, version: str) -> str:
    """The SHA-256 of what decides the code: no names, no lines, no hints that are defaults."""
    functions = tuple(
        bytecode.Function(f"k{n}", _stripped(f.body), _hints(f.hints), f.is_kernel)
        for n, f in enumerate(module.functions)
    )
    data = bytecode.write(bytecode.Module(functions, module.version))
    return hashlib.sha256(f"{target} {version} ".encode() + data).hexdigest()


def _stripped(block: bytecode.Block) -> bytecode.Block:
    operations = []
    for op in block.operations:
        attributes = dict(op.attributes)
        if "hints" in attributes:
            attributes["hints"] = _hints(attributes["hints"])
            if not attributes["hints"]:
                del attributes["hints"]
        regions = tuple(map(_stripped, op.regions))
        operations.append(replace(op, attributes=attributes, regions=regions, place=None))
    return bytecode.Block(block.arguments, tuple(operations))


def _hints(hints: Mapping[str, Mapping[str, int | bool]]) -> dict[str, dict[str, int | bool]]:
    kept = {arch: {n: v for n, v in given.items() if DEFAULT_HINTS.get(n) != v}
            for arch, given in hints.items()}  # fmt: skip
    return {arch: given for arch, given in kept.items() if given}


def candidate(make: Callable[..., TileKernel], parameters: Parameters, target: str) -> Candidate:
    """The candidate; raises LaunchError, ValueError or AssertionError for an illegal choice."""
    described = make(**parameters).described()
    orders = orders_of(described, target=target)
    module = emit(described, orders.kernel, orders.kept, target=target)
    key = canonical_key(module, target, compiler.version())
    instances = prod(size for _, size in described.grid)
    slow = has_slow_load(described, target)
    steps = instances * _steps(described.body)
    tiles = [prod(n.result.shape) for n in walk(described.body) if isinstance(n, Compute)]
    per_step = _promise(max(tiles, default=0))
    return Candidate(parameters, bytecode.write(module), key, steps, steps * per_step, slow)


def _promise(elements: int) -> float:
    """Instructions of a step, estimated from its largest computed tile."""
    return STEP_COST + elements / 64 * (SPILL_FACTOR if elements > MOST_IN_REGISTERS else 1)


def _steps(body: Sequence[Statement]) -> int:
    return sum(
        node.trips * _steps(node.body) if isinstance(node, Repeat) else isinstance(node, Transfer)
        for node in body
    )


def candidates(
    make: Callable[..., TileKernel],
    space: Mapping[str, Sequence[object]],
    target: str,
    funnel: Funnel,
) -> Iterator[Candidate]:
    """Every legal choice of the space, in its order."""
    for values in product(*space.values()):
        funnel.candidates += 1
        try:
            yield candidate(make, dict(zip(space, values, strict=True)), target)
        except (LaunchError, ValueError, AssertionError):
            funnel.illegal += 1


# -- the store -------------------------------------------------------------------------------------

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


def compiled(found: Candidate, target: str, limit: float) -> tuple[Result, bytes]:
    """The result of one compilation; a failure is a result, too."""
    began, version = monotonic(), compiler.version()
    try:
        made = compiler.compile_bytecode(found.data, target, seconds=limit)
        counts = compiler.statistics(made.cubin)
    except compiler.CompilerError as wrong:
        failed = Result(found.key, monotonic() - began, error=str(wrong), compiler=version)
        return failed, b""
    of_operations = compiler.by_operation(bytecode.read(found.data), made.remarks)
    remarks = tuple(f"{op} {number}: {r.name}: {r.text}" for op, number, r in of_operations)
    return Result(
        found.key, made.seconds, counts.registers, counts.shared_bytes, counts.barriers,
        counts.total, remarks, compiler=version,
    ), made.cubin  # fmt: skip


# -- the sweep -------------------------------------------------------------------------------------

ORDERINGS: dict[str, Callable[[list[Candidate]], list[Candidate]]] = {
    "model": lambda found: sorted(found, key=lambda c: c.promise),
    "random": lambda found: random.Random(0).sample(found, len(found)),
    "exhaustive": list,
}
"""In which order candidates are compiled: the most promising first, any, or as enumerated."""


def sweep(
    make: Callable[..., TileKernel],
    space: Mapping[str, Sequence[object]],
    store: Store,
    target: str = "sm_90",
    budget: float = 600.0,
    limit: float = compiler.TIME_LIMIT,
    jobs: int = 2,
    ordering: str = "model",
    most: int | None = None,
) -> Sweep:
    """Evaluates the space.

    budget: seconds after which nothing new is compiled. limit: seconds of one compilation. most:
    compilations, at most.
    """
    funnel = Funnel()
    different: dict[str, Candidate] = {}
    legal = list(candidates(make, space, target, funnel))
    fast = [found for found in legal if not found.is_slow] or legal
    funnel.slow_path = len(legal) - len(fast)
    for found in fast:
        different.setdefault(found.key, found)
    funnel.duplicate = len(fast) - len(different)
    ready = ORDERINGS[ordering](list(different.values()))
    results = list(_evaluated(ready, store, target, budget, limit, jobs, most, funnel))
    mean = sum(r.seconds for _, r in results) / max(1, len(results))
    funnel.seconds_saved += mean * (funnel.duplicate + funnel.bounded)
    return Sweep(tuple(results), funnel)


def _evaluated(
    ready: Sequence[Candidate],
    store: Store,
    target: str,
    budget: float,
    limit: float,
    jobs: int,
    most: int | None,
    funnel: Funnel,
) -> Iterator[tuple[Candidate, Result]]:
    ends = monotonic() + budget
    waiting: list[Candidate] = []
    best = float("inf")
    for found in ready:
        known = store.find(found.key)
        if known is None:
            waiting.append(found)
            continue
        funnel.cached += 1
        funnel.seconds_saved += known.seconds
        best = min(best, known.cost(found.steps))
        yield found, known

    def is_possible(found: Candidate) -> bool:
        funnel.bounded += found.bound > best
        return found.bound <= best

    queue = islice(filter(is_possible, waiting), most)
    running: dict[Future[tuple[Result, bytes]], Candidate] = {}
    with ThreadPoolExecutor(jobs) as pool:
        while True:
            while len(running) < jobs and monotonic() < ends and (found := next(queue, None)):
                running[pool.submit(compiled, found, target, limit)] = found
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                found, (result, cubin) = running.pop(future), future.result()
                store.add(result, cubin)
                best = min(best, result.cost(found.steps))
                funnel.compiled += not result.error
                funnel.failed += bool(result.error)
                funnel.seconds += result.seconds
                yield found, result
    funnel.not_evaluated = len(waiting) - funnel.compiled - funnel.failed - funnel.bounded
