"""The report for people: each finding with its source line, and the lines that close a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from neuroncore.findings.finding import Edit, Finding, Severity, python_lines, underline
from neuroncore.findings.report import Report

_EDIT_LINES = 8
_CODES = {"bold": "1", "red": "31", "yellow": "33", "cyan": "36", "green": "32", "dim": "2"}
_COLORS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


def render(report: Report) -> str:
    """Findings as blocks with a source excerpt, then failures and the closing lines."""
    blocks = [] if report.quiet else [*_blocks(report)]
    if not report.result:
        return "\n".join([*blocks, *closing(report)]) + "\n"
    before = [*report.problems, *([""] if report.problems else []), *blocks]
    first = [report.result, *before] if before else []
    return "\n".join([*first, *closing(report), "", report.result])


def closing(report: Report) -> Iterator[str]:
    """Files that failed, and the closing lines of the tool."""
    paint = _painter(report.color)
    failed = ((file.path, file.error) for file in report.files if file.error)
    yield from (f"{paint('failed', 'red')} {path}: {error}" for path, error in failed)
    yield from report.closing
    yield paint(report.conclusion, "bold")


def _painter(color: bool) -> Callable[[str, str], str]:
    """A function that colours text with a named colour, or leaves it unchanged."""
    if not color:
        return lambda text, name: text
    return lambda text, name: f"\x1b[{_CODES[name]}m{text}\x1b[0m"


def colored(finding: Finding) -> str:
    """The text of a finding, its label in the colour of its severity."""
    label = f"{finding.label}: "
    return str(finding).replace(label, _painter(True)(label, _COLORS[finding.severity]), 1)


def head(finding: Finding, label: str) -> str:
    """`NKI1172 [manual] message`."""
    safety = "" if finding.safety is None else f" [{finding.safety}]"
    return f"{label}{safety} {finding.message}"


def _blocks(report: Report) -> Iterator[str]:
    for file in report.files:
        lines = [line.rstrip("\r\n") for line in python_lines(file.text)]
        shown = [finding for finding in file.findings if report.is_shown(finding)]
        for finding, follower in zip(shown, (*shown[1:], None), strict=False):
            # Findings of one statement share its edit: it is shown once, after all of them.
            is_last = follower is None or follower.edits != finding.edits
            edit = _edit(finding, report) if is_last else ()
            yield "\n".join([*_block(finding, lines, report), *edit]) + "\n"


def _block(finding: Finding, lines: Sequence[str], report: Report) -> Iterator[str]:
    paint, place = _painter(report.color), finding.region
    yield head(finding, paint(finding.label, _COLORS[finding.severity]))
    inside = f" in {finding.kernel}" if finding.kernel else ""
    margin = " " * len(str(place.line))
    if finding.place is not None:
        yield f"{margin}{paint('-->', 'dim')} {place}{inside}"
    if finding.place is not None and 0 < place.line <= len(lines):
        line = lines[place.line - 1]
        yield f"{margin} |"
        yield f"{place.line} | {line}"
        yield f"{margin} | {underline(place, line)}"
    yield from (f"{margin} = {note}" for note in report.notes(finding))


def _edit(finding: Finding, report: Report) -> Iterator[str]:
    """The text of the edits, indented as it will be in the file."""
    paint = _painter(report.color)
    lines = [line for edit in finding.edits for line in _edited_lines(edit) if line.strip()]
    shown = lines if report.verbose else lines[:_EDIT_LINES]
    margin = " " * len(str(finding.region.line))
    yield from (f"{margin} {paint('+', 'green')} {line}" for line in shown)
    if len(lines) > len(shown):
        more = len(lines) - len(shown)
        yield f"{margin} + … {more} more lines (-v, or {report.tool} diff)"


def _edited_lines(edit: Edit) -> list[str]:
    first, *rest = edit.text.splitlines() or [""]
    return [" " * (edit.column - 1) + first, *rest]
