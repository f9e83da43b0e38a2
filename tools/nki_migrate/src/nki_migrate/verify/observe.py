"""Running old kernels to see what their expressions are: the facts of `--cases`."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from nki_migrate.facts.observed import Observed, facts_of
from nki_migrate.verify.cases import Case
from nki_migrate.verify.job import Job, Outcome, backend_for
from nki_migrate.verify.process import Children


@dataclass(frozen=True, slots=True)
class Observation:
    """What the runs of one case showed; `error` says why it showed less than it could.

    A run in which something was blocked shows nothing: without it the kernel may go other ways.
    """

    case: Case
    facts: Observed
    error: str | None


def observe(
    cases: Sequence[tuple[Case, Path]], children: Children, jobs: int, target: str
) -> list[Observation]:
    """Run the old kernels of cases under beta1, each in a child, and record them."""
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        try:
            outcomes = list(pool.map(lambda one: children.run(_job(one[0], one[1], target)), cases))
        except BaseException:
            children.close()
            pool.shutdown(cancel_futures=True)
            raise
    return [_observation(case, out) for (case, _), out in zip(cases, outcomes, strict=True)]


def _job(case: Case, file: Path, target: str) -> Job:
    file = file.resolve()
    backend = backend_for("0.1", target).under(case.options)
    variants = case.variants()
    return Job(
        file, case.kernel, (file.parent,), case.seed, variants, backend, case.grid, record=True
    )


def _observation(case: Case, outcome: Outcome) -> Observation:
    if outcome.blocked:
        return Observation(case, Observed(), f"blocked: {'; '.join(outcome.blocked)}")
    facts = Observed()
    for number, document in enumerate(outcome.facts):
        facts += facts_of(document, f"{case.kernel}, run {number}")
    return Observation(case, facts, outcome.error)
