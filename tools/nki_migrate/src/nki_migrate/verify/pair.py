"""Old against new against the reference, for one kernel and one case."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuroncore.surface import MeaningChange, meaning_changes
from nki_migrate.index import FileIndex
from nki_migrate.verify.cases import Arg, Case, CasesError
from nki_migrate.verify.guard import BLOCKED
from nki_migrate.verify.job import Backend, Job, Outcome
from nki_migrate.verify.process import Children, Progress, no_progress

if TYPE_CHECKING:
    from concurrent.futures import Future

    from nki_migrate.verify.arrays import Array
    from nki_migrate.verify.compare import Difference
    from nki_migrate.verify.store import Store, Stored

DEFAULT_TARGET = "trn2"
TARGET_CHECKS = ("subset", "capacity", "device", "traps")
"""What a result has to pass beside giving the same numbers (see `neuroncore.checks`)."""


OLD = "old kernel"
NEW_FAILED = "new kernel failed: "
_NOT_NEW = (OLD, "the old kernel itself", "reference failed", "reference blocked")


@dataclass(frozen=True, slots=True)
class Side:
    """A version of a file to run: where its text lies, how it is named to the user, its backend."""

    file: Path
    shown_as: str
    search_path: tuple[Path, ...]
    backend: Backend


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of the comparison of one kernel.

    `against_reference` and `against_old` are the worst differences over all variants and outputs,
    None when that comparison could not be made; `problems` say what went wrong, in order, and
    `blocked` is whether some code did what code that is verified may not do. `unchanged_since` is
    the day of the run that a reused verdict is from.
    """

    file: str
    kernel: str
    variants: int
    against_reference: Difference | None
    against_old: Difference | None
    problems: tuple[str, ...]
    blocked: bool = False
    unchanged_since: str | None = None

    @property
    def new_failed(self) -> bool:
        """Whether the new kernel stopped."""
        return any(problem.startswith(NEW_FAILED) for problem in self.problems)

    @property
    def says_nothing_of_new(self) -> bool:
        """Whether something went wrong, and nothing of it with the new kernel."""
        return bool(self.problems) and all(p.startswith(_NOT_NEW) for p in self.problems)

    @property
    def is_equal(self) -> bool:
        """Whether every run succeeded and every comparison was within the tolerance."""
        return not self.problems


@dataclass(frozen=True, slots=True)
class Pair:
    """One kernel to verify. `old_outcome` is a run of the old kernel that was made already."""

    case: Case
    old: Side
    new: Side
    cores: tuple[int, ...] | None = None  # how the new kernel is launched, where no `lnc` says it
    shows: str = (
        ""  # inputs that the case does not name (see probes): only old and new are compared
    )
    old_outcome: Outcome | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """The key of a run, contents of files aside."""
        return ("verdict", self.case, self.old, self.new, self.cores, TARGET_CHECKS)


def verify_pairs(
    pairs: Sequence[Pair],
    children: Children,
    jobs: int,
    store: Store,
    progress: Progress = no_progress,
) -> list[Verdict]:
    """Run and compare, `jobs` children at a time; verdicts come in the order of the pairs."""
    from concurrent.futures import ThreadPoolExecutor

    known = [store.find(*pair.key) for pair in pairs]
    new = [pair for pair, stored in zip(pairs, known, strict=True) if stored is None]
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        try:
            running = [
                [pool.submit(children.run, job) if job else None for job in _jobs(pair)]
                for pair in new
            ]
            _watch(running, progress)
            judged = (_judged(pair, f, store) for pair, f in zip(new, running, strict=True))
            return [next(judged) if stored is None else _reused(stored) for stored in known]
        except BaseException:
            children.close()
            pool.shutdown(cancel_futures=True)
            raise


def _watch(running: Sequence[Sequence[Future[Outcome] | None]], progress: Progress) -> None:
    """Wait for all runs, and show how many have ended."""
    from concurrent.futures import as_completed

    started = [future for futures in running for future in futures if future]
    for number, _ in enumerate(as_completed(started), 1):
        progress(f"verifying: {number} of {len(started)} runs")


