"""Checks of a winner: replayed, verified, certificates checked, source executed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from neuroncore.errors import KernelError
from neuroncore.program import (
    Call,
    Loop,
    Program,
    Statement,
    check,
    emit,
    parse_program,
    print_program,
)
from nkigym.analysis.outputs import written_parameters
from nkigym.checker import check_kernels, check_same, check_step
from nkigym.search import RejectedStepError, ScheduleError
from nkigym.spaces import TileSpace
from nkigym.tile_rewrites import KNOWN, rewrite_graph
from nkigym.tiles import TileProgram, parse_tiles, print_tiles
from nkigym.tiles.lowering import lower
from nkigym.transforms import TransformError, TransformStep, apply, certify
from nkigym.tuning.execution import (
    difference,
    hides_unwritten,
    in_domain,
    run_source,
)
from nkigym.tuning.function_check import Small, compare_with_function
from nkigym.tuning.function_execution import Reference


class VerificationError(KernelError):
    """A winner that is not what it was found to be. A mistake of ours, never the user's."""


SEED = 7
NUMBERED = 1 << 27
"""Elements that the calls of a kernel write, all iterations counted, up to which it is numbered at
its real size where there is not a smaller one: at most some ten seconds.
"""


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a winner; `passed` is None where it could not be made."""

    name: str
    passed: bool | None
    detail: str

    def __str__(self) -> str:
        mark = {True: "ok", False: "FAILED", None: "not checked"}[self.passed]
        return f"{self.name}: {mark}, {self.detail}"


Smaller = Callable[[], Iterator[tuple[str, Program]]]
"""The kernel to begin with at smaller sizes, with what these are, the smallest first."""


def verify_winner(
    root: Program, winner: Program, schedule: Sequence[Any], smaller: Smaller,
    reference: Reference | None = None, small: Callable[[], Small | None] = lambda: None,
) -> tuple[Check, ...]:  # fmt: skip
    """Every check of a winner and of the schedule, as JSON, that is claimed to lead to it; of the
    root too, where the results of the NumPy function that it was made from are given.

    Raises VerificationError with the checks where one fails. An illegal program is not executed.
    """
    legal = _is_legal(winner)
    if not legal.passed:
        return _passed((legal,))
    return _passed((
        _replays(root, winner, schedule),
        legal,
        _is_certified(root, schedule),
        *([] if reference is None else [_computes(root, reference, small)]),
        *_small(root, winner, schedule, smaller),
        _executes("real size", root, winner),
    ))  # fmt: skip


def _passed(checks: tuple[Check, ...]) -> tuple[Check, ...]:
    """The checks. Raises VerificationError with them where one fails."""
    if any(each.passed is False for each in checks):
        raise VerificationError(
            "the winner does not pass its checks", got="\n".join(map(str, checks)),
            hint="report this with the kernel and the schedule",
        )  # fmt: skip
    return checks


def _computes(root: Program, reference: Reference, small: Callable[[], Small | None]) -> Check:
    """The kernel to begin with against its function."""
    verdict = compare_with_function(root, reference, small)
    return Check("function", verdict.passed, verdict.detail)


def replayed(root: Program, schedule: Sequence[Any]) -> Program:
    """The program after a schedule as JSON. Raises TransformError at the first step that fails."""
    program = root
    for given in schedule:
        program = apply(program, TransformStep.from_json(given))
    return program


def verify_tile_winner(
    root: TileProgram, space: TileSpace, state: Any, schedule: Sequence[Any]
) -> tuple[Check, ...]:
    """The same of a tile program: replayed from its text, numbered by the checker, executed.

    Raises VerificationError with the checks where one fails.
    """
    kernel = space.kernel(state)
    again_space = TileSpace(
        rewrite_graph(parse_tiles(print_tiles(root)), tuple(KNOWN)), kernel.target
    )
    again = again_space.tile_program(replayed_tiles(again_space, schedule))
    same = print_tiles(again) == print_tiles(space.tile_program(state))
    return _passed((
        Check("replay", same, f"{len(schedule)} steps from the text lead to the same text"),
        _is_legal(kernel),
        _gives_the_same(root, space.tile_program(state)),
        _executes("real size", lower(root, kernel.target), kernel),
    ))  # fmt: skip


def replayed_tiles(space: TileSpace, schedule: Sequence[Any]) -> Any:
    """The state after a schedule as JSON. Raises ScheduleError at the first step that fails."""
    state = space.root
    for number, given in enumerate(schedule):
        try:
            state = space.apply(state, space.read_step(given)).state
        except (RejectedStepError, ValueError) as wrong:
            raise ScheduleError(f"step {number} cannot be taken", got=str(wrong)) from None
    return state


def _gives_the_same(root: TileProgram, winner: TileProgram) -> Check:
    """By value numbers of the statements alone."""
    wrong = check_same(winner, root)
    detail = str(wrong[0]) if wrong else "every atom of every output is what it was"
    return Check("value numbers", not wrong, detail)


def _replays(root: Program, winner: Program, schedule: Sequence[Any]) -> Check:
    """On the root as it is read from its text."""
    again_space = replayed(parse_program(print_program(root)), schedule)
    same = print_program(again_space) == print_program(winner)
    return Check("replay", same, f"{len(schedule)} steps from the text lead to the same text")


def _is_legal(winner: Program) -> Check:
    try:
        check(winner)
    except KernelError as wrong:
        return Check("verifier", False, str(wrong))
    return Check("verifier", True, "structure, limits, capacity, nothing read before it is written")


def _is_certified(root: Program, schedule: Sequence[Any]) -> Check:
    """Every step's certificate, by the checker."""
    program, claims = root, 0
    for number, given in enumerate(schedule):
        step = TransformStep.from_json(given)
        certificate = certify(program, step).to_json()
        wrong = check_step(certificate)
        if wrong:
            return Check("certificates", False, f"step {number}, {step}: {wrong[0]}")
        claims += len(certificate["claims"])
        program = apply(program, step)
    return Check("certificates", True, f"{len(schedule)} steps, {claims} claims replayed")


