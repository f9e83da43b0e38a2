"""A sample of every group of the library's tests, drawn by a seed: a process per test."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from tests.corpora.nki_library.groups import TESTS, child_environment, without_folders
from tests.corpora.nki_library.record import Outcome

TARGETS = ("trn2", "trn3")
"""Platforms of the library's harness; a group runs on the first for which it has tests."""
NOT_NEEDED = ("-p", "no:hypothesispytest", "-p", "no:inline_snapshot")
"""Plugins of a development environment whose import takes longer than collecting a file."""
POLL_SECONDS = 2
TOO_LARGE = "too large"
WRONG = "wrong values"
_TOO_MUCH_MEMORY = re.compile(
    r"MemoryError|Unable to allocate|can't allocate memory|memory of this computer|out of memory"
)
_OTHER_VALUES = re.compile(
    r"Validation failed for|Not equal to tolerance|Mismatched elements|not close"
)


@dataclass(frozen=True, slots=True)
class Request:
    """What to draw, what one test may take, and the version of NKI that `nki` is.

    Of a file with tests in `chosen` nothing is drawn: these run.
    """

    seed: str
    tests: int = 20
    gibibytes: float = 16
    cpu_seconds: int = 300
    nki: str = "0.3"
    chosen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Use:
    """What a test took, and a digest of what its kernels returned."""

    cpu_seconds: float
    mebibytes: int
    results: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """What came of the tests that were drawn of one group.

    `suite` tests belong to the group, `runnable` of them are not skipped by the suite.
    """

    group: str
    target: str
    suite: int = 0
    runnable: int = 0
    outcomes: tuple[Outcome, ...] = ()
    uses: Mapping[str, Use] = field(default_factory=dict)
    trouble: str = ""

    def of(self, word: str) -> list[Outcome]:
        """The outcomes of one kind: passed, skipped, failed, wrong values or too large."""
        return [outcome for outcome in self.outcomes if outcome.word == word]


def group_files(checkout: Path) -> dict[str, str]:
    """The test files of the library by the name of their group, smallest path first."""
    root = checkout / TESTS
    files = sorted(root.rglob("test_*.py"))
    return {file.stem.removeprefix("test_"): str(file.relative_to(checkout)) for file in files}


def run_samples(
    checkout: Path,
    groups: Mapping[str, str],
    request: Request,
    *,
    jobs: int = 1,
    keep: Path | None = None,
    tell: Callable[[Sample], None] = lambda sample: None,
) -> list[Sample]:
    """A sample of each group, in `jobs` processes; groups without tests are left out.

    `keep`: a folder for the records; a group that has one there is not run again.
    """
    found: dict[str, Sample] = {}
    with tempfile.TemporaryDirectory(prefix="nki-library-") as folder:
        for target in TARGETS:
            todo = {name: file for name, file in groups.items() if name not in found}
            session = _Session(checkout, target, request, keep or Path(folder), Path(folder))
            for sample in session.run(todo, jobs):
                found[sample.group] = sample
                tell(sample)
    return [found[name] for name in groups if name in found]


