"""`nki-run --trace`: every kernel that a program launches, as timelines in one trace file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from neuroncore.commands.files import check_writable, naming_output, write_whole
from neuroncore.errors import LaunchError
from neuroncore.timeline import Timeline
from nki_runtime.trace import LaunchRecorder, write_svg

SVG = ".svg"


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
        sys.stderr.write(f"nki-run: --trace wrote {self.file} ({_said(timelines, self.file)})\n")
        return bool(self.left_out)


def _said(timelines: Sequence[Timeline], file: Path) -> str:
    """What the file contains, and what opens it."""
    opens = "a browser" if file.suffix == SVG else "ui.perfetto.dev"
    kernels = f"{len(timelines)} kernel" + "s" * (len(timelines) > 1)
    microseconds = sum(timeline.launch_ns for timeline in timelines) / 1e3
    return f"{kernels}, {microseconds:.1f} µs modelled; opens in {opens}"


def _writer(file: Path) -> Any:
    """What writes timelines. Raises LaunchError where the file or the extra cannot be had."""
    check_writable(file, "--trace")
    if file.suffix == SVG:
        return write_svg
    try:
        from nki_runtime.trace.perfetto import write_trace
    except ImportError as absent:
        raise LaunchError(
            f"--trace needs the trace extra ({absent})",
            hint="pip install 'nki-runtime[trace]', or --trace FILE.svg, which needs nothing",
        ) from None
    return write_trace
