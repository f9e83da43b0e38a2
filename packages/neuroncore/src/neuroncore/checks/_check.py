"""The protocol of a check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from neuroncore.checks.report import Report
from neuroncore.findings import Finding
from neuroncore.machine.observe import Watcher
from neuroncore.options import Options


@dataclass(frozen=True, slots=True)
class Check:
    """One check: what it proves of a run that it finds nothing in, and how it is made.

    `watcher` makes the observer of a run that fills a report. `source` reads a script instead,
    under an NKI version and options, before anything runs.
    """

    name: str
    proves: str
    watcher: Callable[[Report], Watcher] | None = None
    source: Callable[[Path, str, Options], list[Finding]] | None = None