@dataclass(frozen=True, slots=True)
class _Session:
    """Samples for one platform: every process collects its files together, which takes seconds."""

    checkout: Path
    target: str
    request: Request
    records: Path
    folder: Path

    def run(self, groups: Mapping[str, str], jobs: int) -> Iterator[Sample]:
        """The samples of the groups that have tests for the platform, as they are finished."""
        self.records.mkdir(parents=True, exist_ok=True)
        waiting = list(groups)
        missing = [name for name in waiting if not self._record(name).exists()]
        with ThreadPoolExecutor(max(1, jobs)) as pool:
            shares = [missing[i::jobs] for i in range(jobs) if missing[i::jobs]]
            running = {
                pool.submit(self._pytest, [groups[name] for name in share]) for share in shares
            }
            while waiting:
                _, running = wait(running, timeout=POLL_SECONDS)
                ready = [name for name in waiting if not running or self._record(name).exists()]
                waiting = [name for name in waiting if name not in ready]
                samples = (self._sample(name, groups[name]) for name in ready)
                yield from (sample for sample in samples if sample.suite or sample.trouble)

    def _record(self, group: str) -> Path:
        return self.records / f"{group}-{self.target}.jsonl"

    def _sample(self, group: str, file: str) -> Sample:
        """What the record of a group says; one that a session has not written is empty."""
        record = self._record(group)
        if not record.exists():
            trouble = [line for line in self._troubles() if line.get("test", "").endswith(file)]
            lines = trouble or [{"suite": 0, "runnable": 0}]
            record.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        with record.open(encoding="utf-8") as lines:
            return read_sample(group, self.target, lines, self.checkout)

    def _troubles(self) -> list[dict[str, str]]:
        """The lines about files that do not import."""
        paths = self.folder.glob(f"session-{self.target}-*.jsonl")
        lines = [line for path in paths for line in path.read_text("utf-8").splitlines()]
        return [line for line in map(json.loads, lines) if line.get("outcome") == "failed"]

    def _pytest(self, files: Sequence[str]) -> None:
        """Run the child on these files."""
        number = len(list(self.folder.glob("session-*")))
        session = self.folder / f"session-{self.target}-{number}-{Path(files[0]).stem}.jsonl"
        session.write_text("", encoding="utf-8")
        chosen = self.folder / "chosen.txt"
        chosen.write_text("\n".join(self.request.chosen), encoding="utf-8")
        command = (
            *(sys.executable, "-m", "pytest", "-p", "nki_library_plugin"),
            *("-p", "nki_library_sample", "-p", "no:cacheprovider", "--test-mode", "simulation"),
            *("--platform-target", self.target, "--continue-on-collection-errors"),
            *("--output-directory", str(self.folder / "artifacts"), "--force-local-cleanup"),
            *("-q", "--tb=short", *NOT_NEEDED, *files),
        )
        env = child_environment(self.checkout) | {
            "NKI_LIBRARY_RECORD": str(session),
            "NKI_LIBRARY_RECORDS": str(self.records.resolve()),
            "NKI_LIBRARY_BYTES": str(int(self.request.gibibytes * 2**30)),
            "NKI_LIBRARY_CPU_SECONDS": str(self.request.cpu_seconds),
            "NKI_LIBRARY_SAMPLE": f"{self.request.seed}:{self.request.tests}",
            "NKI_LIBRARY_TARGET": self.target,
            "NKI_LIBRARY_CHOSEN": str(chosen.resolve()),
            "NKI_LIBRARY_NKI": self.request.nki,
        }
        done = subprocess.run(command, cwd=self.checkout, env=env, capture_output=True, text=True)
        if done.returncode not in (0, 1, 5):
            reason = f"exit status {done.returncode}: {done.stderr.strip()[-200:]}"
            lines = [{"test": file, "outcome": "failed", "reason": reason} for file in files]
            with session.open("a", encoding="utf-8") as out:
                out.writelines(json.dumps(line) + "\n" for line in lines)


def read_sample(group: str, target: str, lines: Iterable[str], checkout: Path) -> Sample:
    """The sample that a child recorded; a test file that does not import is its trouble."""
    counts: dict[str, int] = {}
    outcomes, uses, trouble = [], {}, ""
    for said in map(json.loads, lines):
        counts |= {name: said[name] for name in ("suite", "runnable") if name in said}
        if "cpu_s" in said:
            uses[said["test"]] = Use(said["cpu_s"], said["rss_mib"], said.get("results", ""))
            outcomes.append(classified(_outcome(said, checkout)))
        elif "test" in said:
            trouble = _outcome(said, checkout).reason
    return Sample(
        group, target, counts.get("suite", 0), counts.get("runnable", 0), tuple(outcomes), uses,
        trouble,
    )  # fmt: skip


def _outcome(said: Mapping[str, str], checkout: Path) -> Outcome:
    return without_folders(Outcome(said["test"], said["outcome"], said["reason"]), checkout)


