"""One random kernel: the old text runs, migrates, and the new text gives the same numbers."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.corpora.random_kernels.grammar import RandomKernel, random_kernel
from tests.corpora.styles.harness import (
    Tried,
    difference,
    left_of,
    migrated,
    reasons_of,
    run_new,
    run_old,
)

from neuroncore.machine.garbage_collection import no_collection
from nki_migrate.cli.verify import cores_of
from nki_migrate.facts.observed import Observed
from nki_migrate.verify.cases import Arg, Case
from tokenplan.executors import Event, Executor, Failed, Finished, Job, Report

BAD = ("WRONG", "fails", "crash", "unstable")

PRELOAD = __name__
"""What workers import before their first job."""


def try_seeds(
    seeds: Iterable[int], executor: Executor, *, with_facts: bool
) -> dict[int, tuple[str, str]]:
    """The word and the reason of each seed; a job that ends its worker or its limit is a crash."""
    found: dict[int, tuple[str, str]] = {}

    def watch(event: Event) -> None:
        match event:
            case Finished(key, value):
                found[int(key)] = value
            case Failed(key, kind, what):
                found[int(key)] = ("crash", f"{kind}: {what}")

    with executor:
        for seed in seeds:
            executor.submit(Job(str(seed), f"{PRELOAD}:{try_seed.__name__}", (seed, with_facts)))
        executor.run(watch)
    return dict(sorted(found.items()))


def try_seed(payload: tuple[int, bool], report: Report) -> tuple[str, str]:
    """A job: the kernel of a seed."""
    seed, with_facts = payload
    with TemporaryDirectory() as folder, no_collection():
        tried = try_kernel(random_kernel(seed), Path(folder), with_facts=with_facts)
    return tried.word, tried.reason


def case_of(kernel: RandomKernel, folder: Path) -> Case:
    """The kernel as a case of verification, without a reference: its own result is compared."""
    args = tuple(
        Arg(f"x{i}", dtype="float32", shape=shape, fill="uniform", low=-1.0, high=1.0)
        for i, shape in enumerate(kernel.shapes)
    )
    return Case(folder, "kernels.py", "kernel", args, grid=kernel.grid, rtol=1e-4, atol=1e-4)


def try_kernel(kernel: RandomKernel, folder: Path, *, with_facts: bool) -> Tried:
    """`verified`, `todo`, one of BAD, or `invalid`: the old kernel does not run."""
    case = case_of(kernel, folder)
    case.path.write_text(kernel.text, encoding="utf-8")
    before, facts = run_old(case.path, case)

    def tried(word: str, reason: str = "") -> Tried:
        return Tried("kernels.py", f"seed {kernel.seed}", word, reason)

    if before.error:
        return tried("invalid", before.error)
    result = migrated(case.path, facts if with_facts else Observed())
    if result.error:
        return tried("crash", result.error)
    new = folder / "migrated.py"
    new.write_text(result.after, encoding="utf-8")
    if migrated(new, Observed()).after != result.after:
        return tried("unstable")
    if left_of(result, "kernel"):
        return tried("todo", reasons_of(result, "kernel"))
    after = run_new(new, case, cores_of(case, result.after, new.name))
    if after.error:
        return tried("fails", after.error)
    differs = difference(case, after, before)
    return tried("WRONG", differs) if differs else tried("verified")
