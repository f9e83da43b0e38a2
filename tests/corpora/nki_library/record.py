"""What the plugin in the child wrote, read; counts and tables of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.corpora.beta1.report import shortened

NOT_RUN = "not run"
WORST_FIRST = ("failed", "skipped", "passed", NOT_RUN)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one test; `reason` is why it was skipped or failed."""

    test: str
    word: str
    reason: str


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a group; `trouble` is why a process of it did not come to its end."""

    group: str
    collected: int = 0
    outcomes: tuple[Outcome, ...] = field(default=())
    trouble: str = ""

    def of(self, word: str) -> list[Outcome]:
        """The outcomes of one kind: passed, skipped, failed or not run."""
        return [outcome for outcome in self.outcomes if outcome.word == word]

    @property
    def not_run(self) -> int:
        """Tests that were collected and of which nothing was heard."""
        return max(0, self.collected - len(self.outcomes) + len(self.of(NOT_RUN)))


def read_record(lines: Iterable[str]) -> tuple[int, tuple[Outcome, ...]]:
    """The tests collected, and one outcome per test: the worst of its set-up, call and teardown,
    or that it was awaited and not run.

    A last line that was cut off is left out. Raises ValueError for any other line that is not JSON.
    """
    collected = 0
    worst: dict[str, Outcome] = {}
    for line in lines:
        if not line.endswith("\n"):
            break
        said = json.loads(line)
        collected += said.get("collected", 0)
        for name in said.get("awaited", ()):
            worst.setdefault(name, Outcome(name, NOT_RUN, ""))
        if name := said.get("test"):
            new = Outcome(name, said["outcome"], said["reason"])
            worst[name] = min(worst.get(name, new), new, key=_badness)
    return collected, tuple(worst.values())


def begin_record(record: Path) -> int:
    """Make the file; of an earlier run only what passed or was skipped stays in it: how many."""
    done: Iterable[Outcome] = ()
    if record.exists():
        with record.open(encoding="utf-8") as lines:
            done = (o for o in read_record(lines)[1] if o.word in ("passed", "skipped"))
    record.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"test": o.test, "outcome": o.word, "reason": o.reason} for o in done]
    record.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return len(rows)


def _badness(outcome: Outcome) -> int:
    return WORST_FIRST.index(outcome.word)


def one_line(result: Result) -> str:
    """The counts of a group, and the trouble it had."""
    counts = f"{result.group:20} {_counts(result)}"
    return f"{counts}  {result.trouble}".rstrip()


def _counts(result: Result) -> str:
    words = {word: len(result.of(word)) for word in ("passed", "skipped", "failed")}
    numbers = {"collected": result.collected, **words, "not run": result.not_run}
    return "  ".join(f"{name} {number}" for name, number in numbers.items() if number)


@dataclass(frozen=True, slots=True)
class Rows:
    """A group as the tables have it: its counts, and a row per reason of a failure."""

    counts: str
    failures: tuple[str, ...] = ()

    def number(self, column: int) -> int:
        """A number of the counts; the group's name is column 1."""
        text = self.counts.split(" | ")[column - 1].strip("| ")
        return int(text) if text.isdigit() else 0


COLLECTED, PASSED, SKIPPED = 2, 3, 4  # columns
HEAD = (
    "| group | collected | passed | skipped by its harness | failed | not run | measured | |",
    "|---|--:|--:|--:|--:|--:|---|---|",
)
FAILURES_HEAD = ("| group | reason | tests | their names |", "|---|---|--:|---|")


def rows_of(result: Result, date: str) -> Rows:
    """What was measured now, on that date."""
    counts = [len(result.of(word)) for word in ("passed", "skipped", "failed")]
    numbers = " | ".join(map(str, (result.collected, *counts, result.not_run)))
    row = f"| {result.group} | {numbers} | {date} | {_cell(shortened(result.trouble))} |"
    return Rows(row, tuple(_failures(result)))


def kept_rows(text: str, commit: str, groups: Sequence[str]) -> dict[str, Rows]:
    """The rows of these groups in a text that `markdown` made; none of another commit."""
    if f"`{commit}`: " not in text:
        return {}
    counts, _, failures = text.partition(FAILURES_HEAD[0])
    return {
        name: Rows(row, tuple(_starting(failures, name)))
        for name in groups
        for row in _starting(counts, name)
        if "not measured" not in row and row.count(" | ") == HEAD[0].count(" | ")
    }


def _starting(text: str, group: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(f"| {group} | ")]


def markdown(measured: Mapping[str, Rows], commit: str, groups: Sequence[str]) -> str:
    """The tables of all `groups`; groups that are not measured are rows without numbers."""
    rows = [measured[name] for name in groups if name in measured]
    passed = sum(row.number(PASSED) for row in rows)
    counted = sum(row.number(COLLECTED) - row.number(SKIPPED) for row in rows)
    share = f" ({passed / counted:.1%})" if counted else ""
    lines = [
        f"`{commit}`: {passed} of {counted} tests{share} pass; not counted are tests that the "
        "library's own harness skips.",
        "",
        *HEAD,
        *(row.counts for row in rows),
        *(f"| {name} | | | | | | not measured | |" for name in groups if name not in measured),
    ]
    failures = [line for row in rows for line in row.failures]
    if failures:
        lines += ["", *FAILURES_HEAD, *failures]
    return "\n".join(lines) + "\n"


def _failures(result: Result) -> list[str]:
    """A row per reason, the names of its tests together; those not run after them."""
    names: dict[str, list[str]] = {}
    for missing in (*result.of("failed"), *result.of(NOT_RUN)):
        name = missing.test.rpartition("::")[2] or missing.test
        reason = missing.reason or missing.word
        names.setdefault(_cell(shortened(reason)), []).append(_cell(name))
    return [
        f"| {result.group} | {reason} | {len(tests)} | {', '.join(tests)} |"
        for reason, tests in names.items()
    ]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
