"""How many kernel files per second `nki-migrate check` reads, in CPU time of one core.

First how fast this machine is now (ten million additions in a loop, 0.48 s where the figures of
docs were taken), then files of one kernel repeated to 1,400 lines and of 20,000 lines of host code.
The examples, and every Python file of the clones below NKI_CORPUS (`<owner>/<name>`) when that is
set. A kernel file is one that mentions nki; the others are not parsed and cost next to nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from nki_migrate.engine.processing import Task, process_all
from nki_migrate.engine.results import FileStatus
from nki_migrate.files.sources import mentions_nki
from nki_migrate.settings.request import Request

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


KERNEL = """

@nki.jit
def kernel_{0}(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nl.store(out, nl.exp(tile) * 2.0)
    return out
"""
HOST = """

def host_{0}(a):
    return a + {0}
"""
IMPORTS = "import neuronxcc.nki as nki\nimport neuronxcc.nki.language as nl\n"


def calibration() -> float:
    """Seconds of ten million integer additions."""
    start, total = time.perf_counter(), 0
    for number in range(10_000_000):
        total += number
    return time.perf_counter() - start


def print_long(name: str, piece: str, lines: int) -> None:
    """One line about a file of that many lines."""
    count = lines // piece.count("\n")
    text = IMPORTS + KERNEL.format("first") + "".join(piece.format(i) for i in range(count))
    tasks = [Task("long.py", text.encode(), Request())]
    seconds, findings, failed = check(tasks)
    print(f"{name:<32}{1:>7}{1:>8}{text.count(chr(10)):>8}{findings:>10}{failed:>8}{seconds:>8.2f}")


def main() -> None:
    """Print the table."""
    print(f"calibration: {calibration():.2f} s")
    print(
        f"{'set':<32}{'files':>7}{'kernel':>8}{'lines':>8}{'findings':>10}{'failed':>8}"
        f"{'CPU s':>8}{'files/s':>9}"
    )
    for name in ("beta1", "beta1_todo", "beta2"):
        print_row(f"examples/{name}", ROOT / "examples" / name)
    print_long("kernels of 8 lines", KERNEL, 1400)
    print_long("host functions", HOST, 20_000)
    corpus = os.environ.get("NKI_CORPUS")
    if corpus is None:
        print("(set NKI_CORPUS to a folder of clones, <owner>/<name>, to read those too)")
        return
    for clone in sorted(Path(corpus).glob("*/*")):
        print_row("/".join(clone.parts[-2:]), clone)


if __name__ == "__main__":
    main()
