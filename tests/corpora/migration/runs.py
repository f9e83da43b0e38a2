"""Old kernel, new kernel and reference of a case, each in a child process, and what they gave."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.corpora.beta1.catalog import HERE as BETA1
from tests.corpora.beta1.catalog import CorpusCase
from tests.corpora.migration.cache import Cache, key_of
from tests.corpora.migration.layout import (
    ENTRY_FUNCTION,
    LANGUAGES,
    Entry,
    Laid,
    readable,
    write_new_entry,
    write_old_entry,
)

from neuroncore.checks.subset import check_script
from nki_migrate.verify.compare import Difference, Tolerance, compare
from nki_migrate.verify.job import Backend, Job, Outcome
from nki_migrate.verify.process import Children, Limits

SECONDS, MEBIBYTES = 240.0, 12288  # an old kernel runs with its expressions recorded
WATCHED = ("capacity", "device")  # `subset` reads the kernel's own file, not the entry's


@dataclass(frozen=True, slots=True)
class Old:
    """What a kernel gave before the migration, what was expected, and what was seen."""

    outcome: Outcome
    expected: Outcome
    facts: Path | None
    problem: str = ""


@dataclass(frozen=True)
class Runner:
    """Runs cases of files; caches the successful ones."""

    cache: Cache

    def old(self, laid: Laid, case: CorpusCase) -> Old:
        """The kernel under beta1, recorded, and the reference."""
        key = key_of(("old", *_sources(laid), *_said(case)))
        outcome = self.cache.outcome(key)
        if outcome is None:
            entry = write_old_entry(laid, case)
            outcome = _run(entry, case, "beta1", ())
            if outcome.error:
                outcome = outcome.but(readable(outcome.error, laid))
            else:
                self.cache.keep(key, outcome)
        expected = self._reference(case)
        problem = outcome.error or _reference_failed(expected)
        problem = problem or difference(case, outcome, expected, "reference")
        return Old(outcome, expected, self.cache.facts(key), problem)

    def _reference(self, case: CorpusCase) -> Outcome:
        reference = case.case.reference
        assert reference is not None  # the catalog takes no case without one
        file, function = reference
        sources = [path.read_bytes() for path in sorted((BETA1 / "references").glob("*.py"))]
        key = key_of(("reference", *sources, *_said(case)))
        outcome = self.cache.outcome(key)
        if outcome is None:
            variants = case.case.variants()
            job = Job(file, function, (file.parent,), case.case.seed, variants)
            outcome = Children(Limits(SECONDS, MEBIBYTES)).run(job)
            if not outcome.error:
                self.cache.keep(key, outcome)
        return outcome

    def new(self, laid: Laid, case: CorpusCase, gridded: frozenset[str]) -> Outcome:
        """The migrated kernel under beta2 with the target's checks."""
        key = key_of(("new", *_sources(laid), *_said(case), *sorted(gridded)))
        outcome = self.cache.outcome(key)
        if outcome is None:
            entry = write_new_entry(laid, case, gridded)
            outcome = _run(entry, case, "beta2", WATCHED)
            if outcome.error:
                return outcome.but(readable(outcome.error, laid))
            self.cache.keep(key, outcome)
        return outcome


def _run(entry: Entry, case: CorpusCase, language: str, checks: tuple[str, ...]) -> Outcome:
    name, nki = LANGUAGES[language]
    backend = Backend(name, nki, case.target)
    variants = entry.of(case.case.variants())
    seed = case.case.seed
    job = Job(entry.file, ENTRY_FUNCTION, entry.search_path, seed, variants, backend, None, checks)
    return Children(Limits(max(SECONDS, case.seconds or 0.0), MEBIBYTES)).run(job)


def _sources(laid: Laid) -> list[object]:
    found: list[object] = [laid.extracted.module, *laid.extracted.absent]
    for path in laid.sources:
        found += [path, (laid.top / path).read_bytes()]
    return found


def _said(case: CorpusCase) -> list[object]:
    what = case.case
    options = sorted((case.options or {}).items())
    setup = case.setup[1] if case.setup else ""
    reference = what.reference[1] if what.reference else ""
    return [
        *(what.kernel, what.variants(), what.grid, what.seed, reference),
        *(case.target, options, setup),
    ]


def rejections(laid: Laid, kernel: str) -> list[str]:
    """What the compiler of the target rejects in the kernel and all it reaches."""
    found = check_script(
        laid.extracted.file,
        LANGUAGES["beta2"][1],
        kernels=[kernel],
        search_path=list(laid.extracted.search_path),
    )
    errors = [str(f).splitlines()[0] for f in found if f.severity == "error"]
    return [readable(text, laid) for text in errors]


def _reference_failed(expected: Outcome) -> str:
    return f"our reference failed: {expected.error}" if expected.error else ""


def difference(case: CorpusCase, actual: Outcome, expected: Outcome, against: str) -> str:
    """Where results differ from what was expected; empty when they do not."""
    what = case.case
    tolerance = Tolerance(what.rtol, what.atol, what.ulps)
    for number, wanted in enumerate(expected.results):
        results = actual.results[number]
        if len(wanted) == actual.returned[number]:  # a reference that leaves `inout` out
            results = results[: len(wanted)]
        if len(results) != len(wanted) or not results:
            return f"variant {number}: {len(results)} results, the {against} has {len(wanted)}"
        for position, (got, want) in enumerate(zip(results, wanted, strict=True)):
            found: Difference = compare(got, want, tolerance)
            if found.why:
                where = f"variant {number}, result {position}"
                return f"differs from the {against} ({where}): {found.why}"
    return ""
