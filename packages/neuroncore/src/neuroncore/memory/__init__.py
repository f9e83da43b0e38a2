"""Memories of the machine: storage, and views of it."""

from neuroncore.memory.dynamic import Dynamic, dynamic_rows, resolve_scalar
from neuroncore.memory.indexing import IndexRules, ds
from neuroncore.memory.pool import Pool, elements
from neuroncore.memory.storage import Storage
from neuroncore.memory.view import View
from neuroncore.memory.window import window

__all__ = [
    "Dynamic",
    "IndexRules",
    "Pool",
    "Storage",
    "View",
    "ds",
    "dynamic_rows",
    "elements",
    "resolve_scalar",
    "window",
]
