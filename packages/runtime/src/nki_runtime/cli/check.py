"""`nki-run --check`: the checks of a command line, and their output."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from neuroncore import findings
from neuroncore.checks import CHECKS, Report, resolve_checks
from neuroncore.commands.files import check_writable, write_output
from neuroncore.commands.terminal import use_color
from neuroncore.commands.tracebacks import place_of_user
from neuroncore.confinement.attempts import attempts
from neuroncore.errors import KernelError
from neuroncore.findings import Finding
from neuroncore.findings.formats import FORMATS
from neuroncore.findings.formats.text import colored
from neuroncore.machine.backend import Choice
from neuroncore.machine.observe import watch_everywhere


class Checker:
    """The checks that `--check` names: they watch the run, or read the program before it. Their
    findings, and the error that ends the run, are printed in a format of `--output-format`, on
    stderr or in the file of `--output-file`.

    Raises LaunchError for an unknown name.
    """

    def __init__(
        self, names: str | None, output_format: str, file: Path | None = None, color: str = "auto"
    ) -> None:
        words = [] if names is None else [name.strip() for name in names.split(",")]
        self._checks = resolve_checks(words)
        self._report, self._format, self._file, self._color = Report(), output_format, file, color
        self._program: Path | None = None
        self._is_for_people = output_format == "text" and file is None

    def begin(self, source: Path | None, choice: Choice) -> None:
        """Watch all kernels of the process from now on; read the program's source as the compiler
        of the chosen NKI version would.
        """
        self._program = source
        if self._file is not None and self._file.is_file():
            self._file.unlink()  # a report of an earlier run, where this one ends without any
        watch_everywhere(*(c.watcher(self._report) for c in self._checks if c.watcher))
        for check in self._checks:
            if check.source is not None and source is not None and source.suffix == ".py":
                for finding in check.source(source, choice.nki, choice.options):
                    self._report.add(finding)

    @property
    def findings(self) -> Sequence[Finding]:
        """The findings so far."""
        return self._report.findings

    def failed(self, error: BaseException) -> bool:
        """Add the error that ends the run to a document; whether that takes the place of its
        traceback on stderr."""
        if self._is_for_people:
            return False
        self._report.add(_of_error(error))
        return self._file is None

    def finish(self) -> bool:
        """Print what was found; whether any of it is an error."""
        for attempt in [] if self._is_for_people else attempts():
            self._report.add(Finding("run", f"the program may not do this: {attempt}"))
        found = self._report.findings
        has_errors = any(finding.severity == "error" for finding in found)
        if self._is_for_people:
            if found:
                color = use_color(self._color, sys.stderr)
                shown = map(colored, found) if color else map(str, found)
                sys.stderr.write("\n\n".join([*shown, _conclusion(found)]) + "\n")
            return has_errors
        text = FORMATS[self._format](self._document(found, has_errors))
        if self._file is None:
            sys.stderr.write(text)
        else:
            write_output("nki-run", "--output-file", self._file, text)
        return has_errors

    def _document(self, found: Sequence[Finding], has_errors: bool) -> findings.Report:
        """The program and the findings by file, as the output formats receive them."""
        program = str(self._program or "")
        files: dict[str, list[Finding]] = {program: []}
        for finding in found:
            path = finding.region.path
            is_program = not path or Path(path).absolute() == Path(program).absolute()
            files.setdefault(program if is_program else path, []).append(finding)
        status = {"status": "failed" if has_errors else "passed"}
        return findings.Report(
            "nki-run",
            [
                findings.FileReport(path, tuple(own), properties=status if path == program else {})
                for path, own in files.items()
            ],
            summary=Counter(finding.rule for finding in found),
            conclusion=_conclusion(found),
            exit_code=int(has_errors),
            distribution="nki-runtime",
            color=self._file is None and use_color(self._color, sys.stderr),
        )


def checker_of(given: argparse.Namespace) -> Checker | None:
    """The checker of a command line; None where it requests neither checks nor a document."""
    if given.check is None and given.output_file is None and given.output_format == "text":
        return None
    if given.output_file is not None:
        check_writable(given.output_file, "--output-file")
    return Checker(given.check, given.output_format, given.output_file, given.color)


def _of_error(error: BaseException) -> Finding:
    """The finding of the error that ended the program."""
    name = type(error).__name__
    if isinstance(error, SystemExit):
        return Finding("run", f"the program ended with exit code {error.code}")
    if isinstance(error, KernelError):
        return Finding(
            "run", error.what, error.place, expected=error.expected, got=error.got,
            cure=error.hint, source=error.rule, code=name, instruction=error.instruction,
            operand=error.operand, position=error.position,
        )  # fmt: skip
    try:
        text = str(error)
    except Exception:
        text = "<exception str() failed>"  # as Python shows it
    return Finding("run", text or name, place_of_user(error), code=name)


def _conclusion(found: Sequence[Finding]) -> str:
    counted = Counter(finding.rule for finding in found)
    counts = ", ".join(f"{name} {counted[name]}" for name in (*CHECKS, "run") if counted[name])
    noun = "finding" if len(found) == 1 else "findings"
    return f"nki-run: {len(found)} {noun}" + (f" ({counts})" if counts else "")
