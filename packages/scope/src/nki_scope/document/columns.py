"""Contents of a page, as one compressed text: a JSON document and columns of integers."""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

MAGIC = b"nki-scope 2\n"
OTHER_VERSION = "a page of another version"

_SURROGATE = re.compile("[\ud800-\udfff]")
"""What UTF-8 has not, in file names and errors: shown escaped."""


class Columns:
    """Columns of integers beside a document, which refers to them by number.

    A column is stored as differences of neighbours, lowest bytes first, then the second ones, and
    so on: sorted and repeated numbers become runs that compress well. Integers beyond 32 bits are
    two columns: the low 32 bits and the bits above. Equal columns are stored
    once: all forms of a kernel have the same results.
    """

    def __init__(self) -> None:
        self._blocks: dict[bytes, int] = {}

    def add(self, values: Iterable[int]) -> dict[str, Any]:
        """Store a column; the reference to it."""
        column = values if isinstance(values, np.ndarray) else np.fromiter(values, np.int64)
        if np.array_equal(column, column.astype(np.int32)):
            return self._add(column)
        return {"low": self._add(column), "high": self._add(column >> 32)}

    def _add(self, column: np.ndarray) -> dict[str, int]:
        steps = np.diff(column.astype(np.uint32), prepend=np.uint32(0)).astype("<u4")
        block = steps.view(np.uint8).reshape(-1, 4).T.tobytes()
        number = self._blocks.setdefault(block, len(self._blocks))
        return {"column": number, "length": len(column)}

    def packed(self, document: dict[str, Any]) -> str:
        """The document and the columns: deflated, in base64."""
        lines = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        text = _SURROGATE.sub(lambda found: rf"\\u{ord(found[0]):04x}", lines).encode()
        size = len(text).to_bytes(4, "little")
        whole = b"".join((MAGIC, size, text, *self._blocks))
        return base64.b64encode(zlib.compress(whole, 6)).decode()


def ticks(nanoseconds: Sequence[float], per_ns: float) -> np.ndarray:
    """Times as whole ticks, to the nearest."""
    return np.rint(np.array(nanoseconds, np.float64) * per_ns).astype(np.int64)


def unpacked(data: str) -> dict[str, Any]:
    """The document of packed contents, its columns as arrays. Raises ValueError for other data."""
    try:
        raw = zlib.decompress(base64.b64decode(data))
    except (zlib.error, binascii.Error):
        raise ValueError("a page with damaged data") from None
    if not raw.startswith(MAGIC):
        raise ValueError(OTHER_VERSION)
    start = len(MAGIC) + 4
    end = start + int.from_bytes(raw[len(MAGIC) : start], "little")
    document = json.loads(raw[start:end])
    columns, at = {}, end
    for number, length in sorted(set(_references(document))):
        columns[number] = _column(raw[at : at + 4 * length])
        at += 4 * length
    return _placed(document, columns)


def _column(block: bytes) -> np.ndarray:
    planes = np.frombuffer(block, np.uint8).reshape(4, -1)
    return np.cumsum(np.ascontiguousarray(planes.T).view("<u4").ravel(), dtype=np.uint32).view(
        np.int32
    )


REFERENCE, WIDE = {"column", "length"}, {"low", "high"}


def _references(value: Any) -> Iterator[tuple[int, int]]:
    if isinstance(value, dict) and value.keys() == REFERENCE:
        yield value["column"], value["length"]
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _references(inner)


def _placed(value: Any, columns: Mapping[int, np.ndarray]) -> Any:
    """The value with columns instead of the references to them."""
    if isinstance(value, list):
        return [_placed(inner, columns) for inner in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == REFERENCE:
        return columns[value["column"]]
    placed = {name: _placed(inner, columns) for name, inner in value.items()}
    if value.keys() == WIDE:
        return (placed["high"].astype(np.int64) << 32) | placed["low"].astype(np.uint32)
    return placed
