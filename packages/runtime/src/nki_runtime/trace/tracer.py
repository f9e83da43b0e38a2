"""`nki-run --trace`: every kernel that a program launches, as timelines in one trace file."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from neuroncore.commands.files import write_whole
from neuroncore.errors import KernelError, LaunchError
from neuroncore.machine.observe import Watcher
from neuroncore.memory import Storage
from neuroncore.program import Program, Recorder, check
from neuroncore.timeline import Timeline, estimate
from nki_runtime.trace import write_svg

SVG = ".svg"
MOST_SLICES = 500_000
"""Micro-ops of a kernel up to which every one is written; beyond, carried periods are marked."""


class Tracer(Watcher):
    """The kernels of a run as programs; `write` makes their timelines a trace.

    Kernels run as without it. One that no program says, or whose time is unknown, is named at the
    end with the reason.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.write_trace = _writer(file)
        self._now = _Launch()
        self._programs: list[Program] = []
        self._left_out: list[KernelError] = []

    # -- what happens -----------------------------------------------------------------------------

    def allocated(self, storage: Storage) -> None:
        if not storage.fresh:
            self._now.adopted.append(storage)
        if self._now.recorder is not None:
            self._now.recorder.allocated(storage)

    def launched(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        recorder = self._now.recorder = Recorder(for_time=True)
        for storage in self._now.adopted:  # the arguments, before the launch was known
            recorder.allocated(storage)
        self._now.adopted.clear()
        recorder.launched(args, kwargs)

    def returned(self, value: Any) -> None:
        if self._now.recorder is not None:
            self._guarded(self._now.recorder.returned, value)

    def ended(self, value: Any) -> None:
        recorder, self._now.recorder = self._now.recorder, None
        self._now.adopted.clear()
        if recorder is not None:
            self._guarded(self._add, recorder)

    def _add(self, recorder: Recorder) -> None:
        program = recorder.program()
        check(program, recorder.options, content=False)
        self._programs.append(program)

    def _guarded(self, step: Any, value: Any) -> None:
        """Do a step; a kernel for which it fails is left out."""
        try:
            step(value)
        except KernelError as reason:
            self._now.recorder = None
            self._left_out.append(reason)

    # -- what comes of it -------------------------------------------------------------------------

    def finish(self) -> bool:
        """Write the file and say on stderr what is missing in it; whether anything is."""
        timelines: list[Timeline] = []
        for program in self._programs:
            known = next((t for t in timelines if t.program == program), None)
            try:
                timelines.append(known or _estimate(program))
            except KernelError as reason:
                self._left_out.append(reason)
        for reason in self._left_out:
            sys.stderr.write(f"nki-run: a kernel is not in the trace:\n{reason}\n")
        if not timelines:
            sys.stderr.write(f"nki-run: no kernel to trace: {self.file} is not written\n")
            return True
        try:
            write_whole(self.file, lambda temporary: self.write_trace(timelines, temporary))
        except OSError as reason:
            sys.stderr.write(f"nki-run: --trace {self.file}: {reason.strerror}\n")
            return True
        sys.stderr.write(f"nki-run: --trace wrote {self.file} ({_said(timelines, self.file)})\n")
        return bool(self._left_out)


def _passed_on(name: str) -> Callable[..., None]:
    """What happens in a kernel goes to the recorder of its thread, if there is one."""

    def method(self: Tracer, *event: Any) -> None:
        if self._now.recorder is not None:
            getattr(self._now.recorder, name)(*event)

    return method


for _name in ("register", "will", "did", "moved", "received", "arrived"):
    setattr(Tracer, _name, _passed_on(_name))


class _Launch(threading.local):
    """The kernel that a thread is running."""

    def __init__(self) -> None:
        self.recorder: Recorder | None = None
        self.adopted: list[Storage] = []


def _estimate(program: Program) -> Timeline:
    """The timeline, with every micro-op where they are not too many."""
    short = estimate(program, verified=True)
    if not short.repeats or short.num_ops > MOST_SLICES:
        return short
    return estimate(program, verified=True, skip_periods=False)


def _said(timelines: Sequence[Timeline], file: Path) -> str:
    """What the file contains, and what opens it."""
    opens = "a browser" if file.suffix == SVG else "ui.perfetto.dev"
    kernels = f"{len(timelines)} kernel" + "s" * (len(timelines) > 1)
    microseconds = sum(timeline.launch_ns for timeline in timelines) / 1e3
    return f"{kernels}, {microseconds:.1f} µs modelled; opens in {opens}"


def _writer(file: Path) -> Any:
    """What writes timelines. Raises LaunchError where the file or the extra cannot be had."""
    if not file.parent.is_dir():
        raise LaunchError(f"--trace {file}: no such folder {file.parent}")
    if file.is_dir():
        raise LaunchError(f"--trace {file}: this is a folder", expected="a file to write")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise LaunchError(f"--trace {file}: it may not be written")
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
