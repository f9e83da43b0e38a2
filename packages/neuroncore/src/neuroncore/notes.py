"""Notes: requests of a kernel that change neither values nor limits on this machine.

They go to a logger that is silent by default: `nki-run --verbose` prints each
of them once.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from neuroncore.source_location import find_place

LOGGER = logging.getLogger("neuroncore.notes")
HINTS = logging.getLogger("neuroncore.hints")
_NAN = (
    "a kernel returned NaN, and no argument has any: memory is NaN until something writes it; "
    "--check memory names the reads"
)


def note_without_effect(what: str, why: str, rule: str) -> None:
    """Log, at the kernel's line, that `what` is accepted and changes nothing here, and why.

    The record's `args` are (place, what, why, rule), so that a handler can tell repeated notes.
    """
    if LOGGER.isEnabledFor(logging.INFO):
        LOGGER.info("%s: %s changes nothing here: %s [%s]", find_place(), what, why, rule)


def hint_at_nan(results: Any, arguments: Any) -> None:
    """Log which check finds the cause, where `results` have NaN and `arguments` have none."""
    if HINTS.isEnabledFor(logging.INFO) and _has_nan(results) and not _has_nan(arguments):
        HINTS.info(_NAN)


def _has_nan(value: Any) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return any(map(_has_nan, value))
    return isinstance(value, np.ndarray) and bool(np.any(value != value))


def print_notes() -> None:
    """Print notes on stderr from now on, each once."""
    _print_once(LOGGER, "note")


def print_hints() -> None:
    """Print hints on stderr from now on, each once."""
    _print_once(HINTS, "hint")


def _print_once(logger: logging.Logger, kind: str) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(f"nki-run: {kind}: %(message)s"))
    handler.addFilter(_OncePerNote())
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False


class _OncePerNote(logging.Filter):
    """Lets one record of each note through, also where lines differ."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[object] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        args = record.args
        note = args[1:] if isinstance(args, tuple) and args else args or record.msg
        is_new = note not in self._seen
        self._seen.add(note)
        return is_new
