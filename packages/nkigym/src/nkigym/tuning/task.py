"""A tuning task, of loop schedules or of tile programs: its search space, store key and checks."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import islice, product
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neuroncore.errors import KernelError
from neuroncore.program import Program, calls, check, emit, parse_program
from neuroncore.surface import DEFAULT_VERSION
from neuroncore.targets import PARTITIONS
from neuroncore.timeline import latency_ns
from nkigym.analysis.outputs import check_results
from nkigym.checker import check_root
from nkigym.search import ConstraintError, SearchSpace
from nkigym.spaces import LoopSpace, TileSpace
from nkigym.store import Problem as Known
from nkigym.store import problem_of
from nkigym.store.problem_keys import problem_of_tiles
from nkigym.tile_rewrites import KNOWN, rewrite_graph
from nkigym.tiles import TileProgram, parse_tiles
from nkigym.tuning.function_check import Small
from nkigym.tuning.function_execution import Reference
from nkigym.tuning.verification import (
    Check,
    replayed,
    replayed_tiles,
    verify_tile_winner,
    verify_winner,
)

if TYPE_CHECKING:
    from nkigen_lite import Graph


@dataclass(frozen=True, slots=True)
class TuningTask:
    """A space, the kernel to begin with, and what is required of it."""

    root: Program
    space: SearchSpace[Any, Any]
    kernel: Callable[[Any], Program]
    """Of a state of the space."""
    known: Callable[[], Known]
    """The key of a store."""
    replayed: Callable[[Sequence[Any]], Any]
    """The state after a schedule as JSON."""
    verify_winner: Callable[[Any, Sequence[Any]], tuple[Check, ...]]
    """Every check of a state and of the schedule that leads to it. Raises VerificationError."""
    baseline_ns: Callable[[], float | None] = lambda: None
    """The latency of the function's baseline kernel, where there is one."""
    start: str = ""
    """Which kernel of a function the root is."""


def tuning_task(
    given: Program | TileProgram | Callable[..., Any],
    specs: Sequence[Any],
    target: str | None,
    nki: str | None,
    engines: Sequence[str] | None,
    start: str = "generated",
) -> TuningTask:
    """The task of a function or program, for a target and a version (None: its own, or the newest).

    Raises ConstraintError, UndefinedError where a result is not written, and what `problem` and
    `emit` raise.
    """
    if not isinstance(given, TileProgram):
        made = problem(given, specs, target, nki, start)
        check_results(made.root)
        emit(made.root)  # what no source can be written of is rejected before a search
        return _of_loops(made, allowed(made.root, engines))
    if specs or engines is not None:
        raise ConstraintError(
            "a tile program says its shapes and engines itself", expected="no specs, no engines"
        )
    if wrong := check_root(given):
        raise ConstraintError(
            f"{given.name} is not a tile program", got=str(wrong[0]),
            expected="parts that exist, each element of an output stored once",
        )  # fmt: skip
    space = TileSpace(rewrite_graph(given, tuple(KNOWN)), target or "trn2")
    root = space.kernel(space.root)
    check_results(root)
    emit(root)
    if nki not in (None, root.nki):
        raise ConstraintError(
            "tile programs are lowered for one version", expected=f"NKI {root.nki}", got=nki
        )
    return TuningTask(
        root,
        space,
        space.kernel,
        lambda: problem_of_tiles(given, root),
        lambda schedule: replayed_tiles(space, schedule),
        lambda state, schedule: verify_tile_winner(given, space, state, schedule),
    )


def stored_task(text: str, target: str, where: str) -> TuningTask:
    """The task whose text a store contains; `where` and a digest of the text name its lines."""
    if text.startswith("def "):
        return tuning_task(parse_tiles(text), (), target, None, None)
    path = f"{where}#{sha256(text.encode()).hexdigest()[:8]}"
    linecache.cache[path] = len(text), None, text.splitlines(keepends=True), path
    return _of_loops(Problem(parse_program(text, path)), None)


def _of_loops(made: Problem, engines: frozenset[str] | None) -> TuningTask:
    return TuningTask(
        made.root,
        LoopSpace(made.root, engines),
        lambda state: state,
        lambda: problem_of(made.root),
        lambda schedule: replayed(made.root, schedule),
        lambda state, schedule: verify_winner(
            made.root, state, schedule, made.smaller, made.reference, made.small
        ),
        made.baseline_ns,
        made.start,
    )


# -- the program to tune ---------------------------------------------------------------------------


