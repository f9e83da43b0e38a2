"""`--facts` and `--cases`: what runs of the old kernels showed, for the files it is about."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from nki_migrate.cli.inputs import Input, Inputs
from nki_migrate.cli.verify import cases_of_input
from nki_migrate.facts.observed import Observed, read_facts
from nki_migrate.verify.observe import observe
from nki_migrate.verify.pair import DEFAULT_TARGET
from nki_migrate.verify.process import Children, Limits


def with_observations(
    inputs: Inputs,
    facts: Sequence[Path],
    cases: Path | None,
    verify: bool,
    limits: Limits,
    jobs: int,
) -> Inputs:
    """The inputs with the facts about each in its request.

    User code runs only where cases are named or `--verify` needs it anyway. Raises FactsError
    and CasesError.
    """
    observed = Observed()
    for file in facts:
        observed += read_facts(file)
    if cases is not None or verify:
        observed += _of_cases(inputs.inputs, cases, limits, jobs)
    if not observed:
        return inputs
    return replace(inputs, inputs=tuple(_with(item, observed) for item in inputs.inputs))


def _with(item: Input, observed: Observed) -> Input:
    request = replace(item.task.request, observed=observed.about(item.task.path))
    return replace(item, task=replace(item.task, request=request))


def _of_cases(inputs: Sequence[Input], cases: Path | None, limits: Limits, jobs: int) -> Observed:
    old = [item for item in inputs if item.file is not None and b"neuronxcc" in item.task.raw]
    known = [(case, item.file) for item in old for case in cases_of_input(item, cases)]
    wanted = [(case, file) for case, file in known if file is not None]
    observed = Observed()
    for seen in observe(wanted, Children(limits), jobs, DEFAULT_TARGET):
        observed += seen.facts
        if seen.error is not None:
            print(
                f"nki-migrate: {seen.case.kernel} of {seen.case.file} stopped while observed:"
                f" {seen.error}",
                file=sys.stderr,
            )
    return observed
