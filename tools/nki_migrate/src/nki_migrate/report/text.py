"""The report for people: each finding with its source line, and the line that closes a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from nki_migrate.findings import Edit, FileResult, Finding, Severity
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


@dataclass(frozen=True, slots=True)
class TextOptions:
    """How much to say: `quiet` only the closing line, `verbose` also what each edit rests on."""

    target: str
    color: bool = False
    quiet: bool = False
    verbose: bool = False
    statistics: bool = False


def render_text(results: Sequence[FileResult], options: TextOptions) -> str:
    """Findings as blocks with a source excerpt, then failures, kernels and the closing line."""
    blocks = [] if options.quiet else [*_blocks(results, options)]
    return "\n".join([*blocks, *_closing(results, options)]) + "\n"


def render_concise(results: Sequence[FileResult], options: TextOptions) -> str:
    """One line per finding: `path:line:col: NKI1172 [manual] message`."""
    lines = [
        f"{f.path}:{f.line}:{f.column}: {f.rule} [{f.safety.value}] {f.message}"
        for result in results
        for f in ([] if options.quiet else result.findings)
    ]
    return "\n".join([*lines, *_closing(results, options)]) + "\n"


def _blocks(results: Sequence[FileResult], options: TextOptions) -> Iterator[str]:
    for result in results:
        lines = result.before.splitlines()
        followers = (*result.findings[1:], None)
        for finding, follower in zip(result.findings, followers, strict=False):
            # Findings of one statement share its edit: it is shown once, after all of them.
            is_last = follower is None or follower.edits != finding.edits
            block = [
                *_block(finding, lines, options),
                *(_edit(finding, options) if is_last else ()),
            ]
            yield "\n".join(block) + "\n"


def _block(finding: Finding, lines: Sequence[str], options: TextOptions) -> Iterator[str]:
    paint = painter(options.color)
    rule = paint(finding.rule, _COLORS[finding.severity])
    yield f"{rule} [{finding.safety.value}] {finding.message}"
    inside = f" in {finding.kernel}" if finding.kernel else ""
    width = len(str(finding.line))
    place = f"{finding.path}:{finding.line}:{finding.column}"
    yield f"{' ' * width}{paint('-->', 'dim')} {place}{inside}"
    if 0 < finding.line <= len(lines):
        yield from _excerpt(finding, lines[finding.line - 1], width)
    yield from (f"{' ' * width} = {note}" for note in _notes(finding, options))


def _excerpt(finding: Finding, line: str, width: int) -> Iterator[str]:
    """The finding's first line with carets below what it is about."""
    end = finding.end_column if finding.end_line == finding.line else len(line.rstrip()) + 1
    carets = "^" * max(1, end - finding.column)
    before = "".join(c if c == "\t" else " " for c in line[: finding.column - 1])
    yield f"{' ' * width} |"
    yield f"{finding.line} | {line}"
    yield f"{' ' * width} | {before}{carets}"


def _notes(finding: Finding, options: TextOptions) -> Iterator[str]:
    if finding.assumption:
        yield f"assumes: {finding.assumption}"
    if is_hidden(finding):
        yield "help: applied with --unsafe-fixes"
    if options.verbose:
        yield from (f"because: {fact}" for fact in finding.basis)
    if is_manual(finding):
        yield f"help: nki-migrate explain {finding.rule}"


def _edit(finding: Finding, options: TextOptions) -> Iterator[str]:
    """The text that takes the place of the finding's, indented as it will stand."""
    paint = painter(options.color)
    lines = [line for edit in finding.edits for line in _placed(edit) if line.strip()]
    shown = lines if options.verbose else lines[:_EDIT_LINES]
    margin = " " * len(str(finding.line))
    yield from (f"{margin} {paint('+', 'green')} {line}" for line in shown)
    if len(lines) > len(shown):
        yield f"{margin} + … {len(lines) - len(shown)} more lines (-v, or nki-migrate diff)"


def _placed(edit: Edit) -> list[str]:
    first, *rest = edit.text.splitlines() or [""]
    return [" " * (edit.column - 1) + first, *rest]


def _closing(results: Sequence[FileResult], options: TextOptions) -> Iterator[str]:
    paint = painter(options.color)
    yield from (f"{paint('failed', 'red')} {r.path}: {r.error}" for r in results if r.error)
    if not options.quiet:
        yield from kernel_lists(results)
    if options.statistics:
        yield from statistics(results)
    yield paint(summary_line(summarize(results), options.target), "bold")
