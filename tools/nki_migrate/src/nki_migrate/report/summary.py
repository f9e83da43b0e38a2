"""Summary of a run: the counts of the closing line, and the counts per rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from neuroncore.findings import Finding, Safety, Severity
from nki_migrate.engine.results import FileResult, FileStatus, KernelReport


@dataclass(frozen=True, slots=True)
class Summary:
    """Totals of a run.

    `safe` and `unsafe_applied` count findings with edits, `unsafe_hidden` the ones that need
    `--unsafe-fixes`, `manual` the ones that a person has to resolve.
    """

    files: int
    failed: int
    changed: int
    dialects: tuple[tuple[str, int], ...]
    safe: int
    unsafe_applied: int
    unsafe_hidden: int
    manual: int
    manual_kernels: int

    @property
    def kernels(self) -> int:
        """How many kernels were seen."""
        return sum(count for _, count in self.dialects)


def is_open(finding: Finding) -> bool:
    """Whether a finding needs an action: notes do not."""
    return finding.severity is not Severity.NOTE


def is_manual(finding: Finding) -> bool:
    """Whether a person has to resolve the finding."""
    return is_open(finding) and finding.safety is Safety.MANUAL


def is_hidden(finding: Finding) -> bool:
    """Whether the finding's edits wait for `--unsafe-fixes`."""
    return finding.safety is Safety.UNSAFE and not finding.applied


def summarize(results: Sequence[FileResult]) -> Summary:
    """The totals of all results."""
    findings = list(chain.from_iterable(result.findings for result in results))
    kernels = chain.from_iterable(result.kernels for result in results)
    unsafe = [finding for finding in findings if finding.safety is Safety.UNSAFE]
    manual = list(filter(is_manual, findings))
    return Summary(
        files=len(results),
        failed=sum(result.status is FileStatus.FAILED for result in results),
        changed=sum(result.before != result.after for result in results),
        dialects=tuple(sorted(Counter(kernel.dialect for kernel in kernels).items())),
        safe=sum(finding.safety is Safety.SAFE for finding in findings),
        unsafe_applied=sum(finding.applied for finding in unsafe),
        unsafe_hidden=sum(map(is_hidden, unsafe)),
        manual=len(manual),
        manual_kernels=len({(finding.region.path, finding.kernel) for finding in manual}),
    )


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" + "s" * (count != 1)


def summary_line(summary: Summary, target: str) -> str:
    """`12 files, 31 kernels (27 beta1, 4 already 0.6): 412 edits safe, …` of the specification."""
    parts = [_plural(summary.safe, "edit") + " safe"]
    if summary.unsafe_applied:
        parts.append(f"{summary.unsafe_applied} unsafe applied")
    if summary.unsafe_hidden:
        parts.append(f"{summary.unsafe_hidden} unsafe hidden (--unsafe-fixes)")
    if summary.manual:
        kernels = _plural(summary.manual_kernels, "kernel")
        parts.append(f"{summary.manual} manual in {kernels}")
    if summary.failed:
        parts.append(_plural(summary.failed, "file") + " failed")
    dialects = ", ".join(_dialect_counts(summary.dialects, target))
    kernels = _plural(summary.kernels, "kernel") + (f" ({dialects})" if dialects else "")
    return f"{_plural(summary.files, 'file')}, {kernels}: {', '.join(parts)}"


def _dialect_counts(dialects: Iterable[tuple[str, int]], target: str) -> list[str]:
    beta1 = sum(count for name, count in dialects if name.startswith("0.1"))
    others = [(name, count) for name, count in dialects if not name.startswith("0.1")]
    said = [f"{beta1} beta1"] if beta1 else []
    return said + [f"{count} {_already(name, target)}" for name, count in others]


def _already(dialect: str, target: str) -> str:
    return f"already {dialect}" if dialect[0] == "0" and dialect >= target else dialect


def kernel_lists(
    results: Iterable[FileResult], verified: Iterable[Mapping[str, Any]] = ()
) -> list[str]:
    """The kernels that are complete, except the `verified` rows, and the ones that are not."""
    in_table = [(row["file"], row["kernel"]) for row in verified]
    kernels = [(result.path, kernel) for result in results for kernel in result.kernels]
    complete = filter(lambda item: item[1].complete, kernels)
    groups = {
        "complete": [item for item in complete if (item[0], item[1].name) not in in_table],
        "runnable, with manual items": [
            item for item in kernels if item[1].runnable and not item[1].complete
        ],
        "not runnable yet": [item for item in kernels if not item[1].runnable],
    }
    return [
        f"{title} ({len(items)}): {', '.join(_named(*item) for item in items)}"
        for title, items in groups.items()
        if items
    ]


def _named(path: str, kernel: KernelReport) -> str:
    through = f", through {', '.join(kernel.through)}" if kernel.through else ""
    return f"{kernel.name} ({path}:{kernel.line}{through})"


@dataclass(frozen=True, slots=True)
class RuleCount:
    """One rule over all files: found, fixed, unsafe and not applied, manual."""

    rule: str
    found: int
    fixed: int
    unsafe: int
    manual: int


def statistics(results: Iterable[FileResult]) -> list[RuleCount]:
    """Counts per rule, by id."""
    by_rule: dict[str, list[Finding]] = {}
    for result in results:
        for finding in result.findings:
            by_rule.setdefault(finding.rule, []).append(finding)
    return [
        RuleCount(
            rule,
            len(found),
            sum(finding.applied for finding in found),
            sum(is_hidden(finding) for finding in found),
            sum(finding.safety is Safety.MANUAL for finding in found),
        )
        for rule, found in sorted(by_rule.items())
    ]


def statistics_table(results: Iterable[FileResult]) -> Iterator[str]:
    """Counts per rule, aligned."""
    yield f"{'rule':<9}{'found':>7}{'fixed':>7}{'unsafe':>8}{'manual':>8}"
    for c in statistics(results):
        yield f"{c.rule:<9}{c.found:>7}{c.fixed:>7}{c.unsafe:>8}{c.manual:>8}"
