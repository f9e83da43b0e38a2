"""Estimates every kernel that a process launches; a line about each to the file NKI_ESTIMATES.

Lines are written at once, for a process may end at any time, to a file that is opened first, for a
corpus may confine its children. `python -m benchmarks.model coverage` starts processes with it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from neuroncore.errors import KernelError
from neuroncore.machine.launch import running
from neuroncore.machine.observe import watch_everywhere
from neuroncore.timeline import estimate
from nki_runtime.trace import LaunchRecorder

VARIABLE = "NKI_ESTIMATES"


class Estimates(LaunchRecorder):
    """A line for each launch: that it has an estimate, or what it is rejected for."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.lines = file.open("a", encoding="utf-8")

    def ended(self, value: Any) -> None:
        kernel = running("an estimate").kernel
        super().ended(value)
        reasons = [str(reason).splitlines()[0] for reason in self.left_out]
        unknown: set[str] = set()
        for program in self.programs:
            try:
                found = estimate(program, mode="device", verified=True).uncertainty
                unknown.update(found.domain.get("unknown cost", []))
            except KernelError as reason:
                reasons += [each.what for each in getattr(reason, "errors", [reason])]
        self.programs.clear()
        self.left_out.clear()
        line = {"kernel": kernel, "rejected": reasons[:1], "unknown": sorted(unknown)}
        self.lines.write(json.dumps(line) + "\n")
        self.lines.flush()


def install() -> None:
    """Write estimates from now on, where the environment names a file."""
    if VARIABLE in os.environ:
        watch_everywhere(Estimates(Path(os.environ[VARIABLE])))
