"""A sample of the library's tests on its kernels and on what `nki-migrate fix` makes of them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tests.corpora.nki_library.sample import (
    Request,
    Sample,
    cell,
    error_class,
    run_samples,
)

EQUAL, DIFFERENT, FAILED = "equal", "different", "failed"
HEAD = (
    "| group | passed before | equal to the bit | different | failed |",
    "|---|--:|--:|--:|--:|",
)


def migrated_checkout(checkout: Path, folder: Path, request: Request) -> Path:
    """A copy of the checkout whose kernels `nki-migrate fix` has rewritten for `request.nki`."""
    copy = folder / "migrated"
    shutil.copytree(checkout, copy, ignore=shutil.ignore_patterns(".git"))
    command = (sys.executable, "-m", "nki_migrate", "fix", "src", "--isolated", "--jobs", "1")
    versions = ("--from", Request("").nki, "--to", request.nki, "--quiet")
    done = subprocess.run((*command, *versions), cwd=copy, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise ValueError(f"nki-migrate fix: {done.stderr.strip()[-300:]}")
    return copy


def run_migrated(
    checkout: Path,
    before: Sequence[Sample],
    groups: Mapping[str, str],
    request: Request,
    *,
    folder: Path,
    jobs: int = 1,
    keep: Path | None = None,
) -> list[tuple[Sample, Sample]]:
    """Pairs of samples: what is given, and its tests that passed on the migrated kernels.

    A group none of whose tests passed before is left out.
    """
    compared = {sample.group: sample for sample in before if sample.of("passed")}
    passed = tuple(outcome.test for sample in before for outcome in sample.of("passed"))
    request = replace(request, chosen=passed)
    copy = migrated_checkout(checkout, folder, request)
    after = run_samples(
        copy, {name: groups[name] for name in compared}, request, jobs=jobs,
        keep=keep and keep / request.nki,
    )  # fmt: skip
    return [(compared[sample.group], sample) for sample in after]


def verdicts(before: Sample, after: Sample) -> dict[str, tuple[str, str]]:
    """A verdict and a reason for every test that passed before."""
    then = {outcome.test: outcome for outcome in after.outcomes}
    found = {}
    for test in (outcome.test for outcome in before.of("passed")):
        if test not in then or then[test].word != "passed":
            found[test] = FAILED, then[test].reason if test in then else "not run"
        else:
            same = before.uses[test].results == after.uses[test].results
            found[test] = (EQUAL, "") if same else (DIFFERENT, test.rpartition("::")[2])
    return found


def markdown(pairs: Sequence[tuple[Sample, Sample]], request: Request, commit: str) -> str:
    """The counts by group, and what is not equal by group and reason."""
    found = {before.group: verdicts(before, after) for before, after in pairs}
    counts = {name: Counter(word for word, _ in of.values()) for name, of in found.items()}
    total = sum(counts.values(), Counter[str]())
    head = (
        f"`{commit}`, seed {request.seed}, {request.tests} tests a group, kernels migrated to "
        f"{request.nki}: of {total.total()} tests that passed before, {total[EQUAL]} "
        f"({total[EQUAL] / max(1, total.total()):.1%}) pass with results equal to the bit, "
        f"{total[DIFFERENT]} pass with others, {total[FAILED]} fail."
    )
    return "\n".join([head, "", *HEAD, *_rows(counts), *_reasons(found)]) + "\n"


def _rows(counts: Mapping[str, Counter[str]]) -> Iterator[str]:
    for name, count in counts.items():
        cells = (name, count.total(), count[EQUAL], count[DIFFERENT], count[FAILED])
        yield "| " + " | ".join(map(str, cells)) + " |"


def _reasons(found: Mapping[str, Mapping[str, tuple[str, str]]]) -> Iterator[str]:
    rows = Counter(
        (name, word, error_class(reason))
        for name, of in found.items()
        for word, reason in of.values()
        if word != EQUAL
    )
    if rows:
        yield from ("", "| group | outcome | reason | tests |", "|---|---|---|--:|")
    for (name, word, reason), number in rows.items():
        yield f"| {name} | {word} | {cell(reason)} | {number} |"
