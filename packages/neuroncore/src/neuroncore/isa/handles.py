"""Results of isa calls from 0.6 on: handles of instructions, for edges that kernels add.

An edge is a semaphore that the device waits for whenever the consumer runs, so both ends are in one
turn of every device loop, or the producer is in a scope around the consumer's. Here instructions
run in program order, which satisfies every edge; watchers that reorder them are notified.
"""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path
from types import CodeType, FrameType

from neuroncore.errors import AttributeValueError, LaunchError, SignatureError
from neuroncore.machine.launch import RUNNING, Body
from neuroncore.source_location import Place, kernel_frame, place_in

HANDLES_SINCE = (0, 6)
"""The version whose calls return handles."""

NAME = "depends_on"
RULE = "NKI 0.6: NkiInstruction.depends_on"
_next, _new, _running = count().__next__, object.__new__, RUNNING.get


class Handle:
    """One instruction that a kernel has called."""

    __slots__ = ("_at", "_body", "_code", "_number")

    _at: int
    _body: Body | None
    _code: CodeType
    _number: int

    @property
    def place(self) -> Place:
        """The kernel's call."""
        return place_in(self._code, self._at)

    def __repr__(self) -> str:
        return f"<instruction, {Path(self.place.file).name}:{self.place.line}>"

    @property
    def is_of_running_program(self) -> bool:
        """Whether the program that runs now has called it."""
        launch = RUNNING.get()
        return launch is not None and _root(self._body) is launch.root

    def depends_on(self, *producers: Handle) -> Handle:
        """Run after `producers`, and return self.

        Raises SignatureError for anything but handles, LaunchError for instructions of different
        programs, AttributeValueError for an edge that the device would wait for without end.
        """
        for producer in producers:
            if not isinstance(producer, Handle):
                raise SignatureError(
                    "depends_on takes what nki.isa calls return", expected="handles",
                    got=type(producer).__name__, instruction=NAME, rule=RULE,
                )  # fmt: skip
            self._reject_unordered(producer)
            self._reject_across_loops(producer)
        launch = RUNNING.get()
        for watcher in () if launch is None or not producers else launch.core.watchers:
            watcher.told(self.place, [p.place for p in producers])
        return self

    def _reject_unordered(self, producer: Handle) -> None:
        launch = RUNNING.get()
        now = None if launch is None else launch.root
        roots = {_root(self._body), _root(producer._body), now}
        if len(roots) > 1:
            raise LaunchError(
                "an instruction of another program",
                expected="both instructions of the program that is running",
                got=_both(self, producer), instruction=NAME, rule=RULE,
                hint="keep handles in variables of the kernel",
            )  # fmt: skip
        if producer._number < self._number:
            return
        itself = producer is self
        raise AttributeValueError(
            "an instruction waits for itself" if itself
            else "an instruction waits for one that comes after it",
            expected="producers that come before their consumer",
            got=_both(self, producer), instruction=NAME, rule=RULE,
            hint=None if itself else "call depends_on of the one that comes after",
        )  # fmt: skip

    def _reject_across_loops(self, producer: Handle) -> None:
        body = self._body
        while body is not None and body is not producer._body:
            body = body.outer
        if body is producer._body:
            return
        inner = producer._body
        assert inner is not None
        raise AttributeValueError(
            f"an edge out of a turn of {inner.loop}: the device would wait without end",
            expected="both in one turn of a dynamic loop, or the producer in a scope around it",
            got=_both(self, producer), instruction=NAME, rule=RULE,
            hint="loops that unroll (range) do not count; let tensors carry what a turn leaves",
        )  # fmt: skip


def handle_at(frame: FrameType) -> Handle:
    """The handle of the instruction that `frame`, the caller of an isa function, is calling.

    Nearly all handles are dropped: what making one takes is 200 ns of every instruction.
    """
    handle = _new(Handle)
    launch = _running()
    if launch is None:
        handle._body = None
        frame = kernel_frame(frame) or frame
    else:
        bodies = launch.bodies  # Launch.scope, in half the time
        handle._body = bodies[-1] if bodies else launch.root
        if frame.f_globals is not launch.kernel_globals:
            calling = kernel_frame(frame)
            if calling is not None:
                frame, launch.kernel_globals = calling, calling.f_globals
    handle._code = frame.f_code
    handle._at = frame.f_lasti
    handle._number = _next()
    return handle


def handle_of(version: tuple[int, int]) -> Handle | None:
    """The result of a version's isa functions that no record makes; it calls this itself."""
    return handle_at(sys._getframe(1)) if version >= HANDLES_SINCE else None


def _root(body: Body | None) -> Body | None:
    while body is not None and body.outer is not None:
        body = body.outer
    return body


def _both(consumer: Handle, producer: Handle) -> str:
    return f"consumer {consumer.place}, producer {producer.place}"
