"""A tuning task, of loop schedules or of tile programs: its search space, store key and checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from neuroncore.program import Program, emit, parse_program
from nkigym.analysis.outputs import check_results
from nkigym.checker import check_root
from nkigym.search import ConstraintError, SearchSpace
from nkigym.spaces import LoopSpace, TileSpace
from nkigym.store import Problem as Known
from nkigym.store import problem_of
from nkigym.store.problem_keys import problem_of_tiles
from nkigym.tile_rewrites import KNOWN, rewrite_graph
from nkigym.tiles import TileProgram, parse_tiles
from nkigym.tuning.verification import (
    Check,
    replayed,
    replayed_tiles,
    verify_tile_winner,
    verify_winner,
)
from nkigym.tuning.workload import Problem, allowed, problem


@dataclass(frozen=True, slots=True)
class TuningTask:
    """A space, the kernel to begin with, and what is asked of it."""

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


def tuning_task(
    given: Program | TileProgram | Callable[..., Any],
    specs: Sequence[Any],
    target: str | None,
    nki: str | None,
    engines: Sequence[str] | None,
) -> TuningTask:
    """What is given, for a target and a version (None: its own, or the newest).

    Raises ConstraintError, UndefinedError where a result is not written, and what `problem` and
    `emit` raise.
    """
    if not isinstance(given, TileProgram):
        asked = problem(given, specs, target, nki)
        check_results(asked.root)
        emit(asked.root)  # what no source can be written of is rejected before a search
        return _of_loops(asked, allowed(asked.root, engines))
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
    """What a store has kept the text of."""
    if text.startswith("def "):
        return tuning_task(parse_tiles(text), (), target, None, None)
    return _of_loops(Problem(parse_program(text, where)), None)


def _of_loops(asked: Problem, engines: frozenset[str] | None) -> TuningTask:
    return TuningTask(
        asked.root,
        LoopSpace(asked.root, engines),
        lambda state: state,
        lambda: problem_of(asked.root),
        lambda schedule: replayed(asked.root, schedule),
        lambda state, schedule: verify_winner(asked.root, state, schedule, asked.smaller),
    )
