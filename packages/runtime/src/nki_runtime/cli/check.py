"""`nki-run --check`: the checks of a command line, and their output."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from neuroncore import findings
from neuroncore.checks import CHECKS, Report, resolve_checks
from neuroncore.commands.terminal import use_color
from neuroncore.findings import Finding
from neuroncore.findings.formats import FORMATS
from neuroncore.findings.formats.text import colored
from neuroncore.machine.backend import Choice
from neuroncore.machine.observe import watch_everywhere


class Checker:
    """The checks that `--check` names: they watch the run, or read the program before it. Their
    findings are printed in a format of `--output-format`.

    Raises LaunchError for an unknown name.
    """

    def __init__(self, names: str, output_format: str) -> None:
        self._checks = resolve_checks([name.strip() for name in names.split(",")])
        self._report, self._format = Report(), output_format

    def begin(self, source: Path | None, choice: Choice) -> None:
        """Watch all kernels of the process from now on; read the program's source as the compiler
        of the chosen NKI version would.
        """
        watch_everywhere(*(c.watcher(self._report) for c in self._checks if c.watcher))
        for check in self._checks:
            if check.source is not None and source is not None and source.suffix == ".py":
                for finding in check.source(source, choice.nki, choice.options):
                    self._report.add(finding)

    @property
    def findings(self) -> Sequence[Finding]:
        """The findings so far."""
        return self._report.findings

    def finish(self) -> bool:
        """Print what was found on stderr; whether any of it is an error."""
        found = self._report.findings
        has_errors = any(finding.severity == "error" for finding in found)
        if self._format != "text":
            sys.stderr.write(FORMATS[self._format](_document(found, has_errors)))
        elif found:
            shown = map(colored, found) if use_color("auto", sys.stderr) else map(str, found)
            sys.stderr.write("\n\n".join([*shown, _conclusion(found)]) + "\n")
        return has_errors


def _conclusion(found: Sequence[Finding]) -> str:
    counted = Counter(finding.rule for finding in found)
    counts = ", ".join(f"{name} {counted[name]}" for name in CHECKS if counted[name])
    noun = "finding" if len(found) == 1 else "findings"
    return f"nki-run: {len(found)} {noun}" + (f" ({counts})" if counts else "")


def _document(found: Sequence[Finding], has_errors: bool) -> findings.Report:
    """The findings by file, as the output formats receive them."""
    files: dict[str, list[Finding]] = {}
    for finding in found:
        files.setdefault(finding.region.path, []).append(finding)
    return findings.Report(
        "nki-run",
        [findings.FileReport(path, tuple(own)) for path, own in files.items()],
        summary=Counter(finding.rule for finding in found),
        conclusion=_conclusion(found),
        exit_code=int(has_errors),
        distribution="nki-runtime",
    )
