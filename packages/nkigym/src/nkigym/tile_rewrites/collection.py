"""Garbage collection paused while a search allocates objects that all stay alive."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from neuroncore.machine.garbage_collection import no_collection


@contextmanager
def paused_collection() -> Iterator[None]:
    """No garbage collection inside the block, and none of its objects counts as young afterwards.

    A search keeps every part that it has met; going through them once it ends takes as long as
    half the search. Freezing and thawing makes them old without a look (CPython's gc module);
    objects that a caller has frozen stay frozen.
    """
    with no_collection():
        yield
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
