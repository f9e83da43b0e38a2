"""A sweep over the parameters of a kernel that compiles only what can win.

Candidates are dropped in this order: illegal ones, accesses on a slow path that other candidates
avoid, equal modules, what the store contains already. The rest is compiled, the most promising
first, by several compilers at once until the budget is used. Each result is stored before the next
one is taken, so that a sweep that is killed goes on where it was.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import inf
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from tokenplan.executors import (
    Event,
    Executor,
    Failed,
    Finished,
    InProcess,
    Job,
    Report,
    WorkerLost,
)
from tokenplan.tile_ir import bytecode, compiler
from tokenplan.tile_ir.candidates import ORDERINGS, Candidate, candidates
from tokenplan.tile_ir.kernel_builder import TileKernel
from tokenplan.tile_ir.results import Funnel, Result, Store, SweepError


@dataclass(frozen=True, slots=True)
class Sweep:
    """The results of candidates in the order in which they were evaluated, and the funnel."""

    evaluated: tuple[tuple[Candidate, Result], ...]
    funnel: Funnel

    def best(self) -> tuple[Candidate, Result]:
        """The candidate of the least cost; SweepError where nothing compiled."""
        found = [pair for pair in self.evaluated if not pair[1].error]
        if not found:
            raise SweepError(
                "no candidate was compiled", got="; ".join(self.funnel.reasons) or None
            )
        return min(found, key=lambda pair: pair[1].cost(pair[0].steps))

    def curve(self) -> list[tuple[float, float]]:
        """After each evaluation: the seconds of compilation so far, and the least cost."""
        seconds = accumulate(result.seconds for _, result in self.evaluated)
        costs = accumulate((result.cost(made.steps) for made, result in self.evaluated), min)
        return list(zip(seconds, costs, strict=True))


# -- the job ---------------------------------------------------------------------------------------

PRELOAD = __name__
"""The module that workers import before their first job."""


class Compilation(NamedTuple):
    """A job: bytecode, the limit of the compiler in seconds, and where its temporary files are."""

    key: str
    data: bytes
    target: str
    limit: float
    folder: Path


def compiled(job: Compilation, report: Report) -> tuple[Result, bytes]:
    """The result and the binary of one compilation; a rejection is a result, too.

    Raises CompilerError for what another compilation may not have: a limit, a crash, a full disk.
    """
    began, version = monotonic(), compiler.version()
    parent = job.folder if job.folder.is_dir() else None  # another machine's disk
    try:
        made = compiler.compile_bytecode(job.data, job.target, seconds=job.limit, parent=parent)
        counts = compiler.statistics(made.cubin, parent)
    except compiler.RejectionError as wrong:
        failed = Result(job.key, monotonic() - began, error=str(wrong), compiler=version)
        return failed, b""
    of_operations = compiler.by_operation(bytecode.read(job.data), made.remarks)
    remarks = tuple(f"{op} {number}: {r.name}: {r.text}" for op, number, r in of_operations)
    return Result(
        job.key, made.seconds, counts.registers, counts.shared_bytes, counts.barriers,
        counts.total, remarks, compiler=version,
    ), made.cubin  # fmt: skip


def _first_lines(error: str) -> str:
    """What failed, and the first line of the compiler's message."""
    what, *more = error.splitlines() or [""]
    message = more[0].partition("got:")[2].strip() if more else ""
    return f"{what}: {message}" if message else what


# -- the sweep -------------------------------------------------------------------------------------


def sweep(
    make: Callable[..., TileKernel],
    space: Mapping[str, Sequence[object]],
    store: Store,
    executor: Executor | None = None,
    target: str = "sm_90",
    budget: float = 600.0,
    limit: float = compiler.TIME_LIMIT,
    ordering: str = "model",
    most: int | None = None,
) -> Sweep:
    """Evaluates the space.

    executor: where compilers run; default: in this process. budget: seconds after which nothing new
    is compiled. limit: seconds of one compilation. most: compilations, at most.
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
    cached = [(found, known) for found in ready if (known := store.find(found.key))]
    funnel.cached = len(cached)
    known_keys = {known.key for _, known in cached}
    rest = deque(found for found in ready if found.key not in known_keys)
    ends = monotonic() + budget

    def job_of(found: Candidate) -> Compilation:
        seconds = min(limit, max(0.1, ends - monotonic()))
        return Compilation(found.key, found.data, target, seconds, folder)

    with store.temporary_folder() as folder:
        run = _Compilations(rest, executor or InProcess(), store, funnel, cached,
                            job_of, ends, inf if most is None else most)  # fmt: skip
        run.run()
    seconds = {found.key: result.seconds for found, result in run.evaluated}
    funnel.seconds_saved = sum(seconds.get(f.key, 0) for f in fast) - sum(
        s for key, s in seconds.items() if key not in known_keys
    )
    return Sweep(tuple(run.evaluated), funnel)


@dataclass(slots=True)
class _Compilations:
    """Compiles candidates, several at once; evaluates what one compiler alone would, in its order.

    Results that come early wait for the ones before them.
    """

    rest: deque[Candidate]
    executor: Executor
    store: Store
    funnel: Funnel
    evaluated: list[tuple[Candidate, Result]]
    job_of: Callable[[Candidate], Compilation]
    ends: float
    most: float
    pending: deque[Candidate] = field(default_factory=deque)
    """The next ones to evaluate, in order."""
    running: set[str] = field(default_factory=set)
    results: dict[str, Result] = field(default_factory=dict)

    def run(self) -> None:
        """Returns once every candidate is evaluated or behind a limit."""
        if self.rest:
            self.executor.jobs = min(self.executor.jobs, len(self.rest))
            with self.executor:
                self._submit()
                self.executor.run(self)
        self._decide()
        self.funnel.not_evaluated = len(self.pending) + len(self.rest)

    def __call__(self, event: Event) -> None:
        """Stores the result of a job and submits the next."""
        match event:
            case Finished(_, (result, cubin)):
                self.store.add(result, cubin)
                self._take(result)
            case Failed(key, kind, what, _, _, seconds):  # of the machine: not stored
                self._take(Result(key, seconds, error=f"{kind}: {what}"))
            case WorkerLost(_, what, worker):
                self.funnel.lost.append(f"{worker}: {what}")

    def _take(self, result: Result) -> None:
        self.running.remove(result.key)
        self.results[result.key] = result
        self.funnel.seconds += result.seconds
        self._decide()
        self._submit()

    def _decide(self) -> None:
        while self.pending and self.most and self.pending[0].key in self.results:
            found = self.pending.popleft()
            self._evaluate(found, self.results[found.key])

    def _evaluate(self, found: Candidate, result: Result) -> None:
        self.evaluated.append((found, result))
        self.funnel.compiled += not result.error
        self.funnel.failed += bool(result.error)
        if result.error:
            self.funnel.note("failed", f"{found.shown}: {_first_lines(result.error)}")
        self.most -= 1

    def _submit(self) -> None:
        while self.rest and self._has_room() and monotonic() < self.ends:
            found = self.rest.popleft()
            self.pending.append(found)
            self.running.add(found.key)
            job = self.job_of(found)
            self.executor.submit(Job(found.key, f"{__name__}:{compiled.__name__}", job))

    def _has_room(self) -> bool:
        return len(self.running) < self.executor.jobs and len(self.pending) < self.most
