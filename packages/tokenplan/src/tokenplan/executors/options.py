"""Options of where jobs run, for all commands that run some."""

from __future__ import annotations

import argparse
import os
import re
import sys
from math import inf
from pathlib import Path

from neuroncore.commands.parser import at_least, seconds
from tokenplan.executors import (
    Executor,
    InProcess,
    Limits,
    pool,
    ray_cluster,
)
from tokenplan.executors.ray_address import LOCAL

_SIZES = {"M": 1 << 20, "G": 1 << 30}


def add_executor(parser: argparse.ArgumentParser, note: str = "") -> None:
    """`--jobs`, `--ray`, limits of a job."""
    add = parser.add_argument
    add("--jobs", type=at_least(1), default=1, metavar="N",
        help=f"so many at a time, each in a process (default: 1){note}")  # fmt: skip
    add("--ray", metavar="ADDRESS",
        help="on workers of the Ray cluster at HOST:PORT, or of a local one (local)")  # fmt: skip
    add("--job-time", type=seconds, default=inf, metavar="TIME", help="the limit of each job")
    add("--job-memory", type=_num_bytes, default=inf, metavar="SIZE",
        help="the limit of each job beyond what its worker needs, such as 512M or 2G")  # fmt: skip


def executor_of(given: argparse.Namespace, command: str, preload: str, folder: Path) -> Executor:
    """The executor that the options of a command name, whose workers import `preload`; files of a
    local cluster are in `folder`.

    Raises ExecutorError.
    """
    jobs, limits = given.jobs, limits_of(given)
    if given.ray in (None, LOCAL) and jobs > (cores := os.cpu_count() or 1):
        sys.stderr.write(f"{command}: note: {jobs} jobs share {cores} cores\n")
    if given.ray is not None:
        return ray_cluster(given.ray, jobs, limits, preload, folder)
    is_alone = jobs == 1 and limits == Limits()  # a limit that code cannot catch needs a process
    return InProcess() if is_alone else pool(jobs, limits, preload)


def limits_of(given: argparse.Namespace) -> Limits:
    """The limits of each job."""
    return Limits(given.job_time, given.job_memory)


def _num_bytes(text: str) -> float:
    found = re.fullmatch(r"(\d+)([MG])", text)
    if found is None or not int(found[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size, such as 512M or 2G")
    return int(found[1]) * _SIZES[found[2]]
