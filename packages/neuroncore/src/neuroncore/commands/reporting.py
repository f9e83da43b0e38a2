"""`--report FILE.html`: one page about a run, written by an installed reporter."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from neuroncore.commands.files import check_writable, naming_output
from neuroncore.errors import LaunchError

GROUP = "nki_runtime.reporters"
"""Entry points of classes that are called with a command and a file, and are reporters."""
ADVICE = ("quick", "all")
"""How much of the advice on large kernels is played: as far as it takes seconds, or all of it."""


class Reporter(Protocol):
    """A page about one run of a command."""

    command: str
    file: Path
    advice: str
    """One of ADVICE."""

    @property
    def watcher(self) -> Any:
        """The observer of the kernels that run (neuroncore.machine.observe.Watcher)."""
        ...

    def add(self, kind: str, value: Any) -> None:
        """Show a result: "timelines", "findings", an "error", a "text" with its title,
        "migrations" as (path, text before, text after, findings), "orders" of a kernel's
        operations, "schedules" that a search found."""
        ...

    def write(self) -> str:
        """Write the page; what it contains, in a few words. Raises OSError."""
        ...


def add_report(parser: argparse.ArgumentParser) -> None:
    """`--report FILE.html` and `--advice`."""
    parser.add_argument(
        "--report",
        metavar="FILE.html",
        type=Path,
        help="write one page about the run, for any browser (needs nki-scope)",
    )
    parser.add_argument(
        "--advice", choices=ADVICE, default=ADVICE[0],
        help="with --report: of a large kernel, play the advice that takes seconds (default), or "
        "all of it",
    )  # fmt: skip


def make_reporter(command: str, given: argparse.Namespace) -> Reporter | None:
    """The reporter that a command line names, if it does.

    Raises LaunchError where it or its file is missing.
    """
    file: Path | None = given.report
    if file is None:
        return None
    check_writable(file, "--report")
    if (reporter := installed_reporter(command, file)) is not None:
        reporter.advice = given.advice
        return reporter
    raise LaunchError(
        f"--report {file}: no reporter is installed", expected="nki-scope",
        hint="pip install nki-scope",
    )  # fmt: skip


def installed_reporter(command: str, file: Path) -> Reporter | None:
    """The reporter that a package announces; None where none does."""
    from importlib.metadata import entry_points  # 20 ms

    return next((point.load()(command, file) for point in entry_points(group=GROUP)), None)


def finish_report(reporter: Reporter) -> None:
    """Write the page and name it on stderr. Raises OutputError."""
    with naming_output("--report", reporter.file):
        contents = reporter.write()
    sys.stderr.write(f"{reporter.command}: --report wrote {reporter.file} ({contents})\n")


def write_report(
    command: str, given: argparse.Namespace, results: Callable[..., Mapping[str, Any]], *of: Any
) -> None:
    """Write the page that `--report` names, if it does, of the results by kind of `results(*of)`.

    Raises LaunchError where the reporter is missing, OutputError for a file that cannot be written.
    """
    if (reporter := make_reporter(command, given)) is None:
        return
    for kind, value in results(*of).items():
        reporter.add(kind, value)
    finish_report(reporter)
