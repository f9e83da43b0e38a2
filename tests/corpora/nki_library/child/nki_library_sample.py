"""A pytest plugin beside `nki_library_plugin`: runs a sample of a file's tests, each in a process.

NKI_LIBRARY_SAMPLE is `SEED:TESTS`. Every test runs in a fork of the process that has collected the
file, with NKI_LIBRARY_BYTES of memory and NKI_LIBRARY_CPU_SECONDS of processor time. A line of the
record says what each took.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import nki_library_plugin
import pytest
from _pytest.runner import runtestprotocol
from nki_library_draw import draw

TOO_LARGE = "too large"


class Sample:
    """What of this file's tests is run, and what came of them."""

    def __init__(self, seed: str, count: int) -> None:
        self.seed, self.count, self.ended = seed, count, 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        _skip_ranks()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        items = session.items
        runnable = [item for item in items if item.get_closest_marker("skip") is None]
        sized = [(item, nki_library_plugin.size(item.name)) for item in runnable]
        file = Path(items[0].nodeid.partition("::")[0]).name if items else ""
        nki_library_plugin.write(suite=len(items), runnable=len(runnable))
        items[:] = draw(sized, f"{self.seed}:{file}", self.count)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool:
        if self.ended < self.count:
            self.ended += not _run_in_fork(item)
        return True


def pytest_configure(config: pytest.Config) -> None:
    seed, _, count = os.environ["NKI_LIBRARY_SAMPLE"].partition(":")
    config.pluginmanager.register(Sample(seed, int(count)))


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


def _run_in_fork(item: pytest.Item) -> bool:
    """Run a test in a fork, and say what it took; whether it was skipped."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _run_and_leave(item, writer)
    os.close(writer)
    with os.fdopen(reader) as lines:
        reports = [json.loads(line) for line in lines]
    _, status, usage = os.wait4(child, 0)
    outcome, reason = _worst(reports, status)
    used = {"cpu_s": round(usage.ru_utime + usage.ru_stime, 1), "rss_mib": usage.ru_maxrss >> 10}
    nki_library_plugin.write(test=item.nodeid, outcome=outcome, reason=reason, **used)
    return outcome == "skipped"


def _run_and_leave(item: pytest.Item, writer: int) -> None:
    seconds = int(os.environ["NKI_LIBRARY_CPU_SECONDS"])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 10))
    with os.fdopen(writer, "w") as lines:
        for report in runtestprotocol(item, nextitem=None, log=False):
            if report.when == "call" or report.outcome != "passed":
                reason = nki_library_plugin.reason(report)
                lines.write(json.dumps([report.outcome, reason]) + "\n")
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
