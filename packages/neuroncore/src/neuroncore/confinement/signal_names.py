"""Names of the signals that end a process."""

from __future__ import annotations

import signal


def signal_name(number: int) -> str:
    """`SIGKILL`; a number of a signal without a name, as real-time signals are."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
