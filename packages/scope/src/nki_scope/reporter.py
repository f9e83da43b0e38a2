"""The reporter of `--report`: collects what a command did, then writes one page."""

from __future__ import annotations

import linecache
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

import nki_runtime
from neuroncore.checks import Memory, Report
from neuroncore.commands.files import check_writable, write_text
from neuroncore.commands.reporting import ADVICE
from neuroncore.commands.tracebacks import place_of_user
from neuroncore.errors import LaunchError
from neuroncore.findings import Finding
from neuroncore.machine.garbage_collection import no_collection
from neuroncore.machine.observe import Event, watched_by
from neuroncore.machine.results import shown
from neuroncore.memory import View
from neuroncore.program import calls
from neuroncore.timeline import MODES, Timeline, estimate
from nki_runtime.trace import LaunchRecorder
from nki_scope.document import Columns, Sources, html_page
from nki_scope.sections import (
    MOST_CALLS,
    MOST_PLAYED,
    MOST_RESULTS,
    Budget,
    ReplaySections,
    Snapshots,
    advice_section,
    advice_text,
    causes_of,
    constants_of,
    kernel_section,
    lines_of,
    memory_section,
    migration_section,
    rules,
    what_if_section,
)

AS_WRITTEN = "as_written"


class RunRecorder(LaunchRecorder):
    """The kernels of a run as programs, and what their instructions wrote."""

    def __init__(self) -> None:
        super().__init__()
        self.reference: Callable[..., Any] | None = None
        """What the results of kernels are compared with, a function of the same arguments."""
        self.most_results = MOST_RESULTS
        """How many results of a launch are kept."""
        self.results: dict[int, Snapshots] = {}
        """By id of the program."""
        self._memory = Memory(Report(), spreads=True)
        self.follow(self._memory)
        self._running = threading.local()

    def launched(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        super().launched(args, kwargs)
        self._running.results = Snapshots(self.most_results)
        for view in _views([*args, *kwargs.values()]):
            self._running.results.input(view)
        if self.reference is not None:
            self._running.arguments = _arrays(args), _arrays(kwargs)

    def did(self, event: Event) -> None:
        super().did(event)
        self._running.results.note(event, self._memory.unwritten)

    def ended(self, value: Any) -> None:
        if value is not None and self.reference is not None:
            args, kwargs = self._running.arguments
            self._compare(_listed(_arrays(value)), _listed(self.reference(*args, **kwargs)))
        known = len(self.programs)
        super().ended(value)
        for program in self.programs[known:]:
            results = self.results[id(program)] = self._running.results
            results.parameters = tuple(buffer.name for buffer in program.parameters)

    def _compare(self, found: Sequence[Any], expected: Sequence[Any]) -> None:
        """Note how far the results of the kernel are from others."""
        if [np.shape(each) for each in found] != [np.shape(each) for each in expected]:
            shapes = [
                ", ".join(str(np.shape(each)) for each in group) for group in (expected, found)
            ]
            raise LaunchError(
                "the reference has other results than the kernel", got=shapes[0], expected=shapes[1]
            )
        for number, (got, want) in enumerate(zip(found, expected, strict=True)):
            self._running.results.compare(f"result {number}", np.asarray(got), np.asarray(want))


def _arrays(value: Any) -> Any:
    """A value of a launch with copies of its tensors as arrays."""
    if isinstance(value, View):
        return shown(value)
    if isinstance(value, dict):
        return {name: _arrays(each) for name, each in value.items()}
    return type(value)(map(_arrays, value)) if type(value) in (list, tuple) else value


def _views(value: Any) -> Iterator[View]:
    """The tensors in an argument of a launch."""
    if isinstance(value, View):
        yield value
    elif isinstance(value, list | tuple | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _views(each)


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else (value,)


class Reporter:
    """A page about one run of `command`."""

    def __init__(
        self, command: str, file: Path, mode: str = "device", advice: str = ADVICE[0]
    ) -> None:
        self.command, self.file, self.advice = command, file, advice
        self.watcher = RunRecorder()
        self.watcher.mode = mode
        self._timelines: list[Timeline] = []
        self._findings: list[Finding] = []
        self._errors: list[str] = []
        self._texts: list[tuple[str, str]] = []
        self._migrations: list[dict[str, Any]] = []
        self._orders: list[dict[str, Any]] = []
        self._schedules: list[dict[str, Any]] = []
        self._columns, self._sources = Columns(), Sources()

    def add(self, kind: str, value: Any) -> None:
        """Show a result; see neuroncore.commands.reporting.Reporter."""
        {
            "timelines": self._timelines.extend,
            "findings": self._findings.extend,
            "text": self._texts.append,
            "orders": self._orders.append,
            "schedules": self._schedules.extend,
            "migrations": lambda files: self._migrations.extend(
                migration_section(*f) for f in files
            ),
            "error": lambda error: self._errors.append(_error_text(error)),
        }[kind](value)

    def write(self) -> str:
        """Write the page; what it contains. Raises OSError."""
        self.watcher.unfinished()
        timelines = [*self._timelines, *self.watcher.timelines()]
        with no_collection():
            write_text(self.file, self._page(timelines))
        size = self.file.stat().st_size / 1e6
        kernels = f"{len(timelines)} kernel" + "s" * (len(timelines) != 1)
        if not timelines and self._migrations:
            kernels = f"{len(self._migrations)} file" + "s" * (len(self._migrations) != 1)
        elif not timelines and not self._errors:
            kernels = "no kernel ran: name one as FILE.py:FUNCTION with its arrays"
        return f"{kernels}, {size:.1f} MB; opens in a browser"

    def _page(self, timelines: Sequence[Timeline]) -> str:
        found = {id(timeline): timeline for timeline in timelines}
        counts = {key: sum(id(t) == key for t in timelines) for key in found}
        share = self._micro_ops() / (sum(1 + (t.mode != AS_WRITTEN) for t in found.values()) or 1)
        document = {
            "command": self.command,
            "model": rules(),
            "kernels": [
                {**kernel, "launches": counts[key]}
                for key, timeline in found.items()
                for kernel in self._kernels(timeline, share)
            ],
            "findings": [self._finding(finding) for finding in self._findings],
            "texts": self._texts,
            "migrations": self._migrations,
            "orders": [self._order(orders) for orders in self._orders],
            "schedules": self._schedules,
            "errors": [*self._errors, *map(str, self.watcher.left_out)],
        }
        document["files"] = self._sources.section()
        return html_page(document, self._columns.packed(document))

    def _micro_ops(self) -> float:
        """How many of them the page plays again for advice and changes."""
        return MOST_PLAYED if self.advice == ADVICE[0] else inf

    def _kernels(self, timeline: Timeline, micro_ops: float) -> Iterator[dict[str, Any]]:
        """The kernel as its toolchain makes it, and as written, which the page can play again."""
        replays = ReplaySections(timeline, self._columns)
        forms = [timeline]
        count = sum(1 for _ in calls(timeline.source.body))
        if timeline.mode != AS_WRITTEN and count <= MOST_CALLS:
            forms.append(estimate(
                timeline.source, mode=AS_WRITTEN, verified=True,
                skip_periods=bool(timeline.repeats), constants=constants_of(timeline),
                cores=timeline.cores,
            ).of_core(timeline.core))  # fmt: skip
        totals = {each.mode: each.total_ns for each in forms}
        for each in forms:
            yield self._kernel(each, totals, replays, Budget(micro_ops))

    def _kernel(
        self, timeline: Timeline, totals: Mapping[str, float], replays: ReplaySections,
        budget: Budget,
    ) -> dict[str, Any]:  # fmt: skip
        columns = self._columns
        replay, calls = replays.of(timeline)
        results = self.watcher.results.get(id(timeline.source))
        advice = advice_section(
            timeline, causes_of(timeline), lines_of(timeline), self._sources, budget
        )
        changes = what_if_section(timeline, totals, budget)
        budget.close()
        return {
            **kernel_section(timeline, calls, columns, self._sources),
            "summary": f"{timeline}{advice_text(advice, timeline.total_ns, budget)}",
            "memory": memory_section(timeline, columns),
            "tensors": results.section(columns) if results else None,
            "whatIf": changes,
            "replay": replay,
            "advice": advice,
        }

    def _order(self, orders: dict[str, Any]) -> dict[str, Any]:
        """The orders of a kernel with their lines as positions of the page."""
        rows = [
            row | {"at": [at and self._sources.at_line(*at) for at in row["at"]]}
            for row in orders["rows"]
        ]
        return orders | {"rows": rows}

    def _finding(self, finding: Finding) -> dict[str, Any]:
        region = finding.region
        return {
            "label": finding.label, "severity": finding.severity, "text": str(finding),
            "message": finding.message, "cure": finding.cure, "count": finding.count,
            "at": self._sources.at_line(region.path, region.line) if region.path else None,
        }  # fmt: skip


def _error_text(error: BaseException) -> str:
    """The error with the user's line that raised it, which the page marks."""
    text, place = str(error), place_of_user(error)
    if place is not None and f"{place.path}:{place.line}:" not in text:
        line = linecache.getline(place.path, place.line).strip()
        text = f"{place.path}:{place.line}: {text}\n    {line}"
    return f"{type(error).__name__}: {text}"


def page(
    kernel: Any, *arrays: Any, file: str | Path = "kernel.html",
    reference: Callable[..., Any] | None = None, mode: str = "device", advice: str = "quick",
    results: int = MOST_RESULTS, **kwargs: Any,
) -> Path:  # fmt: skip
    """Run `kernel` on these arrays and write a page about it; the file.

    The kernel runs as `nki_runtime.simulate` runs it. Where it raises, the page shows what it did
    until there, and the error is raised. It is shown as its toolchain makes it and as written, with
    `mode` "as_written" as written alone. With a `reference`, a function of the same arguments, the
    page shows how far each result is from its own. `advice` "all" plays every variant of a large
    kernel, for as long as that takes; "quick" names how many were not played. The page has the
    values of the first `results` inputs and results of instructions. Raises LaunchError for
    options that are not choices, OutputError where the file cannot be written.
    """
    for name, given, choices in (("advice", advice, ADVICE), ("mode", mode, MODES)):
        if given not in choices:
            raise LaunchError(f"{name}: {given!r} is not a choice", expected=" or ".join(choices))
    if results < 0:
        raise LaunchError(f"results: {results} of them cannot be kept", expected="0 or more")
    check_writable(Path(file), "file")
    reporter = Reporter("nki_scope.page", Path(file), mode, advice)
    reporter.watcher.most_results = results
    reporter.watcher.reference = reference
    try:
        with watched_by(reporter.watcher):
            nki_runtime.simulate(kernel)(*arrays, **kwargs)
    except Exception as error:
        reporter.add("error", error)
        raise
    finally:
        reporter.write()
    return Path(file)
