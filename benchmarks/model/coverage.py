"""How many of the kernels that a command launches, in all of its processes, have an estimate.

python -m benchmarks.model coverage python -m pytest tests/examples
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ESTIMATES = Path(__file__).parents[2] / "tests" / "corpora" / "estimates"
"""What makes the processes of a command write a line about every launch."""


def coverage_lines(command: Sequence[str]) -> Iterator[str]:
    """Run the command, and count."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "estimates.jsonl"
        search = os.pathsep.join([str(ESTIMATES), os.environ.get("PYTHONPATH", "")])
        file.touch()
        done = subprocess.run(
            command, env={**os.environ, "PYTHONPATH": search, "NKI_ESTIMATES": str(file)}
        )
        yield f"{' '.join(command)}: exit status {done.returncode}"
        yield from counts([json.loads(line) for line in file.read_text("utf-8").splitlines()])


def counts(launches: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """How many launches have an estimate; the others by reason; instructions of unknown cost."""
    reasons = Counter(_class(reason) for each in launches for reason in each["rejected"])
    without = sum(bool(each["rejected"]) for each in launches)
    kernels, share = len({each["kernel"] for each in launches}), 1 - without / len(launches or [0])
    yield (
        f"{len(launches) - without} of {len(launches)} launches of {kernels} kernels have an "
        f"estimate ({share:.1%})"
    )
    yield from (f"  {number} x {reason}" for reason, number in reasons.most_common())
    unknown = Counter(name for each in launches for name in each["unknown"])
    yield from (f"  {number} with a guess for {name}" for name, number in unknown.most_common())


def _class(reason: str) -> str:
    """The reason without its place."""
    return re.sub(r"^\S+:\d+:\d+: ", "", reason)
