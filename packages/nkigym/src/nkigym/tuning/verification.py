"""Checks of a winner: replayed, verified, certificates checked, source executed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

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
from nki_dtypes import finfo, float32
from nkigym.analysis.outputs import written_parameters
from nkigym.analysis.rounding import far, relative_rounding
from nkigym.checker import check_kernels, check_same, check_step
from nkigym.search import RejectedStepError, ScheduleError
from nkigym.spaces import TileSpace
from nkigym.tile_rewrites import KNOWN, rewrite_graph
from nkigym.tiles import TileProgram, parse_tiles, print_tiles
from nkigym.tiles.lowering import lower
from nkigym.transforms import TransformError, TransformStep, apply, certify
from nkigym.tuning.execution import (
    LARGEST,
    PARTS,
    difference,
    hides_unwritten,
    in_domain,
    integers,
    is_nan,
    run_program,
    run_source,
)


class VerificationError(KernelError):
    """A winner that is not what it was found to be. A mistake of ours, never the user's."""


SEED = 7
MARGIN = 4
"""A kernel rounds up to so many times as often as NumPy does in float32."""
UNITS, SHIFTS = 8, 4
"""How far and how often inputs are shifted to see whether the function jumps there."""
NUMBERED = 1 << 27
"""Elements that the calls of a kernel write, all iterations counted, up to which it is numbered at
its real size where there is not a smaller one: at most some ten seconds.
"""


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a winner; `passed` is None where it could not be made."""

    name: str
    passed: bool | None
    said: str

    def __str__(self) -> str:
        mark = {True: "ok", False: "FAILED", None: "not checked"}[self.passed]
        return f"{self.name}: {mark}, {self.said}"


Smaller = Callable[[], Iterator[tuple[str, Program]]]
"""The kernel to begin with at smaller sizes, with what these are, the smallest first."""
Reference = Callable[[Sequence[np.ndarray]], Sequence[Any]]
"""The results of a function's kernel for arrays, by NumPy."""


def verify_winner(
    root: Program, winner: Program, schedule: Sequence[Any], smaller: Smaller,
    reference: Reference | None = None,
) -> tuple[Check, ...]:  # fmt: skip
    """Every check of a winner and of the schedule, as JSON, that is said to lead to it; of the
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
        *([] if reference is None else [_computes(root, reference)]),
        *_small(root, winner, schedule, smaller),
        _executes("real size", root, winner),
    ))  # fmt: skip


def _computes(root: Program, reference: Reference) -> Check:
    """The kernel to begin with against its function, which NumPy executes in float64: on integers,
    and on fractions, where a floor is not the identity. Where an output is far from float64 in
    float32 as well, as the sine of 2 π n is, the other inputs decide.
    """
    relative, equal, differs = relative_rounding(root), 0, set[int]()
    for parts in (1, PARTS):
        if equal and _unit(root) > finfo(float32).eps:
            break  # rounding on the way may cross a comparison
        try:
            num_outputs, differs, wrong = _compared(root, reference, parts, relative)
        except Exception as wrong:  # it takes arrays of the generator, or none of float64
            return Check("function", None, f"NumPy cannot execute it: {wrong}")
        if num_outputs != len(root.results):
            what = f"{len(root.results)} outputs, {num_outputs} of the function"
            return Check("function", False, what)
        if wrong:
            return Check("function", False, f"output {min(wrong)} is not that of the function")
        equal += not differs
    if not equal:
        said = f"output {min(differs)} of NumPy in float32 is not that in float64 either"
        return Check("function", None, said)
    said = f"{len(root.results)} outputs of NumPy in float64, to {relative:.0e} and one rounding"
    return Check("function", True, said)


class _Compared(NamedTuple):
    num_outputs: int
    """Of the function."""
    differs: set[int]
    """Outputs whose difference from the function's is not explained by rounding."""
    wrong: set[int]
    """The ones of which NumPy in float32 is nearer."""


def _compared(root: Program, reference: Reference, parts: int, relative: float) -> _Compared:
    """On multiples of 1 / parts; where some of the kernel's outputs have no value, then on positive
    ones.
    """
    for least in (-LARGEST, 1):
        inputs = integers(root, SEED, least, parts)
        with np.errstate(all="ignore"):
            found = run_program(root, inputs)
        wanted = reference(_as_floats(inputs, np.float64))
        differs = _differing(found, wanted, relative)
        if differs and parts > 1:
            near = _nearest(found, wanted, [reference(each) for each in _shifted(root, inputs)])
            differs = _differing(found, near, relative)
        wrong = set[int]()
        if differs:
            rounded = map(_as_output, reference(_as_floats(inputs, np.float32)), found)
            single = [a.astype(got.dtype) for a, got in zip(rounded, found, strict=False)]
            wrong = differs - _differing(single, wanted, relative / MARGIN)
        if wrong or not any(is_nan(array).any() for array in found):
            break
    return _Compared(len(wanted), differs, wrong)


