"""`idx[0, b] + nl.arange(F)[None, :]`: a number in SBUF and an index expression, added up.

As an index it offsets the access on the device (tensor_copy_dynamic_src); for a function
of tiles it is the tile of sums.
"""

from __future__ import annotations

from typing import Any

from neuroncore.memory import View
from nki_beta1.index.expression import Index, constant_of
from nki_beta1.values.host_arrays import NotAnArray


class Offset(NotAnArray):
    """An index expression moved by the one number of a tile."""

    __slots__ = ("index", "tile")

    def __init__(self, tile: View, index: Index) -> None:
        self.tile, self.index = tile, index

    def __add__(self, other: Any) -> Any:
        return Offset(self.tile, self.index + other) if _is_static(other) else NotImplemented

    def __sub__(self, other: Any) -> Any:
        return Offset(self.tile, self.index - other) if _is_static(other) else NotImplemented

    __radd__ = __add__

    def __repr__(self) -> str:
        return f"<{self.index!r} moved by a number in {self.tile.spec.space.name.upper()}>"


def _is_static(value: Any) -> bool:
    return isinstance(value, Index) or constant_of(value) is not None
