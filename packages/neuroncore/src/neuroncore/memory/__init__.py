"""Memories of the machine: storage, and views of it."""

from neuroncore.memory.dynamic import dynamic_rows, resolve_scalar
from neuroncore.memory.indexing import ds
from neuroncore.memory.indirection import gathered, named_elements, offsets_of, scatter
from neuroncore.memory.pool import Pool, elements
from neuroncore.memory.shadow import Shadow, first_byte, is_gathered, is_whole, written_flags
from neuroncore.memory.storage import (
    Dynamic,
    IndexRules,
    Storage,
    StridedView,
    WrittenFlags,
    undefined,
)
from neuroncore.memory.view import Core, View
from neuroncore.memory.window import address_of, fill, window

__all__ = [
    "Core",
    "Dynamic",
    "IndexRules",
    "Pool",
    "Shadow",
    "Storage",
    "StridedView",
    "View",
    "WrittenFlags",
    "address_of",
    "ds",
    "dynamic_rows",
    "elements",
    "fill",
    "first_byte",
    "gathered",
    "is_gathered",
    "is_whole",
    "named_elements",
    "offsets_of",
    "resolve_scalar",
    "scatter",
    "undefined",
    "window",
    "written_flags",
]