def _shifted(root: Program, inputs: Sequence[np.ndarray]) -> Iterator[list[np.ndarray]]:
    """Inputs in float64 that differ by some units of the narrowest float of the program."""
    random = np.random.default_rng(SEED)
    most = UNITS * _unit(root)
    for _ in range(SHIFTS):
        exact = _as_floats(inputs, np.float64)
        yield [
            a if a.dtype.kind in "iub" else a + random.uniform(-most, most, a.shape) for a in exact
        ]


def _unit(root: Program) -> float:
    """Of the narrowest float of a program, relative."""
    floats = [b.dtype for b in root.buffers().values() if b.dtype.is_float]
    return max((finfo(dtype).eps for dtype in floats), default=0.0)


def _nearest(
    found: Sequence[np.ndarray], wanted: Sequence[Any], shifted: Sequence[Sequence[Any]]
) -> list[np.ndarray]:
    """What is nearest to a kernel's outputs between values of the function for such inputs: beside
    a jump, as of a floor, rounding decides which of two values is right.
    """
    near = []
    for got, *values in zip(found, wanted, *shifted, strict=False):
        exact = [_as_output(value, got).astype(np.float64) for value in values]
        least, most = np.fmin.reduce(exact), np.fmax.reduce(exact)
        with_value = np.clip(got.astype(np.float64), least, most)
        near.append(np.where(is_nan(got), exact[0], with_value))
    return near


def _differing(found: Sequence[np.ndarray], wanted: Sequence[Any], relative: float) -> set[int]:
    """Outputs that are far from the function's; which elements of a sum or maximum have no value
    where an operand has none is not compared.
    """
    pairs = [(got, _as_output(want, got)) for got, want in zip(found, wanted, strict=False)]
    return {
        number for number, (got, want) in enumerate(pairs)
        if got.shape != want.shape
        or (far(got, want, relative, ulps=3 / 2) & ~(is_nan(want) & is_nan(got).any())).any()
    }  # fmt: skip


def _as_floats(arrays: Sequence[np.ndarray], dtype: type) -> list[np.ndarray]:
    return [a.copy() if a.dtype.kind in "iub" else a.astype(dtype) for a in arrays]


def _as_output(want: Any, got: np.ndarray) -> np.ndarray:
    """What NumPy returns; a number as an array of one element, as an array of a kernel has axes."""
    exact = np.asarray(want)
    return exact.reshape(got.shape) if exact.ndim == 0 and got.size == 1 else exact


def _passed(checks: tuple[Check, ...]) -> tuple[Check, ...]:
    """The checks. Raises VerificationError with them where one fails."""
    if any(each.passed is False for each in checks):
        raise VerificationError(
            "the winner does not pass its checks", got="\n".join(map(str, checks)),
            hint="report this with the kernel and the schedule",
        )  # fmt: skip
    return checks


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
    said = str(wrong[0]) if wrong else "every atom of every output is what it was"
    return Check("value numbers", not wrong, said)


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
    said = str(wrong[0]) if wrong else f"all of {_counted(root)}"
    return Check(f"value numbers, {name}", not wrong, said)


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
    inputs, wanted = in_domain(root, SEED)
    source, arguments = emit(winner), [buffer.name for buffer in root.parameters]
    wrong = difference(run_source(source, winner, inputs), wanted, arguments)
    written, first = written_parameters(root), len(root.results)
    outputs = [
        *wanted[:first],
        *(a for name, a in zip(arguments, wanted[first:], strict=True) if name in written),
    ]
    if wrong is None and hides_unwritten(outputs):
        wrong = difference(run_source(source, winner, inputs, "zero"), wanted, arguments)
    total = sum(array.size for array in outputs)
    said = f"{total:,} elements of {_counted(root)} equal to the bit"
    return Check(f"executed, {name}", wrong is None, wrong or said)


def _counted(program: Program) -> str:
    """The outputs of a program in words: results, and arguments that it updates."""
    arguments = len(written_parameters(program))
    return f"{len(program.results)} outputs" + (f" and {arguments} arguments" * bool(arguments))
