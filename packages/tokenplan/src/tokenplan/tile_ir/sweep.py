"""A sweep over the parameters of a kernel that compiles only what can win.

Candidates are dropped in this order: illegal ones, accesses on a slow path that other candidates
avoid, equal modules, what the store contains already. The rest is compiled, the most promising
first, by several compilers at once until the budget is used; a candidate whose least possible cost
exceeds the best compiled one is dropped. Each result is stored before the next one is taken, so
that a sweep that is killed goes on where it was.
"""

from __future__ import annotations

import hashlib
import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, product
from math import inf, prod
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from neuroncore.errors import LaunchError
from neuroncore.executors import (
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
from tokenplan.tile_ir.description import (
    Compute,
    Described,
    Repeat,
    Statement,
    Transfer,
    walk,
)
from tokenplan.tile_ir.emission import emit
from tokenplan.tile_ir.kernel_builder import TileKernel
from tokenplan.tile_ir.orders import orders_of
from tokenplan.tile_ir.results import MOST_RESIDENT, Funnel, Result, Store, SweepError
from tokenplan.tile_ir.verdicts import architecture, has_slow_load

Parameters = Mapping[str, object]
DEFAULT_HINTS = {"allow_tma": True, "occupancy": 1, "num_cta_in_cga": 1}
"""Hints that change nothing."""
STEP_COST, SPILL_FACTOR = 300, 4
"""Of the estimate: instructions of a step beside its tile, and how much more expensive a sum of
matrix products is that its memory cannot contain."""
REGISTER_SUMS, TENSOR_MEMORY_SUMS = 2**14, 2**16
"""float32 elements: half of the registers of 128 threads, and the tensor memory (128 lanes of 512
columns; PTX ISA, Tensor Memory) of architectures 100 to 119."""
LEAST_INSTRUCTIONS = 8
"""Of any binary: instructions have 16 bytes, and code is padded to 128."""


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
    """The candidate; raises LaunchError or AssertionError for an illegal choice."""
    described = make(**parameters).described()
    orders = orders_of(described, target=target)
    module = emit(described, orders.kernel, orders.kept, target=target)
    key = canonical_key(module, target, compiler.version())
    instances = prod(size for _, size in described.grid)
    slow = has_slow_load(described, target)
    steps = instances * _steps(described.body)
    per_step = _promise(described, architecture(target))
    return Candidate(parameters, bytecode.write(module), key, steps, steps * per_step, slow)


def _promise(described: Described, number: int) -> float:
    """Instructions of a step, estimated from its largest computed tile."""
    found = [n for n in walk(described.body) if isinstance(n, Compute)]
    tiles = [prod(n.result.shape) for n in found]
    sums = [size for n, size in zip(found, tiles, strict=True) if n.operation == "mma"]
    capacity = TENSOR_MEMORY_SUMS if 100 <= number < 120 else REGISTER_SUMS
    spills = max(sums, default=0) > capacity
    return STEP_COST + max(tiles, default=0) / 64 * (SPILL_FACTOR if spills else 1)


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
        parameters = dict(zip(space, values, strict=True))
        try:
            yield candidate(make, parameters, target)
        except compiler.CompilerError:
            raise
        except (LaunchError, AssertionError) as wrong:
            funnel.illegal += 1
            funnel.note("illegal", wrong)
        except ValueError as wrong:
            raise SweepError(f"the kernel for {parameters} raises ValueError: {wrong}") from wrong


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

    Results that come early wait for the ones before them. One that was compiled although an earlier
    result excludes it is stored and counts as above the bound.
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
    """The next ones to evaluate or to drop, in order."""
    running: set[str] = field(default_factory=set)
    results: dict[str, Result] = field(default_factory=dict)
    best: float = inf

    def run(self) -> None:
        """Returns once every candidate is evaluated, dropped, or behind a limit."""
        self.best = min((result.cost(found.steps) for found, result in self.evaluated), default=inf)
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
        while self.pending and self.most:
            found = self.pending[0]
            if found.bound > self.best:
                self.funnel.bounded += 1
            elif found.key in self.results:
                self._evaluate(found, self.results[found.key])
            else:
                break
            self.pending.popleft()

    def _evaluate(self, found: Candidate, result: Result) -> None:
        self.evaluated.append((found, result))
        self.best = min(self.best, result.cost(found.steps))
        self.funnel.compiled += not result.error
        self.funnel.failed += bool(result.error)
        if result.error:
            self.funnel.note("failed", result.error)
        self.most -= 1

    def _submit(self) -> None:
        while self.rest and self._has_room() and monotonic() < self.ends:
            found = self.rest.popleft()
            self.pending.append(found)
            if found.bound <= self.best:
                self.running.add(found.key)
                job = self.job_of(found)
                self.executor.submit(Job(found.key, f"{__name__}:{compiled.__name__}", job))

    def _has_room(self) -> bool:
        to_evaluate = sum(found.bound <= self.best for found in self.pending)
        return len(self.running) < self.executor.jobs and to_evaluate < self.most
