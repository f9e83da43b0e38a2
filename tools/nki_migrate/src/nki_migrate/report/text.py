"""The report for people: each finding with its source line, and the line that closes a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from nki_migrate.findings import Edit, FileResult, Finding, Severity
from nki_migrate.index import python_lines
from nki_migrate.report.report import Report
from nki_migrate.report.summary import (
    is_hidden,
    is_manual,
    kernel_lists,
    statistics,
    summarize,
    summary_line,
)

_EDIT_LINES = 8
_CODES = {"bold": "1", "red": "31", "yellow": "33", "cyan": "36", "green": "32", "dim": "2"}
_COLORS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


def painter(color: bool) -> Callable[[str, str], str]:
    """A function that colours text with a named colour, or leaves it alone."""
    if not color:
        return lambda text, name: text
    return lambda text, name: f"\x1b[{_CODES[name]}m{text}\x1b[0m"


def render_text(report: Report) -> str:
    """Findings as blocks with a source excerpt, then failures, kernels and the closing line."""
    blocks = [] if report.quiet else [*_blocks(report)]
    return "\n".join([*blocks, *_closing(report)]) + "\n" + _verified(report)


def render_concise(report: Report) -> str:
    """One line per finding: `path:line:col: NKI1172 [manual] message`."""
    lines = [
        f"{place(f)}: {f.rule} [{f.safety.value}] {f.message}"
        for result in report.results
        for f in ([] if report.quiet else result.findings)
    ]
    return "\n".join([*lines, *_closing(report)]) + "\n" + _verified(report)


def _verified(report: Report) -> str:
    return f"\n{report.verified}" if report.verified else ""


def place(finding: Finding) -> str:
    """`path:line:col`."""
    return f"{finding.path}:{finding.line}:{finding.column}"


def _blocks(report: Report) -> Iterator[str]:
    for result in report.results:
        lines = [line.rstrip("\r\n") for line in python_lines(result.before)]
        followers = (*result.findings[1:], None)
        for finding, follower in zip(result.findings, followers, strict=False):
            # Findings of one statement share its edit: it is shown once, after all of them.
            is_last = follower is None or follower.edits != finding.edits
            block = [
                *_block(finding, lines, report),
                *(_edit(finding, report) if is_last else ()),
            ]
            yield "\n".join(block) + "\n"


def _block(finding: Finding, lines: Sequence[str], report: Report) -> Iterator[str]:
    paint = painter(report.color)
    rule = paint(finding.rule, _COLORS[finding.severity])
    yield f"{rule} [{finding.safety.value}] {finding.message}"
    inside = f" in {finding.kernel}" if finding.kernel else ""
    width = len(str(finding.line))
    yield f"{' ' * width}{paint('-->', 'dim')} {place(finding)}{inside}"
    if 0 < finding.line <= len(lines):
        yield from _excerpt(finding, lines[finding.line - 1], width)
    yield from (f"{' ' * width} = {note}" for note in _notes(finding, report))


def _excerpt(finding: Finding, line: str, width: int) -> Iterator[str]:
    """The finding's first line with carets below what it is about."""
    end = finding.end_column if finding.end_line == finding.line else len(line.rstrip()) + 1
    carets = "^" * max(1, end - finding.column)
    before = "".join(c if c == "\t" else " " for c in line[: finding.column - 1])
    yield f"{' ' * width} |"
    yield f"{finding.line} | {line}"
    yield f"{' ' * width} | {before}{carets}"


def _notes(finding: Finding, report: Report) -> Iterator[str]:
    if finding.assumption:
        yield f"assumes: {finding.assumption}"
    if is_hidden(finding):
        yield "help: applied with --unsafe-fixes"
    if report.verbose:
        yield from (f"because: {fact}" for fact in finding.basis)
    if is_manual(finding):
        yield f"help: nki-migrate explain {finding.rule}"


def _edit(finding: Finding, report: Report) -> Iterator[str]:
    """The text that takes the place of the finding's, indented as it will stand."""
    paint = painter(report.color)
    lines = [line for edit in finding.edits for line in _placed(edit) if line.strip()]
    shown = lines if report.verbose else lines[:_EDIT_LINES]
    margin = " " * len(str(finding.line))
    yield from (f"{margin} {paint('+', 'green')} {line}" for line in shown)
    if len(lines) > len(shown):
        yield f"{margin} + … {len(lines) - len(shown)} more lines (-v, or nki-migrate diff)"


def _placed(edit: Edit) -> list[str]:
    first, *rest = edit.text.splitlines() or [""]
    return [" " * (edit.column - 1) + first, *rest]


def _closing(report: Report) -> Iterator[str]:
    paint = painter(report.color)
    yield from (f"{paint('failed', 'red')} {r.path}: {r.error}" for r in report.results if r.error)
    if not report.quiet:
        yield from kernel_lists(report.results)
    if report.statistics:
        yield from statistics_table(report.results)
    yield paint(summary_line(summarize(report.results), report.target), "bold")


def statistics_table(results: Sequence[FileResult]) -> Iterator[str]:
    """Counts per rule, aligned."""
    yield f"{'rule':<9}{'found':>7}{'fixed':>7}{'unsafe':>8}{'manual':>8}"
    for c in statistics(results):
        yield f"{c.rule:<9}{c.found:>7}{c.fixed:>7}{c.unsafe:>8}{c.manual:>8}"
