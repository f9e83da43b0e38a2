"""How many kernel files per second `nki-migrate check` reads, in CPU time of one core.

The examples, and every Python file of the clones below NKI_CORPUS (`<owner>/<name>`) when that is
set. A kernel file is one that mentions nki; the others are not parsed and cost next to nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from nki_migrate.findings import FileStatus
from nki_migrate.processing import Task, process_all
from nki_migrate.request import Request
from nki_migrate.sources import mentions_nki

ROOT = Path(__file__).parent.parent
REPEATS = 3


def tasks_below(folder: Path) -> tuple[list[Task], int]:
    """The kernel files below a folder as tasks, and how many Python files there are."""
    files = sorted(path for path in folder.rglob("*.py") if path.is_file())
    raws = [(path, path.read_bytes()) for path in files]
    return [Task(str(p), raw, Request()) for p, raw in raws if mentions_nki(raw)], len(files)


def check(tasks: Sequence[Task]) -> tuple[float, int, int]:
    """CPU seconds of the fastest of three runs in one process, findings, failed files."""
    best, findings, failed = float("inf"), 0, 0
    for _ in range(REPEATS):
        start = time.process_time()
        results = list(process_all(tasks, jobs=1))
        best = min(best, time.process_time() - start)
        findings = sum(len(result.findings) for result in results)
        failed = sum(result.status is FileStatus.FAILED for result in results)
    return best, findings, failed


def print_row(name: str, folder: Path) -> None:
    """One line of the table."""
    tasks, files = tasks_below(folder)
    if not tasks:
        return
    lines = sum(task.raw.count(b"\n") for task in tasks)
    seconds, findings, failed = check(tasks)
    print(
        f"{name:<32}{files:>7}{len(tasks):>8}{lines:>8}{findings:>10}{failed:>8}"
        f"{seconds:>8.2f}{len(tasks) / seconds:>9.1f}"
    )


def main() -> None:
    """Print the table."""
    print(
        f"{'set':<32}{'files':>7}{'kernel':>8}{'lines':>8}{'findings':>10}{'failed':>8}"
        f"{'CPU s':>8}{'files/s':>9}"
    )
    for name in ("beta1", "beta1_todo", "beta2"):
        print_row(f"examples/{name}", ROOT / "examples" / name)
    corpus = os.environ.get("NKI_CORPUS")
    if corpus is None:
        print("(set NKI_CORPUS to a folder of clones, <owner>/<name>, to read those too)")
        return
    for clone in sorted(Path(corpus).glob("*/*")):
        print_row("/".join(clone.parts[-2:]), clone)


if __name__ == "__main__":
    main()
