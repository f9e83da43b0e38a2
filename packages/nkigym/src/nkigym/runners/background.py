"""Cases that are measured in other processes while this one goes on."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import NamedTuple, Protocol, Self

from neuroncore.program import Program
from nkigym.runners.protocol import Case, Measurement, case_of
from nkigym.runners.recording import Recording
from nkigym.store import Problem, Store, StoreError
from tokenplan.executors import Failed, Finished
from tokenplan.executors.workers import WorkerExecutor

POLL_S = 0.02
"""How long each pool waits for messages in its turn."""
STEP_S = 0.05
"""How often a search receives results."""
NEWEST = 4
"""So many candidates wait at most: each is better than the ones before."""

Watch = Callable[[Measurement], None]
Span = tuple[float, float]
"""Its beginning and its end, in seconds."""


class Run:
    """Measurements by pools of processes, whose context it is; a subclass submits their jobs."""

    def __init__(self, watch: Watch, *pools: WorkerExecutor) -> None:
        self.watch, self.pools, self._opened = watch, pools, ExitStack()
        self.cases: dict[str, Case] = {}
        self.spent_s: dict[str, float] = {}
        self._worked, self._waited = list[Span](), list[Span]()

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            for pool in self.pools:
                opened.enter_context(pool)
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    @property
    def has_jobs(self) -> bool:
        """Whether a case is not measured yet."""
        return any(pool.has_jobs for pool in self.pools)

    @property
    def hidden_s(self) -> float:
        """Seconds of compilation, or execution here, that nothing has waited for."""
        return max(0.0, sum(self.spent_s.values()) - _shared_s(self._worked, self._waited))

    def has_spent(self, event: Finished | Failed) -> None:
        """A compilation, or an execution here, has ended now."""
        now = time.monotonic()
        self.spent_s[event.key] = event.seconds
        self._worked.append((now - event.seconds, now))

    def submit(self, case: Case) -> None:
        """Measure it after the ones before."""
        raise NotImplementedError

    def step(self, wait_s: float) -> None:
        """Handle what has come, or comes in `wait_s` seconds for each pool."""
        raise NotImplementedError

    def finish(self) -> None:
        """Wait for every case."""
        first, *others = self.pools
        now = time.monotonic()
        while self.has_jobs:
            is_hidden = not first.num_running or any(pool.num_running for pool in others)
            began = now
            self.step(POLL_S)
            now = time.monotonic()
            if not is_hidden:
                continues = self._waited and self._waited[-1][1] == began
                self._waited.append((self._waited.pop()[0] if continues else began, now))


def _shared_s(some: Sequence[Span], others: Sequence[Span]) -> float:
    """Seconds that are in a span of both."""
    ends = sorted({end for span in (*some, *others) for end in span})
    return sum(
        end - begin
        for begin, end in pairwise(ends)
        if all(any(a <= begin and end <= b for a, b in spans) for spans in (some, others))
    )


class BackgroundRunner(Protocol):
    """A runner that measures while searches go on."""

    @property
    def name(self) -> str: ...

    @property
    def jobs(self) -> int:
        """How many cases are compiled, or executed, at a time."""
        ...

    def begin(self, watch: Watch) -> Run: ...


class Candidate(NamedTuple):
    """The start of a search, or one that is faster than the ones before."""

    problem: Problem
    root: Program
    program: Program
    latency_ns: float


class CandidateSink(Protocol):
    """A receiver of the candidates of a search."""

    def add(self, candidate: Candidate) -> None: ...

    def step(self) -> None:
        """Called again and again while the search goes on."""
        ...


@dataclass(slots=True)
class Measured:
    """The starts of searches and their best candidates, measured while they go on."""

    runner: str
    results: list[Measurement] = field(default_factory=list)
    hidden_s: float = 0.0
    spent_s: float = 0.0

    def lines(self) -> list[str]:
        """Predicted beside measured, in the order of the predictions."""
        rows = [f"{'measured':10}{'predicted':>16}{'p50':>16}  by the {self.runner} runner"]
        for each in sorted(self.results, key=lambda one: -(one.predicted_ns or 0.0)):
            figures = "".join(_us(ns) for ns in (each.predicted_ns, each.p50_ns))
            rows.append(
                f"{each.key:10}{figures}  {each.status}" + f": {each.what}" * bool(each.what)
            )
        work = "compiled" if self.runner == "neuron" else "executed"
        return [*rows, f"{work} in {self.spent_s:.1f} s, {self.hidden_s:.1f} s hidden"]


def _us(ns: float | None) -> str:
    return f"{'none':>16}" if ns is None else f"{ns / 1e3:13,.2f} µs"


class Background:
    """Hands the best candidates of searches to a run: the newest first, as it is the best.

    Measurements are in `store`, where there is one, as soon as they are made; `trouble` is why not.
    """

    def __init__(self, runner: BackgroundRunner, store: Path | None = None) -> None:
        self.measured = Measured(runner.name)
        self.trouble: StoreError | None = None
        self._jobs, self._path = runner.jobs, store
        self._store: Store | None = None
        self._run = runner.begin(self._keep)
        self._starts: dict[str, Case] = {}
        self._problems: dict[str, Problem] = {}
        self._recordings: dict[str, Recording] = {}
        self._waiting: deque[Case] = deque(maxlen=NEWEST)
        self._best_ns, self._next_s, self._number = inf, -inf, 0
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            if self._path is not None:
                self._store = opened.enter_context(Store(self._path))
            opened.enter_context(self._run)
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def add(self, candidate: Candidate) -> None:
        """Measure it later, where it is a start or the best so far."""
        problem, root, program, ns = candidate
        if problem.key not in self._starts:
            key = "start" + f" {len(self._starts) + 1}" * bool(self._starts)
            case = self._starts[problem.key] = case_of(key, root, program, ns)
        elif ns < self._best_ns:
            self._number += 1
            key = f"best {self._number}"
            start = self._starts[problem.key]
            case = replace(start, key=key, program=program, predicted_ns=ns)
        else:
            return
        self._best_ns = min(ns, self._best_ns)
        self._problems[key] = problem
        self._waiting.append(case)
        self.step()

    def step(self) -> None:
        """Receive results and submit the next candidates, at most every STEP_S seconds."""
        if (now := time.monotonic()) >= self._next_s:
            self._next_s = now + STEP_S
            self._run.step(0.0)
            while self._waiting and self._run.pools[0].num_jobs < self._jobs:
                self._run.submit(self._waiting.pop())

    def finish(self) -> None:
        """Wait for the ones that remain; Ctrl-C drops them."""
        with suppress(KeyboardInterrupt):
            while self._waiting:
                self._run.submit(self._waiting.pop())
            self._run.finish()
        self.measured.hidden_s = self._run.hidden_s
        self.measured.spent_s = sum(self._run.spent_s.values())

    def _keep(self, found: Measurement) -> None:
        self.measured.results.append(found)
        if self._store is None or self.trouble is not None:
            return
        problem = self._problems[found.key]
        new = Recording(self._store, problem, self.measured.runner)
        try:
            self._recordings.setdefault(problem.key, new).add(found)
        except StoreError as trouble:
            self.trouble = trouble


def failure(failed: Failed, where: str) -> Measurement:
    """The result for a job that has failed."""
    return Measurement(failed.key, failed.kind, f"{where}: {failed.what}", failed.log)
