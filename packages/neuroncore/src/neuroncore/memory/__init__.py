"""Memories of the machine: storage, and views of it."""

from neuroncore.memory.dynamic import Dynamic, dynamic_rows, resolve_scalar
from neuroncore.memory.indexing import IndexRules, ds
from neuroncore.memory.indirection import (
    GROUP,
    gathered,
    named_elements,
    offsets_of,
    scatter,
)
from neuroncore.memory.pool import Pool, elements
from neuroncore.memory.shadow import Shadow, first_byte, is_gathered, is_whole
from neuroncore.memory.storage import Storage
from neuroncore.memory.view import View
from neuroncore.memory.window import address_of, window

__all__ = [
    "GROUP",
    "Dynamic",
    "IndexRules",
    "Pool",
    "Shadow",
    "Storage",
    "View",
    "address_of",
    "ds",
    "dynamic_rows",
    "elements",
    "first_byte",
    "gathered",
    "is_gathered",
    "is_whole",
    "named_elements",
    "offsets_of",
    "resolve_scalar",
    "scatter",
    "window",
]
