"""Running old kernels to see what their expressions are: the facts of `--cases`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nki_migrate.facts.observed import Observed, facts_of
from nki_migrate.verify.cases import Case
from nki_migrate.verify.job import Job, Outcome, backend_for
from nki_migrate.verify.process import Children, Progress, no_progress

if TYPE_CHECKING:
    from nki_migrate.verify.store import Store


@dataclass(frozen=True, slots=True)
class Observation:
    """The observations of the runs of one case; `error` is why there are fewer than possible.

    A run in which something was blocked shows nothing: without it the kernel may go other ways.
    `outcome` is None where the facts are from an earlier run.
    """

    case: Case
    facts: Observed
    error: str | None
    outcome: Outcome | None = None


def observe(
    cases: Sequence[tuple[Case, Path]],
    children: Children,
    jobs: int,
    target: str,
    store: Store,
    progress: Progress = no_progress,
) -> list[Observation]:
    """Run the old kernels of cases under beta1, each in a child, and record them."""
    from concurrent.futures import ThreadPoolExecutor, as_completed

    def run(one: tuple[Case, Path]) -> Observation:
        case, file = one
        job = _job(case, file, target)
        key = ("observation", job, case)
        stored = store.find(*key)
        if stored is not None:
            return _observation(case, Outcome(facts=tuple(stored.value)), None)
        outcome = children.run(job)
        if outcome.is_whole:
            store.add(list(outcome.facts), outcome.files, *key)
        return _observation(case, outcome, outcome)

    with ThreadPoolExecutor(max(1, jobs)) as pool:
        try:
            running = [pool.submit(run, one) for one in cases]
            for number, _ in enumerate(as_completed(running), 1):
                progress(f"observing {number} of {len(cases)} runs of the old kernels")
            return [future.result() for future in running]
        except BaseException:
            children.close()
            pool.shutdown(cancel_futures=True)
            raise


def _job(case: Case, file: Path, target: str) -> Job:
    file = file.resolve()
    backend = backend_for("0.1", target).under(case.options)
    variants = case.variants()
    return Job(
        file, case.kernel, (file.parent,), case.seed, variants, backend, case.grid, record=True
    )


def _observation(case: Case, outcome: Outcome, run: Outcome | None) -> Observation:
    if outcome.blocked:
        return Observation(case, Observed(), f"blocked: {'; '.join(outcome.blocked)}")
    facts = Observed()
    for number, document in enumerate(outcome.facts):
        facts += facts_of(document, f"{case.kernel}, run {number}")
    return Observation(case, facts, outcome.error, run)
