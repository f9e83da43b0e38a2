"""Work that makes many small objects and few cycles, with no or fewer garbage collections."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG_OBJECTS = 50_000
"""New objects between two collections while a kernel runs (CPython: 700 to 2,000). Kernels keep
lists of tiles and make few cycles; what a cycle holds is freed after so many objects all the same.
"""


@contextmanager
def no_collection() -> Iterator[None]:
    """No garbage collection inside the block (a third faster); nothing else changes."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class FewerCollections:
    """Collections at most every YOUNG_OBJECTS new objects, while a block that enters it runs.

    The thresholds before the first of several blocks are restored after the last, in any thread.
    Collections that are switched off stay off, and higher thresholds stay as they are.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0
        self._before = (0, 0, 0)

    def __enter__(self) -> None:
        with self._lock:
            if self._blocks == 0:
                young, *older = self._before = gc.get_threshold()
                if 0 < young < YOUNG_OBJECTS:
                    gc.set_threshold(YOUNG_OBJECTS, *older)
            self._blocks += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._blocks -= 1
            if self._blocks == 0:
                gc.set_threshold(*self._before)


fewer_collections = FewerCollections()
