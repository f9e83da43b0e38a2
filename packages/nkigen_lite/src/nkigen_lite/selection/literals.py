"""Numbers as kernels write them: Python floats, and ints of 32 bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from neuroncore.program import Access, Buffer, whole
from nki_dtypes import DType, int32


def literal(number: Any, dtype: DType) -> float:
    """The number for elements of `dtype`; a uint32 beyond int32 by its bits: the language takes
    ints of 32 bits."""
    if dtype.is_float:
        return float(number)
    value = int(number)
    return value - (1 << 32) if value > int32.max else value


def is_by_bits(number: Any, dtype: DType) -> bool:
    """Whether the literal is another number of the same bits."""
    return not dtype.is_float and int(number) > int32.max


def written_as(tile: Buffer, number: Any) -> Access:
    """The tile to write the literal into."""
    dtype = int32 if is_by_bits(number, tile.dtype) else None
    return replace(whole(tile), dtype=dtype)
