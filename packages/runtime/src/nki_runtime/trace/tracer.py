"""`nki-run --trace`: every kernel that a program launches, as timelines in one trace file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from neuroncore.commands.files import check_writable, naming_output, write_whole
from neuroncore.errors import LaunchError
from neuroncore.timeline import Timeline, launch_starts
from nki_runtime.trace import LaunchRecorder, write_instruction_table, write_svg

SVG, PARQUET = ".svg", ".parquet"
OPENED_BY = {SVG: "a browser", PARQUET: "--profile and any reader of Parquet"}


class Tracer(LaunchRecorder):
    """The kernels of a run; `finish` makes their timelines a trace.

    One that no program says, or whose time is unknown, is named at the end with the reason.
    """

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file = file
        self.write_trace = _writer(file)

    def finish(self) -> bool:
        """Write the file and say on stderr what is missing in it; whether anything is."""
        timelines = self.timelines()
        for reason in self.left_out:
            sys.stderr.write(f"nki-run: a kernel is not in the trace:\n{reason}\n")
        if not timelines:
            sys.stderr.write(f"nki-run: no kernel to trace: {self.file} is not written\n")
            return True
        with naming_output("--trace", self.file):
            write_whole(self.file, lambda temporary: self.write_trace(timelines, temporary))
        sys.stdout.flush()  # a pipe has both in the order that a terminal has
        sys.stderr.write(f"nki-run: --trace wrote {self.file} ({_said(timelines, self.file)})\n")
        return bool(self.left_out)


def _said(timelines: Sequence[Timeline], file: Path) -> str:
    """The contents of the file, and the program that opens it."""
    opens = OPENED_BY.get(file.suffix, "ui.perfetto.dev")
    number = sum(not timeline.core for timeline in timelines)
    kernels = f"{number} kernel" + "s" * (number > 1)
    microseconds = max(at + timeline.launch_ns for timeline, at in launch_starts(timelines)) / 1e3
    return f"{kernels}, {microseconds:.1f} µs modelled; opens in {opens}"


def _writer(file: Path) -> Any:
    """The writer of timelines. Raises LaunchError where the file or the extra cannot be had."""
    if file.suffix == ".json":
        raise LaunchError(
            f"--trace {file}: traces are not written as JSON",
            hint=f"--trace {file.with_suffix('.pftrace')} for ui.perfetto.dev, or .parquet, .svg",
        )
    check_writable(file, "--trace")
    if file.suffix == SVG:
        return write_svg
    extra = "profile" if file.suffix == PARQUET else "trace"
    try:
        if file.suffix == PARQUET:
            import pyarrow.parquet  # noqa: F401

            return write_instruction_table
        from nki_runtime.trace.perfetto import write_trace
    except ImportError as absent:
        raise LaunchError(
            f"--trace needs the {extra} extra ({absent})",
            hint=f"pip install 'nki-runtime[{extra}]', or --trace FILE.svg, which needs nothing",
        ) from None
    return write_trace
