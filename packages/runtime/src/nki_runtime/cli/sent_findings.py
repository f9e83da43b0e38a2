"""Findings of a confined program, in the memory that it shares with its supervisor."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from mmap import mmap
from pathlib import Path

from neuroncore.findings import Certainty, Finding, Region, Severity

_LENGTH = 8
_BYTES = 1 << 24
_TYPES = {
    "str": str, "int": int, "bool": bool, "str | None": str | None, "int | None": int | None,
}  # fmt: skip
"""Of fields that are sent as they are."""


class SentFindings:
    """What one process writes and another one, which forked it, reads when it has ended.

    Paths beneath the folder are relative to it. A program can write there; its exit code is
    decided by its supervisor alone.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._shared = folder, mmap(-1, _BYTES)

    def send(self, findings: Sequence[Finding]) -> None:
        """Replace what was sent before; as many findings as there is space for."""
        rows = [asdict(replace(f, place=self._region(f))) for f in findings]
        while len(text := json.dumps(rows, default=str).encode()) > _BYTES - _LENGTH:
            del rows[len(rows) // 2 :]
        self._shared[:_LENGTH] = bytes(_LENGTH)
        self._shared[_LENGTH : _LENGTH + len(text)] = text
        self._shared[:_LENGTH] = len(text).to_bytes(_LENGTH)

    def received(self) -> list[Finding] | None:
        """The findings; None where none were sent, not even an empty list."""
        length = int.from_bytes(self._shared[:_LENGTH])
        if not length:
            return None
        try:
            return [_finding(**row) for row in json.loads(self._shared[_LENGTH : _LENGTH + length])]
        except (ValueError, TypeError, RecursionError):  # the program has overwritten them
            return None

    def _region(self, finding: Finding) -> Region | None:
        if finding.place is None:
            return None
        region = finding.region
        return replace(region, path=self.relative(region.path))

    def relative(self, path: str) -> str:
        """The path from the folder, of a file beneath it."""
        full = Path(os.path.normpath(self._folder / path))
        return str(full.relative_to(self._folder)) if full.is_relative_to(self._folder) else path


def _finding(
    *, place: dict | None, severity: str, certainty: str | None, basis: list, edits: list,
    notes: list, **others: object,
) -> Finding:  # fmt: skip
    region = None if place is None else Region(**place)
    finding = Finding(
        place=region, severity=Severity(severity),
        certainty=None if certainty is None else Certainty(certainty),
        basis=tuple(map(str, basis)), notes=tuple(map(str, notes)), **others,  # type: ignore[arg-type]
    )  # fmt: skip
    for record in (finding, *([] if region is None else [region])):
        for field in fields(record):
            if not isinstance(getattr(record, field.name), _TYPES.get(str(field.type), object)):
                raise TypeError(field.name)
    return finding