def _judged(pair: Pair, futures: Sequence[Future[Outcome] | None], store: Store) -> Verdict:
    """The verdict of runs that have ended: stored where it is equal, else not kept."""
    old, new, reference = _outcomes(futures)
    verdict = _judge(pair, old or pair.old_outcome, new, reference)
    outcomes = [outcome for outcome in (old or pair.old_outcome, new, reference) if outcome]
    if verdict.is_equal and all(outcome.files for outcome in outcomes):
        files = (file for outcome in outcomes for file in outcome.files)
        store.add(asdict(verdict), files, *pair.key)
    else:
        store.remove(*pair.key)
    return verdict


def _reused(stored: Stored) -> Verdict:
    from nki_migrate.verify.compare import Difference  # imports NumPy

    differences = {
        name: stored.value[name] and Difference(**stored.value[name])
        for name in ("against_reference", "against_old")
    }
    return Verdict(**stored.value | differences | {"problems": (), "unchanged_since": stored.day})


def merged(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """One verdict per kernel: its cases together, the worst of them shown."""
    grouped: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in verdicts:
        grouped.setdefault((verdict.file, verdict.kernel), []).append(verdict)
    return [_together(group) for group in grouped.values()]


def _together(group: Sequence[Verdict]) -> Verdict:
    first = group[0]
    return Verdict(
        first.file,
        first.kernel,
        sum(verdict.variants for verdict in group),
        worst([v.against_reference for v in group if v.against_reference]),
        worst([v.against_old for v in group if v.against_old]),
        tuple(dict.fromkeys(problem for verdict in group for problem in verdict.problems)),
        any(verdict.blocked for verdict in group),
        _latest([verdict.unchanged_since for verdict in group]),
    )


def _latest(days: Sequence[str | None]) -> str | None:
    """The last of the days; None unless every verdict is reused."""
    return None if None in days else max(day for day in days if day)


def worst(differences: Sequence[Difference]) -> Difference | None:
    """The difference to show: an unequal one before the others, then by size."""
    return max(differences, key=lambda d: (not d.is_equal, d.max_error), default=None)


def _outcomes(futures: Sequence[Future[Outcome] | None]) -> list[Outcome | None]:
    return [future.result() if future else None for future in futures]


def _jobs(pair: Pair) -> tuple[Job | None, Job, Job | None]:
    case = pair.case
    launch = (case.lnc,) if case.lnc is not None else pair.cores
    old_launch = case.grid if pair.old.backend.name == "beta1" else launch
    return (
        None if pair.old_outcome else _kernel_job(pair.old, case, old_launch),
        replace(_kernel_job(pair.new, case, launch), checks=TARGET_CHECKS),
        _reference_job(case),
    )


def _kernel_job(side: Side, case: Case, launch: tuple[int, ...] | None) -> Job:
    variants, backend = case.variants(), side.backend.under(case.options)
    return Job(side.file, case.kernel, side.search_path, case.seed, variants, backend, launch)


def _reference_job(case: Case) -> Job | None:
    if case.reference is None:
        return None
    file, function = case.reference
    if not file.is_file():
        raise CasesError(f"{case.kernel}: reference file {file} does not exist")
    file = file.resolve()
    return Job(file, function, (file.parent,), case.seed, case.variants())


def _judge(
    pair: Pair, old: Outcome | None, new: Outcome | None, reference: Outcome | None
) -> Verdict:
    assert old is not None and new is not None
    case = pair.case
    if pair.shows and old.error:  # not inputs of this kernel
        return Verdict(pair.old.shown_as, case.kernel, 0, None, None, ())
    problems = [*_failures(pair, old, new, reference)]
    against_old = _worst(case, new, old, OLD, problems)
    against_reference = None
    if reference is not None:
        against_reference = _worst(case, new, reference, "reference", problems)
        _old_is_right(case, old, reference, problems)
    if pair.shows:
        problems = [f"{problem}; {pair.shows}" for problem in problems]
    return Verdict(
        pair.old.shown_as,
        case.kernel,
        len(case.variants()),
        against_reference,
        against_old,
        tuple(problems),
        any(outcome.blocked for outcome in (old, new, reference) if outcome),
    )


def _failures(pair: Pair, old: Outcome, new: Outcome, reference: Outcome | None) -> Sequence[str]:
    failed = [
        *_went_wrong(OLD, old, pair.old),
        *_went_wrong("new kernel", new, pair.new),
        *_went_wrong("reference", reference or Outcome(), None),
    ]
    found = [text.replace(str(pair.new.file), pair.new.shown_as) for text in new.findings]
    return failed + found


def _went_wrong(who: str, outcome: Outcome, side: Side | None) -> list[str]:
    texts = [f"{who} blocked: {attempt}" for attempt in outcome.blocked]
    if outcome.error and not (texts and BLOCKED in outcome.error):
        texts.append(f"{who} failed: {outcome.error}")
    return [text.replace(str(side.file), side.shown_as) if side else text for text in texts]


def _worst(
    case: Case, actual: Outcome, expected: Outcome, against: str, problems: list[str]
) -> Difference | None:
    """The largest difference over the variants both finished; what is unequal joins `problems`."""
    found: list[Difference] = []
    for number, variant in enumerate(case.variants()[: len(actual.results)]):
        if number >= len(expected.results):
            break
        shapes = ", ".join(f"{a.name}={list(a.shape)}" for a in variant if a.shape is not None)
        for position, difference in _differences(case, actual, expected, number, against):
            found.append(difference)
            if difference.why:
                problems.append(
                    f"differs from the {against} ({shapes}, result {position}): {difference.why}"
                )
    return worst(found)


def _differences(
    case: Case, actual: Outcome, expected: Outcome, number: int, against: str
) -> list[tuple[int, Difference]]:
    from nki_migrate.verify.compare import (  # imports NumPy
        Difference,
        Tolerance,
        compare,
        less_exact,
    )

    results, wanted = actual.results[number], expected.results[number]
    if len(wanted) == actual.returned[number]:  # a reference that leaves `inout` arguments out
        results = results[: len(wanted)]
    if len(results) != len(wanted) or not results:
        why = f"{_count(results)}, expected {_count(wanted)}"
        return [(0, Difference(float("inf"), float("inf"), why))]
    tolerance = Tolerance(case.rtol, case.atol, case.ulps)
    pairs = [*zip(results, wanted, strict=True)]
    found = [compare(a, e, tolerance) for a, e in pairs]
    if against == OLD:
        lost = [less_exact(a, e) for a, e in pairs]
        found = [replace(d, why=d.why or why) for d, why in zip(found, lost, strict=True)]
    return [*enumerate(found)]


def _count(results: Sequence[Array]) -> str:
    return "no result" if not results else f"{len(results)} result" + "s" * (len(results) > 1)


def _old_is_right(case: Case, old: Outcome, reference: Outcome, problems: list[str]) -> None:
    before: list[str] = []
    _worst(case, old, reference, "reference", before)
    problems += [f"the old kernel itself {text}" for text in before]


# -- inputs that show a change of meaning --------------------------------------------------------


def probes(pair: Pair, index: FileIndex, old: str, new: str) -> Iterator[Pair]:
    """The case of a pair with inputs that show what changed between two versions, which random
    numbers hide: once for each such fill of a function that the old file calls.

    `index` is that of the old file.
    """
    nodes = ast.walk(index.source.tree)
    names = {index.canonical(n.func) for n in nodes if isinstance(n, ast.Call)}
    for change in meaning_changes():
        called = set(change.functions) & names
        if called and change.separates(old, new):
            for fill in change.inputs:
                case = with_fill(pair.case, fill)
                if case is not None:
                    shows = _said(change, called, fill)
                    yield replace(pair, case=case, shows=shows, old_outcome=None)


def with_fill(case: Case, fill: str) -> Case | None:
    """The case with an input fill, and without its reference; None where no argument takes it."""
    args = tuple(replace(arg, fill=fill) if _takes(arg, fill) else arg for arg in case.args)
    if args == case.args:
        return None
    return replace(case, args=args, more=(), reference=None)


def _takes(arg: Arg, fill: str) -> bool:
    from nki_migrate.verify.arrays import is_float, storage_dtype  # imports NumPy

    if not arg.is_array or arg.role == "output" or arg.dtype is None:
        return False
    is_real = is_float(storage_dtype(arg.dtype))
    return fill == "ties" or is_real is not (fill == "large_integers")


def _said(change: MeaningChange, called: Iterable[str], fill: str) -> str:
    names = " and ".join(sorted(called))
    return f"inputs of fill {fill!r}, as {names} changed in {change.since}"
