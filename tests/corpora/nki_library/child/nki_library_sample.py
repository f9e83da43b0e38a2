"""A pytest plugin beside `nki_library_plugin`: runs a sample of each file, a process per test.

NKI_LIBRARY_SAMPLE is `SEED:TESTS`. Every test runs in a fork of the process that has collected the
files, with NKI_LIBRARY_BYTES of memory and NKI_LIBRARY_CPU_SECONDS of processor time. Each file has
a record in NKI_LIBRARY_RECORDS, with a line about what each test took.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import nki_library_plugin
import nki_library_stand_ins
import pytest
from _pytest.runner import runtestprotocol
from nki_library_draw import draw

TOO_LARGE = "too large"
RESULTS = "results"


class Sample:
    """What of the tests is run, and what came of them: a record in `folder` for every file."""

    def __init__(self, seed: str, count: int, folder: Path, target: str) -> None:
        self.seed, self.count, self.folder, self.target = seed, count, folder, target
        self.file, self.ended = "", 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        _skip_ranks()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        drawn: list[pytest.Item] = []
        for file, members in groupby(session.items, key=_file):
            items = list(members)
            runnable = [item for item in items if item.get_closest_marker("skip") is None]
            sized = [(item, nki_library_plugin.size(item.name)) for item in runnable]
            self._part(file).write_text("", encoding="utf-8")
            self._write(file, suite=len(items), runnable=len(runnable))
            drawn += self._chosen(runnable) or draw(sized, f"{self.seed}:{file}", self.count)
            if not runnable:
                self._finish(file)
        session.items[:] = drawn

    def _chosen(self, items: Sequence[pytest.Item]) -> list[pytest.Item]:
        """The tests of NKI_LIBRARY_CHOSEN, a file with their names, which may be empty."""
        names = Path(os.environ["NKI_LIBRARY_CHOSEN"]).read_text(encoding="utf-8").splitlines()
        return [item for item in items if item.nodeid in names]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool:
        file = _file(item)
        if file != self.file:
            self._finish(self.file)
            self.file, self.ended = file, 0
        if self.ended < self.count:
            result = _run_in_fork(item)
            self._write(file, **result)
            self.ended += result["outcome"] != "skipped"
        return True

    def pytest_sessionfinish(self) -> None:
        self._finish(self.file)

    def _write(self, file: str, **line: object) -> None:
        with self._part(file).open("a", encoding="utf-8") as record:
            record.write(json.dumps(line) + "\n")

    def _finish(self, file: str) -> None:
        if file:
            self._part(file).rename(self._part(file).with_suffix(".jsonl"))

    def _part(self, file: str) -> Path:
        return self.folder / f"{Path(file).stem.removeprefix('test_')}-{self.target}.part"


def _file(item: pytest.Item) -> str:
    return Path(item.nodeid.partition("::")[0]).name


def pytest_configure(config: pytest.Config) -> None:
    seed, _, count = os.environ["NKI_LIBRARY_SAMPLE"].partition(":")
    folder = Path(os.environ["NKI_LIBRARY_RECORDS"])
    target = os.environ["NKI_LIBRARY_TARGET"]
    config.pluginmanager.register(Sample(seed, int(count), folder, target))


def _skip_ranks() -> None:
    """Tests that exchange data between ranks are skipped when they say so."""
    orchestrator: Any = importlib.import_module("test.utils.test_orchestrator").Orchestrator
    execute: Callable[..., Any] = orchestrator.execute

    def only_one_rank(self: Any, kernel_args: Any, *args: Any, **kwargs: Any) -> Any:
        ranks = getattr(kernel_args.inference_args, "collective_ranks", 1)
        if ranks > 1:
            pytest.skip(f"needs {ranks} ranks")
        return execute(self, kernel_args, *args, **kwargs)

    orchestrator.execute = only_one_rank


def _run_in_fork(item: pytest.Item, uninitialized: str = "nan") -> dict[str, Any]:
    """Run a test in a fork: what came of it and what it took.

    One that fails in its comparison runs again where memory that nothing has written holds zeros.
    """
    result = _in_fork(item, uninitialized)
    if "ValidationException" in result["reason"] and uninitialized == "nan":
        again = _run_in_fork(item, "zero")
        if again["outcome"] == "passed":
            result["reason"] = "passes where memory that nothing has written holds zeros"
    return result


def _in_fork(item: pytest.Item, uninitialized: str) -> dict[str, Any]:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        nki_library_stand_ins.use(uninitialized=uninitialized)
        _run_and_leave(item, writer)
    os.close(writer)
    with os.fdopen(reader) as lines:
        reports = [json.loads(line) for line in lines]
    _, status, usage = os.wait4(child, 0)
    outcome, reason = _worst(reports, status)
    used = {"cpu_s": round(usage.ru_utime + usage.ru_stime, 1), "rss_mib": usage.ru_maxrss >> 10}
    results = "".join(digest for word, digest in reports if word == RESULTS)
    return {"test": item.nodeid, "outcome": outcome, "reason": reason, "results": results, **used}


def _run_and_leave(item: pytest.Item, writer: int) -> None:
    seconds = int(os.environ["NKI_LIBRARY_CPU_SECONDS"])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 10))
    with os.fdopen(writer, "w") as lines:
        for report in runtestprotocol(item, nextitem=None, log=False):
            if report.when == "call" or report.outcome != "passed":
                reason = nki_library_plugin.reason(report)
                lines.write(json.dumps([report.outcome, reason]) + "\n")
        lines.write(json.dumps([RESULTS, nki_library_stand_ins.RESULTS.hexdigest()]) + "\n")
    os._exit(0)


def _worst(reports: Sequence[Sequence[str]], status: int) -> tuple[str, str]:
    """The outcome of a test from the reports of its phases and the status of its process."""
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return (TOO_LARGE if name in ("SIGXCPU", "SIGKILL") else "failed"), f"ended by {name}"
    for word in ("failed", "skipped", "passed"):
        for outcome, reason in reports:
            if outcome == word:
                return outcome, reason
    return "failed", f"ended without a report, exit status {os.WEXITSTATUS(status)}"