def _small(
    root: Program, winner: Program, schedule: Sequence[Any], smaller: Smaller
) -> tuple[Check, Check]:
    """Value numbers and execution at the smallest size at which there is a kernel and the schedule
    can be taken; value numbers of the kernel itself where there is none and it is not too large.
    """
    why = "no smaller kernel is known"
    for sizes, start in smaller():
        try:
            end = replayed(start, schedule)
        except TransformError as rejected:
            why = f"the schedule is not one for {sizes}: {rejected}"
            continue
        return _same_values(sizes, start, end), _executes(sizes, start, end)
    skipped = Check("executed small", None, why)
    if max(map(_written_elements, (root, winner))) <= NUMBERED:
        return _same_values("real size", root, winner), skipped
    return Check("value numbers", None, why), skipped


def _same_values(name: str, root: Program, winner: Program) -> Check:
    """Of every element of every result and argument, up to the order of sums; where the program to
    begin with has numbers.
    """
    wrong = check_kernels(root, winner)
    unknown = check_kernels(root, root) if wrong else []
    if unknown:
        return Check("value numbers", None, str(unknown[0]))
    detail = str(wrong[0]) if wrong else f"all of {_counted(root)}"
    return Check(f"value numbers, {name}", not wrong, detail)


def _written_elements(program: Program) -> int:
    """How many elements calls write, iterations counted."""

    def of(body: Sequence[Statement]) -> int:
        inside = (s.trips * of(s.body) for s in body if isinstance(s, Loop))
        calls = (s for s in body if isinstance(s, Call))
        return sum(inside) + sum(max(a.size for a in call.accesses.values()) for call in calls)

    return of(program.body)


def _executes(name: str, root: Program, winner: Program) -> Check:
    """The winner's source against the program to begin with, on integers; a second time from other
    memory where an output could be taken for what nothing has written. Arguments that the program
    to begin with leaves alone are compared as well.
    """
    inputs, expected = in_domain(root, SEED)
    source, arguments = emit(winner), [buffer.name for buffer in root.parameters]
    wrong = difference(run_source(source, winner, inputs), expected, arguments)
    written, first = written_parameters(root), len(root.results)
    outputs = [
        *expected[:first],
        *(a for name, a in zip(arguments, expected[first:], strict=True) if name in written),
    ]
    if wrong is None and hides_unwritten(outputs):
        wrong = difference(run_source(source, winner, inputs, "zero"), expected, arguments)
    total = sum(array.size for array in outputs)
    detail = f"{total:,} elements of {_counted(root)} equal to the bit"
    return Check(f"executed, {name}", wrong is None, wrong or detail)


def _counted(program: Program) -> str:
    """The outputs of a program in words: results, and arguments that it updates."""
    arguments = len(written_parameters(program))
    return f"{len(program.results)} outputs" + (f" and {arguments} arguments" * bool(arguments))
