"""A pytest plugin for the child process: sets the stand-ins up, writes a line per finished test.

The lines go to the file that NKI_LIBRARY_RECORD names, at once, so that a process that is cut off
leaves what it has done. `../record.py` reads them.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import resource
from collections.abc import Sequence
from math import prod
from pathlib import Path

import nki_library_stand_ins
import pytest

REASON_LINES = 3


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    most = int(os.environ.get("NKI_LIBRARY_BYTES", "0"))
    if most:
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))  # a MemoryError of the test
    nki_library_stand_ins.set_up()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    done, collected = _done(), len(items)
    items[:] = [item for item in items if item.nodeid not in done]
    write(collected=collected, awaited=[item.nodeid for item in items])
    if os.environ.get("NKI_LIBRARY_SMALLEST_FIRST") == "1":
        items.sort(key=lambda item: (item.get_closest_marker("skip") is None, size(item.name)))


def _done() -> set[str]:
    """The tests that the record has an outcome of: from an earlier run."""
    lines = Path(os.environ["NKI_LIBRARY_RECORD"]).read_text(encoding="utf-8").splitlines()
    return {said["test"] for said in map(json.loads, lines) if "test" in said}


def size(name: str) -> int:
    """The product of the whole numbers among a test's parameters: about what it computes."""
    return prod(int(n) or 1 for n in re.findall(r"(?<![\d.])\d+(?![\d.])", name.partition("[")[2]))


def pytest_collection_finish() -> None:
    # Simulation mode reads it without compiling, which is where it is set.
    orchestrator = importlib.import_module("test.utils.test_orchestrator").Orchestrator
    if not hasattr(orchestrator, "_compiled_kernel"):
        orchestrator._compiled_kernel = None


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        write(test=report.nodeid, outcome="failed", reason=reason(report))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.outcome != "passed":
        write(test=report.nodeid, outcome=report.outcome, reason=reason(report))


def reason(report: pytest.CollectReport | pytest.TestReport) -> str:
    match report.longrepr:
        case None:
            return ""
        case (_, _, str(text)):  # of a skip
            return text
        case failure:
            chain = getattr(failure, "chain", [(None, getattr(failure, "reprcrash", None), None)])
            messages = [crash.message if crash else str(failure) for _, crash, _ in chain]
            shortages = [message for message in messages if "MemoryError" in message]
            return _first_lines((shortages or messages[-1:])[0])  # a test may expect an error


def _first_lines(text: str) -> str:
    lines: Sequence[str] = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(lines[:REASON_LINES])


def write(**line: object) -> None:
    with Path(os.environ["NKI_LIBRARY_RECORD"]).open("a", encoding="utf-8") as record:
        record.write(json.dumps(line) + "\n")
