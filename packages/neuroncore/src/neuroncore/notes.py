"""Notes: what a kernel requests and what changes neither values nor limits on this machine.

They go to a logger that is silent by default: `nki-run --verbose` prints each
of them once.
"""

from __future__ import annotations

import logging

from neuroncore.source_location import find_place

LOGGER = logging.getLogger("neuroncore.notes")


def note_without_effect(what: str, why: str, rule: str) -> None:
    """Log, at the kernel's line, that `what` is accepted and changes nothing here, and why.

    The record's `args` are (place, what, why, rule), so that a handler can tell repeated notes.
    """
    if LOGGER.isEnabledFor(logging.INFO):
        LOGGER.info("%s: %s changes nothing here: %s [%s]", find_place(), what, why, rule)


def print_notes() -> None:
    """Print notes on stderr from now on, each once."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("nki-run: note: %(message)s"))
    handler.addFilter(_OncePerNote())
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False


class _OncePerNote(logging.Filter):
    """Lets one record of each note through, also where lines differ."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[object] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        note = record.args[1:] if isinstance(record.args, tuple) else record.args
        is_new = note not in self._seen
        self._seen.add(note)
        return is_new