ENGINES = ("tensor", "vector", "scalar", "gpsimd")
"""Engines that constraints can name; DMA queues are always allowed."""
TILE = PARTITIONS
FEW = (2, 3, 8)
"""Tiles along an axis of smaller kernels; eight are two of 512."""
PARTS = (2, 4)
"""Such a part of an axis as well: what divides all of it may divide no few tiles."""
MOST = 256
"""So many smaller kernels are looked at,"""
MOST_SIZES = 1 << 14
"""found among so many sizes, most of which do not go together."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The kernel to begin with; where it was made for arguments like `specs`, what made it."""

    root: Program
    make: Callable[[Sequence[Any]], Program] | None = None
    specs: tuple[Any, ...] = ()
    function: Callable[..., Any] | None = None
    """What the root was made from, where that is a NumPy function,"""
    start: str = ""
    """which kernel of it the root is,"""
    graph: Graph | None = None
    """and the graph of that kernel."""

    @property
    def reference(self) -> Reference | None:
        """The function's results as the root returns them."""
        if self.function is None or self.graph is None:
            return None
        return partial(_function_results, self.function, self.graph)

    def baseline_ns(self) -> float | None:
        """The latency of the function's baseline kernel, where there is one."""
        if self.function is None:
            return None
        try:
            made = _baseline(self.function, self.root.target, self.root.nki, self.specs)
        except KernelError:
            return None
        return latency_ns(made.program)

    def small(self) -> Small | None:
        """The function's kernel at the fewest tiles, and the function's results."""
        if self.function is None:
            return None
        for specs in islice(_fewer(self.specs), MOST):
            try:
                made = KERNELS[self.start](self.function, self.root.target, self.root.nki, specs)
            except KernelError:
                continue  # sizes that do not go together
            return Small(made.program, partial(_function_results, self.function, made.graph))
        return None

    def smaller(self) -> Iterator[tuple[str, Program]]:
        """The same at fewer tiles, the fewest first."""
        if self.make is None:
            return
        yield from islice(self._made(self.make), MOST)

    def _made(self, make: Callable[[Sequence[Any]], Program]) -> Iterator[tuple[str, Program]]:
        for specs in _fewer(self.specs):
            try:
                root = make(specs)
            except KernelError:
                continue  # sizes that do not go together
            yield ", ".join(map(str, specs)), root


def _fewer(specs: Sequence[Any]) -> list[list[Any]]:
    """The specs with fewer tiles along some axes, the smallest first."""
    axes = [n for spec in specs for n in spec.shape]
    options = [_lengths(n) for n in axes]
    if prod(map(len, options)) > MOST_SIZES:
        options = [_lengths(n, ()) for n in axes]
    if prod(map(len, options)) > MOST_SIZES:
        return []
    found = [_resized(specs, sizes) for sizes in product(*options) if list(sizes) != axes]
    return sorted(found, key=lambda resized: sum(spec.size for spec in resized))


def _resized(specs: Sequence[Any], sizes: Iterable[int]) -> list[Any]:
    """The specs with these sizes of their axes, one after the other."""
    size = iter(sizes)
    return [replace(spec, shape=tuple(islice(size, len(spec.shape)))) for spec in specs]


