"""Output for people: colour, and a line of progress, on a terminal only."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field
from math import inf
from typing import TextIO

EVERY_S = 0.1
LINES_EVERY_S = 1.0


def use_color(choice: str, stream: TextIO | None = None) -> bool:
    """Whether to colour a stream, stdout by default: "always", "never", or "auto" (a terminal, or
    FORCE_COLOR, without NO_COLOR; FORCE_COLOR=0 is without colour)."""
    if choice != "auto" or os.environ.get("NO_COLOR"):
        return choice == "always"
    forced = os.environ.get("FORCE_COLOR")
    return forced != "0" if forced else (stream or sys.stdout).isatty()


@dataclass(slots=True)
class StatusLine:
    """One line that is written over itself, at most every EVERY_S seconds.

    Off a terminal nothing, or with `lines` a line of its own at most every LINES_EVERY_S seconds.
    """

    stream: TextIO = field(default_factory=lambda: sys.stderr)
    shown: float = -inf
    """When it was written last."""
    lines: bool = False

    def show(self, text: str, now: float | None = None) -> None:
        now = time.monotonic() if now is None else now
        is_terminal = self.stream.isatty()
        interval_s = EVERY_S if is_terminal else LINES_EVERY_S
        if (is_terminal or self.lines) and now - self.shown >= interval_s:
            self.shown = now
            self.stream.write(f"\r\033[K{text}" if is_terminal else f"{text}\n")
            self.stream.flush()

    def close(self) -> None:
        """Remove the line, if there is one."""
        if self.shown > -inf and self.stream.isatty():
            self.stream.write("\r\033[K")
            self.stream.flush()
