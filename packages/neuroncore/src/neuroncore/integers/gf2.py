"""Vector spaces over F₂: vectors are integers, their sum is XOR."""

from __future__ import annotations


def basis(vectors: list[int]) -> list[int]:
    """Independent vectors of the same span, each with a highest bit of its own."""
    found: list[int] = []
    for vector in vectors:
        vector = reduce(vector, found)
        if vector:
            found.append(vector)
            found.sort(reverse=True)
    return found


def reduce(vector: int, basis: list[int]) -> int:
    """The least vector that differs from `vector` by a sum of `basis`: 0 for one of the span."""
    for other in basis:
        vector = min(vector, vector ^ other)
    return vector
