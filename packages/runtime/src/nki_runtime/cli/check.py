"""`nki-run --check`: the checks of a command line, and their output."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from neuroncore import findings
from neuroncore.checks import CHECKS, Report, resolve_checks
from neuroncore.commands.files import OutputError, ReservedOutput
from neuroncore.commands.interruption import INTERRUPTED
from neuroncore.commands.streams import unwritable
from neuroncore.commands.terminal import use_color
from neuroncore.commands.tracebacks import place_of_user
from neuroncore.errors import KernelError
from neuroncore.findings import Finding, Region
from neuroncore.findings.formats import FORMATS
from neuroncore.findings.formats.text import colored
from neuroncore.machine.backend import Choice
from neuroncore.machine.observe import watch_everywhere
from neuroncore.python_source import SourceError
from nki_runtime.cli.sent_findings import SentFindings


class Checker:
    """The checks that `--check` names: they watch the run, or read the program before it. Their
    findings, and the error that ends the run, are a document in a format of `--output-format`, on
    stdout or in the file of `--output-file`, or a text on stderr.

    The document is written by a process that survives the run, with the exit code of the command.
    Raises LaunchError for an unknown name, OutputError for a file that may not be written.
    """

    def __init__(
        self, names: str | None, output_format: str, file: Path | None = None,
        color: str = "auto", program: Path | None = None,
    ) -> None:  # fmt: skip
        words = [] if names is None else [name.strip() for name in names.split(",")]
        self._checks = resolve_checks(words)
        self._report, self._format, self._color = Report(), output_format, color
        self._file = None if file is None else ReservedOutput("--output-file", file)
        self._program = str(program or "")
        self._is_for_people = output_format == "text" and file is None
        self._sent = SentFindings(Path.cwd())
        self._process, self._stdout = 0, 1

    def start(self, supervised: bool) -> None:
        """This process runs the program: where a document goes to stdout, the program's stdout
        becomes stderr."""
        self._process = os.getpid()
        if self._is_for_people or self._file is not None:
            return
        sys.stdout.flush()
        if not supervised:
            self._stdout = os.dup(1)
        os.dup2(2, 1)

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

    def failed(self, error: BaseException) -> None:
        """Add the error that ends the run to a document."""
        if not self._is_for_people and (finding := _of_error(error)) is not None:
            self._report.add(finding)
            self._send()

    def finish(self) -> bool:
        """Print what was found, or send it for the document; whether any of it is an error."""
        found = self._report.findings
        if self._is_for_people and found:
            color = use_color(self._color, sys.stderr)
            shown = map(colored, found) if color else map(str, found)
            sys.stderr.write("\n\n".join([*shown, _conclusion(found)]) + "\n")
        self._send()
        return _has_errors(found)

    def _send(self) -> None:
        if os.getpid() == self._process:  # not of a process that the program has forked
            self._sent.send([] if self._is_for_people else self._report.findings)

    def write(self, code: int, reasons: Sequence[str]) -> int:
        """Write the document of a run that ended with an exit code, for these reasons of its
        supervisor; the exit code of the command.
        """
        if self._process not in (0, os.getpid()):  # one that the program has forked
            return code
        found = self._sent.received()
        if found is None and not code:
            code, reasons = 1, ["the program ended by os._exit, before its checks did"]
            if self._is_for_people:
                sys.stderr.write(f"nki-run: {reasons[0]}\n")
        if self._is_for_people:
            return code
        found = [*(found or ()), *(Finding("run", reason) for reason in reasons)]
        if code and not _has_errors(found):
            found.append(Finding("run", f"the program ended with exit code {code}"))
        try:
            self._print(FORMATS[self._format](self._document(found, code)))
        except OutputError as mistake:
            sys.stderr.write(f"nki-run: {mistake}\n")
            return 2
        except OSError as mistake:
            return unwritable("nki-run", mistake)
        return code

    def _print(self, text: str) -> None:
        if self._file is not None:
            self._file.write("nki-run", text)
            return
        with os.fdopen(self._stdout, "wb", closefd=False) as stream:
            stream.write(text.encode(errors="backslashreplace"))

    def _document(self, found: Sequence[Finding], code: int) -> findings.Report:
        """The program and the findings by file, as the output formats receive them."""
        program = self._sent.relative(self._program)
        files: dict[str, list[Finding]] = {program: []}
        for finding in found:
            if finding.place is None and self._format != "text":  # of the program as a whole
                finding = replace(finding, place=Region(program))
            files.setdefault(finding.region.path or program, []).append(finding)
        status = {"status": "failed" if code else "passed"}
        return findings.Report(
            "nki-run",
            [
                findings.FileReport(path, tuple(own), properties=status if path == program else {})
                for path, own in files.items()
            ],
            parameters={"exit_code": code},
            summary=Counter(finding.rule for finding in found),
            conclusion=_conclusion(found),
            exit_code=code,
            distribution="nki-runtime",
            color=self._file is None and use_color(self._color, sys.stdout),
        )


def checker_of(given: argparse.Namespace, program: Path | None) -> Checker | None:
    """The checker of a command line; None where it requests neither checks nor a document.

    Raises LaunchError, OutputError.
    """
    if given.check is None and given.output_file is None and given.output_format == "text":
        return None
    return Checker(given.check, given.output_format, given.output_file, given.color, program)


def exit_code(error: BaseException) -> int:
    """The exit code of a process that ends in an error, as Python decides it."""
    if not isinstance(error, SystemExit):
        return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    if isinstance(error.code, int):
        return error.code & 0xFF
    return int(error.code is not None)


def _of_error(error: BaseException) -> Finding | None:
    """The finding of the error that ended the program; None of an exit code alone."""
    name = type(error).__name__
    if isinstance(error, SystemExit):
        code = error.code
        is_text = code is not None and not isinstance(code, int)
        return Finding("run", _text(code), code=name) if is_text else None
    if isinstance(error, SourceError):
        return Finding("run", error.reason, error.region, code=name)
    if isinstance(error, KernelError):
        return Finding(
            "run", error.what, error.place, expected=error.expected, got=error.got,
            cure=error.hint, source=error.rule, code=name, instruction=error.instruction,
            operand=error.operand, position=error.position,
        )  # fmt: skip
    return Finding("run", _text(error) or name, place_of_user(error), code=name)


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception:
        return "<exception str() failed>"  # as Python shows it


def _has_errors(found: Sequence[Finding]) -> bool:
    return any(finding.severity == "error" for finding in found)


def _conclusion(found: Sequence[Finding]) -> str:
    counted = Counter(finding.rule for finding in found)
    counts = ", ".join(f"{name} {counted[name]}" for name in (*CHECKS, "run") if counted[name])
    noun = "finding" if len(found) == 1 else "findings"
    return f"nki-run: {len(found)} {noun}" + (f" ({counts})" if counts else "")
