"""Contents of a page, as one compressed text: a JSON document and columns of integers."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np

MAGIC = b"nki-scope 2\n"


class Columns:
    """Columns of 32-bit integers beside a document, which refers to them by number.

    A column is stored as differences of neighbours, lowest bytes first, then the second ones, and
    so on: sorted and repeated numbers become runs that compress well.
    """

    def __init__(self) -> None:
        self._blocks: list[bytes] = []

    def add(self, values: Iterable[int]) -> dict[str, int]:
        """Store a column; the reference to it. Numbers wrap around at 32 bits."""
        column = np.fromiter(values, np.int64).astype(np.uint32)
        steps = np.diff(column, prepend=np.uint32(0)).astype("<u4")
        self._blocks.append(steps.view(np.uint8).reshape(-1, 4).T.tobytes())
        return {"column": len(self._blocks) - 1, "length": len(column)}

    def packed(self, document: dict[str, Any]) -> str:
        """The document and the columns: deflated, in base64."""
        text = json.dumps(
            document, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        ).encode()
        size = len(text).to_bytes(4, "little")
        whole = b"".join((MAGIC, size, text, *self._blocks))
        return base64.b64encode(zlib.compress(whole, 6)).decode()


def unpacked(data: str) -> dict[str, Any]:
    """The document of packed contents. Raises ValueError for other data."""
    try:
        raw = zlib.decompress(base64.b64decode(data))
    except zlib.error:
        raise ValueError("a page that is not whole") from None
    if not raw.startswith(MAGIC):
        raise ValueError("a page of another version")
    start = len(MAGIC) + 4
    return json.loads(raw[start : start + int.from_bytes(raw[len(MAGIC) : start], "little")])
