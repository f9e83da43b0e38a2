"""Tiles as indices: which may be one, and their numbers as addresses are computed from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuroncore.engines import Space
from neuroncore.errors import AccessError, DTypeError
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.memory import View
from nki_beta1._fetched import fetched
from nki_beta1._moved import RULE
from nki_beta1._usage import issue, usage
from nki_dtypes import bool_, int32


def refuse_no_index(tile: View) -> None:
    """Raise AccessError for a tile outside SBUF, DTypeError for bools, which name no element."""
    core: Any = tile.core
    core.flush()
    if tile.spec.space is not Space.sbuf:
        raise AccessError(
            f"the index tile is in {tile.spec.space.name.upper()}",
            expected="a tile in SBUF",
            got=repr(tile),
            hint="load it, or copy it with nl.copy first",
            rule=RULE,
        )
    if tile.spec.dtype is bool_:
        raise _no_index(tile, f"the index tile is {tile.spec.dtype}")


def is_address(tile: View) -> bool:
    """Whether the machine computes addresses from the tile as it is: int32 or uint32, in place."""
    kind = tile.spec.dtype
    return kind.is_integer and kind.itemsize == 4 and tile.dynamic is None


def as_address(tile: View) -> View:
    """The tile's numbers as they are now, as int32 or uint32.

    Narrower integers, and floats that hold whole numbers as public kernels have them, are copied to
    int32. Raises DTypeError for other floats: the documents have none as an index.
    """
    if is_address(tile):
        tile.settle()
        return tile
    copy = tile.core.allocate(tile.shape, int32, Space.sbuf)
    _copy(copy, tile)
    return copy


class Followed:
    """An index tile whose numbers a view has in a copy: brought there again after it was written.

    `numbers` is that copy.
    """

    __slots__ = ("__weakref__", "_is_stale", "_tile", "numbers")

    def __init__(self, tile: View) -> None:
        self._tile = tile
        self.numbers = as_address(tile)
        self._follow()

    def renew(self) -> None:
        """Let `numbers` be what the tile says now."""
        if self._is_stale:
            _copy(self.numbers, self._tile)
            self._follow()

    def detach(self) -> None:
        """The tile, or what says where it is, is about to be written."""
        self._is_stale = True

    def _follow(self) -> None:
        self._is_stale = False
        view: View | None = self._tile
        while view is not None:
            core: Any = view.core
            core.lend(view.storage, self)
            view = None if view.dynamic is None else view.dynamic.index


def _copy(numbers: View, tile: View) -> None:
    tile.settle()
    tile = fetched(tile)
    core: Any = tile.core
    if tile.spec.dtype.is_float and core.computes:
        values = tile.array.astype(np.float64)
        broken = values[values != np.trunc(values)]
        if broken.size:
            raise _no_index(tile, f"the index tile is {tile.spec.dtype} and holds {broken[0]}")
    issue(core, usage(core, INSTRUCTIONS["tensor_copy"], {}), [numbers, tile])


def _no_index(tile: View, message: str) -> DTypeError:
    return DTypeError(
        message,
        expected="int32, uint32 or whole numbers",
        got=repr(tile),
        hint="numbers are rounded where you say so: nl.copy(tile, dtype=nl.int32)",
        rule=RULE,
    )
