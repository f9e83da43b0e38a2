"""Results of searches in one file."""

from nkigym.store.problem_keys import problem_of
from nkigym.store.store import (
    Problem,
    Recorder,
    Result,
    Store,
    StoreBusyError,
    StoreCorruptError,
    Stored,
    StoreError,
    StoreFullError,
    StoreVersionError,
)

__all__ = [
    "Problem",
    "Recorder",
    "Result",
    "Store",
    "StoreBusyError",
    "StoreCorruptError",
    "StoreError",
    "StoreFullError",
    "StoreVersionError",
    "Stored",
    "problem_of",
]
