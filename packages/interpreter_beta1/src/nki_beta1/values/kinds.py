"""Names of the language's values in errors."""

from __future__ import annotations

from typing import Any

WORDS = {
    "Tile": "a tile",
    "Access": "an access to a tile",
    "Indirect": "an access to a tile",
    "Index": "an index expression",
    "Offset": "an index that the device moves",
    "Mask": "a mask",
    "Blocks": "a tensor with block dimensions",
    "Grid": "an nl.mgrid",
    "LoopRange": "a range of a loop",
    "MemorySpace": "a memory",
    "Engine": "an engine",
    "GridDim": "an axis of a launch grid",
}
"""The name of a value's class → what it is."""


def described(value: Any) -> str:
    """A value's kind in words: "a tile", "None", "a list"."""
    kind = type(value).__name__
    article = "an" if kind[0].lower() in "aeiou" else "a"
    return "None" if value is None else WORDS.get(kind) or f"{article} {kind}"
