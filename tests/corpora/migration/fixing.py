"""nki-migrate on a folder, as a user runs it: in place, in a process with limits."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nki_migrate.settings.request import VERSIONS

TARGET = VERSIONS[-1]
SECONDS, MEBIBYTES = 180.0, 4096
_BOOT = """
import resource, runpy, sys
size = int(sys.argv.pop(1)) << 20
resource.setrlimit(resource.RLIMIT_AS, (size, size))
runpy.run_module("nki_migrate", run_name="__main__", alter_sys=True)
"""


@dataclass(frozen=True, slots=True)
class Fixed:
    """What the command said about the files that it was given; `crash` is why it said nothing."""

    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    crash: str = ""

    def crash_of(self, path: Path) -> str:
        """Why a file was not processed; empty when it was."""
        if self.crash:
            return self.crash
        return self.files[path.as_posix()]["error"] or ""

    def findings(self, path: Path) -> list[dict[str, Any]]:
        """The findings of a file."""
        found = self.files.get(path.as_posix())
        return found["findings"] if found else []


def fix(folder: Path, sources: Sequence[Path], facts: Path | None = None) -> Fixed:
    """Migrate `sources` (relative to `folder`) in place."""
    what = ["fix", "--to", TARGET, "--isolated", "--output-format", "json", "-j", "1"]
    if facts is not None:
        what += ["--facts", str(facts)]
    command = [sys.executable, "-c", _BOOT, str(MEBIBYTES), *what, *map(str, sources)]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return Fixed(crash=f"nki-migrate did not end within {SECONDS:g} s")
    try:
        report = json.loads(done.stdout)
    except json.JSONDecodeError:
        said = done.stderr.strip().splitlines()
        return Fixed(crash=f"exit code {done.returncode}: {said[-1] if said else 'no message'}")
    return Fixed({Path(file["path"]).as_posix(): file for file in report["files"]})
