"""Results of searches in one file."""

from nkigym.store.errors import (
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreVersionError,
)
from nkigym.store.problem_keys import problem_of
from nkigym.store.store import Problem, Recorder, Result, Store, Stored

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
