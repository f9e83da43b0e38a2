"""`python workspace/quality.py [--write]`: measured figures of the project as a table.

Prints the page, or writes docs/quality.md and the table of README.md. Every figure is
measured now, by the command beside it; times are CPU time of all processes, because the machine may
do other work.
"""

from __future__ import annotations

import json
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pages
import published_figures
from members import ROOT

PAGE = ROOT / "docs" / "quality.md"
HEAD = """\
# Figures

What is measured, when, and by which command. `nox -s quality` measures again what takes minutes,
takes the rest from the pages that its commands write, and rewrites this page. Times are CPU seconds
of all processes of the command, NumPy included unless noted; the machine of this page has {cores}
cores. The size that counts is the sum of the sizes of files beyond numpy and ml_dtypes; folders, of
4 KiB where a file system counts them, are beside it.

| figure | value | date | command |
|---|---|---|---|
"""
TAIL = """
More on pages of their own: the error of the latency model in [model.md](model.md), how exact
generated kernels are in [precision.md](precision.md), speed beside NumPy in
[the README of nki-beta2](../packages/interpreter_beta2/README.md), public kernels in
[corpus.md](corpus.md) and [generator.md](generator.md), searches in [search.md](search.md).
"""
COUNTS = """\
from neuroncore.instructions import INSTRUCTIONS
from nki_migrate.rules import all_rules
print(len(INSTRUCTIONS), len(all_rules()))
"""


@dataclass(frozen=True, slots=True)
class Figure:
    """A row of the table; measured today unless it has a day."""

    name: str
    value: str
    command: str
    day: str = ""

    def row(self) -> str:
        day = self.day or date.today().isoformat()
        return f"| {self.name} | {self.value} | {day} | `{self.command}` |"


_MALFORMED = "pytest -m thorough tests/hardening/test_malformed_inputs.py"
_KILLED = "pytest -m thorough tests/hardening/test_killed_commands.py"
RECORDED = (
    Figure("malformed inputs in process without a message",
           "1 of 100,009, mended since", f"{_MALFORMED} -k many", "2026-11-28"),
    Figure("runs of commands on malformed files, with a traceback of ours",
           "none of 306", f"{_MALFORMED} -k commands", "2026-11-28"),
    Figure("commands killed at random moments, files damaged", "295, none", _KILLED, "2026-11-28"),
    Figure("release rehearsal of ten packages: faults",
           "none; 604 CPU s on a busy machine, 238 on an idle one the day before",
           "nox -s release -- --dry-run", "2026-11-29"),
    Figure("the site of the documents: pages, CPU seconds", "371, 23.7 s", "nox -s docs",
           "2026-11-28"),
    Figure("fresh clone to the first table, warm cache, CPU seconds", "35.0 s",
           "the first command of README.md", "2026-11-28"),
)  # fmt: skip
"""Figures of runs of many minutes that write no page; a run changes them here."""


def figures() -> Iterator[Figure]:
    """Every row, measured as it is asked for."""
    with tempfile.TemporaryDirectory() as name:
        yield from _main_job(Path(name))
    command = "python benchmarks/startup.py"
    for line in _output(*command.split()).splitlines():
        what, _, value = line.partition(": ")
        beyond = "" if what == "import numpy" else ", beyond NumPy"
        yield Figure(f"{what}{beyond}", value, command)
    instructions, rules = _output("python", "-c", COUNTS).split()
    yield Figure("instructions of the machine", instructions, "python -m neuroncore")
    yield Figure("migration rules", rules, "nki-migrate rules")
    command = "pytest --collect-only -q -m 'thorough or not thorough'"
    words = shlex.split(command)
    last = _output("python", "-m", *words).strip().splitlines()[-1]
    yield Figure("tests", last.split()[0], command)
    mutations = tomllib.loads((ROOT / "tests/hardening/mutations.toml").read_text("utf-8"))
    yield Figure(
        "mutations that tests must notice", str(len(mutations["mutation"])),
        "pytest tests/hardening/test_mutations.py",
    )  # fmt: skip
    command = "python workspace/installed_size.py"
    for line in _output(*command.split()).splitlines():
        python, _, value = line.partition(": ")
        yield Figure(f"nki-runtime and nki-beta2 installed, {python}, files", value, command)
    for published in published_figures.FIGURES:
        value, day = published.found()
        yield Figure(published.name, value, published.command, day)
    yield from RECORDED


def _main_job(folder: Path) -> Iterator[Figure]:
    command = "nki-migrate fix examples/beta1 --verify --output-dir migrated"
    words = [*command.split()[:-1], str(folder / "migrated"), "--output-format", "json"]
    os.environ["XDG_CACHE_HOME"] = str(folder)
    for run in ("first run", "second run, nothing changed"):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        report = json.loads(_output("python", "-m", "nki_migrate", *words[1:]))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        equal = [row["equal"] for row in report["verify"]]
        if run == "first run":
            value = f"{sum(equal)} of {len(equal)}"
            yield Figure("example kernels migrated and shown equal", value, command)
        yield Figure(f"the main job, {run}", f"{spent:.1f} s", command)


def _output(*command: str) -> str:
    """What a command prints; `python` is this Python."""
    words = [sys.executable if command[0] == "python" else command[0], *command[1:]]
    done = subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE, encoding="utf-8")
    return done.stdout


def page() -> str:
    """The text of docs/quality.md."""
    rows = [figure.row() for figure in figures()]
    return HEAD.format(cores=os.cpu_count()) + "\n".join(rows) + "\n" + TAIL


if __name__ == "__main__":
    text = page()
    if "--write" in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
        pages.main(["README.md"])
    print(text, end="")
