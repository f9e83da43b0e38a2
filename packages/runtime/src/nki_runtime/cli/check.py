"""`nki-run --check`: the checks of a command line, and what they print."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from neuroncore.checks import CHECKS, Report, resolve_checks
from neuroncore.machine.backend import Choice
from neuroncore.machine.observe import watch_everywhere


class Checker:
    """The checks that `--check` names: they watch the run, or read the program before it.

    Raises LaunchError for an unknown name.
    """

    def __init__(self, names: str | None) -> None:
        given = [name.strip() for name in (names or "").split(",")]
        self._checks = [] if names is None else resolve_checks(given)
        self._report = Report()

    def begin(self, source: Path | None, choice: Choice) -> None:
        """Watch all kernels of the process from now on; read the program's source as the compiler
        of the chosen NKI version would.
        """
        watch_everywhere(*(c.watcher(self._report) for c in self._checks if c.watcher))
        for check in self._checks:
            if check.source is not None and source is not None and source.suffix == ".py":
                for finding in check.source(source, choice.nki, choice.options):
                    self._report.add(finding)

    def finish(self) -> bool:
        """Print what was found on stderr; whether any of it is an error."""
        if len(self._report):
            found = Counter(finding.rule for finding in self._report)
            counts = ", ".join(f"{name} {found[name]}" for name in CHECKS if found[name])
            noun = "finding" if len(self._report) == 1 else "findings"
            sys.stderr.write(f"{self._report}\n\nnki-run: {len(self._report)} {noun} ({counts})\n")
        return any(finding.severity == "error" for finding in self._report)