def classified(outcome: Outcome) -> Outcome:
    """The outcome, where a failure is for want of memory or a difference of values called that."""
    if outcome.word == "failed" and _TOO_MUCH_MEMORY.search(outcome.reason):
        return Outcome(outcome.test, TOO_LARGE, outcome.reason)
    if outcome.word == "failed" and _OTHER_VALUES.search(outcome.reason):
        return Outcome(outcome.test, WRONG, outcome.reason)
    return outcome


def error_class(reason: str) -> str:
    """The kind of an error: its message without places, numbers and values."""
    text = re.sub(r"^\S+\.py:\d+:\d+: ", "", reason)
    text = text.partition(" ^")[0]
    return re.sub(r"\d+", "N", text)[:90]


HEAD = (
    "| group | target | suite | runnable | drawn | passed | failed | wrong values | too large |",
    "|---|---|--:|--:|--:|--:|--:|--:|--:|",
)
_WORDS = ("passed", "failed", WRONG, TOO_LARGE)


def markdown(samples: Sequence[Sample], request: Request, commit: str) -> str:
    """The counts by group, and the failures by group and reason."""
    return "\n".join([*_summary(samples, request, commit), "", *HEAD, *map(_row, samples),
                      *_failures(samples)]) + "\n"  # fmt: skip


def _summary(samples: Sequence[Sample], request: Request, commit: str) -> Iterator[str]:
    counts = {word: sum(len(sample.of(word)) for sample in samples) for word in _WORDS}
    drawn = sum(counts.values())
    ran = drawn - counts[TOO_LARGE]
    yield (
        f"`{commit}`, seed {request.seed}, {request.tests} tests a group: {counts['passed']} of "
        f"{ran} ({counts['passed'] / max(1, ran):.1%}) pass, {counts[WRONG]} give wrong values; "
        f"{counts[TOO_LARGE]} of {drawn} ({counts[TOO_LARGE] / max(1, drawn):.1%}) need more than "
        f"{request.gibibytes:g} GiB or {request.cpu_seconds} s of processor time."
    )


def _row(sample: Sample) -> str:
    numbers = [len(sample.of(word)) for word in _WORDS]
    cells = (sample.group, sample.target, sample.suite, sample.runnable, sum(numbers), *numbers)
    return "| " + " | ".join(map(str, cells)) + " |"


def _failures(samples: Sequence[Sample]) -> Iterator[str]:
    rows = [row for sample in samples for row in _reasons(sample)]
    if rows:
        yield from ("", "| group | outcome | reason | tests |", "|---|---|---|--:|", *rows)


def _reasons(sample: Sample) -> Iterator[str]:
    if sample.trouble:
        yield f"| {sample.group} | not collected | {cell(error_class(sample.trouble))} | |"
    counts: dict[tuple[str, str], int] = {}
    for word in _WORDS[1:]:
        for outcome in sample.of(word):
            key = word, error_class(outcome.reason)
            counts[key] = counts.get(key, 0) + 1
    for (word, reason), number in counts.items():
        yield f"| {sample.group} | {word} | {cell(reason)} | {number} |"


def cell(text: str) -> str:
    """The text as a cell of a table."""
    return text.replace("|", "\\|").replace("<", "&lt;")


def one_line(sample: Sample) -> str:
    """The counts of a group."""
    counts = "  ".join(f"{word} {len(sample.of(word))}" for word in (*_WORDS, "skipped"))
    name = f"{sample.group:30} {sample.target}"
    return f"{name}  runnable {sample.runnable}  {counts}  {sample.trouble[:90]}".rstrip()


def checkout_of(named: Path | None) -> Path:
    """The checkout of the library. Raises ValueError, in words for the user, without one."""
    place = named or os.environ.get("NKI_LIBRARY_CHECKOUT")
    if not place:
        raise ValueError(
            "NKI_LIBRARY_CHECKOUT is not set: name a clone of nki-library, or --checkout"
        )
    checkout = Path(place).resolve()
    if not (checkout / TESTS).is_dir():
        raise ValueError(f"{checkout} is not a checkout of nki-library: it has no {TESTS}")
    return checkout