def _lengths(axis: int, parts: Sequence[int] = PARTS) -> list[int]:
    """How long an axis of whole tiles is in smaller kernels, its own length last."""
    if axis % TILE:
        return [axis]
    few = {few * TILE for few in FEW if few * TILE < axis}
    shares = {axis // n for n in parts if axis % (n * TILE) == 0}
    return sorted(few | (shares - {TILE}) | {axis})


def problem(
    given: Program | Callable[..., Any],
    specs: Sequence[Any],
    target: str | None,
    nki: str | None,
    start: str = "generated",
) -> Problem:
    """The kernel to begin with, for a target and a version (None: the program's, or the newest).

    A kernel (`@nki.jit`) is run once on zeros, for the program that it is with these arguments.
    start: of a function, "generated" or "baseline" (the other where that kernel does not exist),
    or "best", the faster of the two, which is that of "both" as well.

    Raises ConstraintError for a program and specs, or a program that this target or version does
    not take; what `nkigym.baseline` raises for
    functions, `nki_runtime.program_of` for kernels.
    """
    if not isinstance(given, Program):
        from nkigen_lite import as_spec

        converted = tuple(as_spec(spec) for spec in specs)
        if _is_kernel(given):
            make = partial(_captured, given, target, nki)
            return Problem(make(converted), make, converted)
        return _begun(given, converted, target, nki, start)
    if specs:
        raise ConstraintError("a kernel program says its shapes itself", expected="no specs")
    made = replace(given, target=target or given.target, nki=nki or given.nki)
    try:
        check(made)
    except KernelError as wrong:
        raise ConstraintError(
            f"{given.name} is not a kernel for {made.target} and NKI {made.nki}", got=str(wrong)
        ) from None
    return Problem(made)


def _begun(
    function: Callable[..., Any], specs: tuple[Any, ...], target: str | None, nki: str | None,
    start: str,
) -> Problem:  # fmt: skip
    """The kernel of a function that `start` names. Raises what makes the last one impossible."""
    if start not in STARTS:
        raise ConstraintError(f"{start!r} is not a start", expected=", ".join(STARTS))
    found: list[Problem] = []
    reasons: list[KernelError] = []
    for name in STARTS[start]:
        try:
            make = partial(KERNELS[name], function, target, nki)
            root, graph = make(specs)
            found.append(
                Problem(root, lambda s, m=make: m(s).program, specs, function, name, graph)
            )
        except KernelError as wrong:
            reasons.append(wrong)
        if found and start in KERNELS:
            return found[0]
    if not found:
        raise reasons[0]
    return min(found, key=lambda problem: latency_ns(problem.root))


class Kernel(NamedTuple):
    """A kernel of a function, and the graph that it was written from."""

    program: Program
    graph: Graph


def _generated(
    function: Callable[..., Any], target: str | None, nki: str | None, specs: Sequence[Any]
) -> Kernel:
    from nkigen_lite import compile

    made = compile(function, *specs, target=target or "trn2", nki=nki or DEFAULT_VERSION)
    return Kernel(made.self_contained, made.plan.graph)


def _baseline(
    function: Callable[..., Any], target: str | None, nki: str | None, specs: Sequence[Any]
) -> Kernel:
    from nkigym.baseline import baseline_graph, kernel_of

    graph = baseline_graph(function, *specs)
    return Kernel(kernel_of(graph, target or "trn2", nki or DEFAULT_VERSION), graph)


KERNELS: Mapping[str, Callable[..., Kernel]] = {"generated": _generated, "baseline": _baseline}
"""Kernels of a function that a search may begin with."""
BOTH = "both"
"""A search from each, which share the budget."""
STARTS = {
    "generated": ("generated", "baseline"),
    "baseline": ("baseline", "generated"),
    "best": ("generated", "baseline"),
    BOTH: ("generated", "baseline"),
}
"""Names of kernels, the first that there is first."""


def _function_results(
    function: Callable[..., Any], graph: Graph, arrays: Sequence[np.ndarray]
) -> list[Any]:
    """What the kernel of `graph` returns for `arrays`, by NumPy: the function's results,
    one or a tuple or list of them, and behind these the arguments that it changes.
    """
    from nkigen_lite.codegen import returned

    taken = iter(arrays)
    given = [
        next(taken).reshape(v.spec.shape) if v.spec.size else np.zeros(v.spec.shape)
        for v in graph.inputs
    ]
    with np.errstate(all="ignore"):
        found = function(*given)
    outputs = found if isinstance(found, (tuple, list)) else (found,) * bool(graph.outputs)
    if len(outputs) != len(graph.outputs):
        return [*outputs]  # of arrays it returns others than of the generator's values
    arguments = {value.name: array for value, array in zip(graph.inputs, given, strict=True)}
    values = {value: arguments[name] for name, value in graph.writes}
    values |= zip(graph.outputs, outputs, strict=True)
    return [values[name] for name in returned(graph)]


def _captured(kernel: Any, target: str | None, nki: str | None, specs: Sequence[Any]) -> Program:
    """The program of a kernel for such arguments: its loops, none of its values."""
    from nki_runtime import program_of

    arrays = [np.zeros(spec.shape, spec.dtype.storage) for spec in specs]
    made = program_of(kernel, *arrays, target=target)
    if nki is None or nki == made.nki:
        return made
    return problem(made, (), target, nki).root


def _is_kernel(given: Any) -> bool:
    """Whether a language has decorated it."""
    from nki_runtime import backends
    from nki_runtime.switch.registry import loadable

    return any(backend.is_kernel(given) for backend in loadable(backends()))


def allowed(root: Program, engines: Sequence[str] | None) -> frozenset[str] | None:
    """The engines that a schedule may use; None are all.

    Raises ConstraintError for one that there is not, and where a call of the root has none left.
    """
    if engines is None:
        return None
    unknown = [name for name in engines if name not in ENGINES]
    if unknown or not engines:
        raise ConstraintError(
            f"{unknown[0]!r} is not an engine" if unknown else "no engine remains",
            expected=f"some of {', '.join(ENGINES)}",
        )
    for call in calls(root.body):
        possible = {engine.name for engine in call.record.engines} - {"dma", "sync"}
        if possible and possible.isdisjoint(engines):
            raise ConstraintError(
                "these constraints contradict the kernel",
                expected=f"one of {', '.join(sorted(possible))} for {call.instruction}",
                got=f"engines {', '.join(engines)}", place=call.origin,
            )  # fmt: skip
    return frozenset(engines)
