"""`traps`: code that is right here and wrong on a device, from a catalogue with sources.

Every trap has a record in `data/`; detectors report traps that a run or a source can decide and
that no other check reports.
"""

from pathlib import Path

from neuroncore.checks._check import Check
from neuroncore.checks.traps.catalog import (
    HEAD,
    Example,
    Handling,
    Trap,
    head_of,
    known_findings,
    traps,
)
from neuroncore.checks.traps.old_harness import find_old_harness
from neuroncore.checks.traps.watcher import Traps
from neuroncore.findings import Finding
from neuroncore.options import Options

__all__ = [
    "CHECK",
    "HEAD",
    "Example",
    "Handling",
    "Trap",
    "Traps",
    "head_of",
    "known_findings",
    "traps",
]


def _read(script: Path, nki: str, options: Options) -> list[Finding]:
    return find_old_harness(script, nki)


CHECK = Check(
    "traps", "no pattern that only a device shows to be wrong (docs/traps.md)", Traps, _read
)
