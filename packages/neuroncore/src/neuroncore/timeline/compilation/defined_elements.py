"""Elements of a tile that are defined when they are read, as statements are executed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from neuroncore.program import Access, Allocate, Buffer, Call, Loop, Statement, accesses

MOST_CALLS = 10_000
"""Calls that are followed for one tile; behind them nothing is known."""


class DefinedElements:
    """Which elements of a tile are defined; `defines`: whether a call defines its outputs without
    reading them.
    """

    def __init__(self, tile: Buffer, defines: Callable[[Call], bool], are_defined: bool) -> None:
        self.tile, self.defines = tile, defines
        self._flags = np.full(tile.size, are_defined)
        self._left = MOST_CALLS

    def mark(self, access: Access, are_defined: bool) -> bool:
        """Say what the elements of an access are; False where they are not known."""
        return self._mark(access, {}, are_defined)

    def cover(self, body: Sequence[Statement]) -> bool:
        """Whether every element is defined when these statements read it."""
        return self._block(body, {})

    def _block(self, body: Sequence[Statement], values: Mapping[str, int]) -> bool:
        return all(
            self._loop(s, values) if isinstance(s, Loop) else self._call(s, values)
            for s in body
            if not isinstance(s, Allocate)
        )

    def _loop(self, loop: Loop, values: Mapping[str, int]) -> bool:
        """Iterations that access the same elements are one: what is defined stays defined."""
        mine = [access for access in accesses(loop) if access.buffer == self.tile.name]
        if not mine or not loop.trips:
            return True
        moves = any(loop.variable in dict(access.offset.terms) for access in mine)
        trips = loop.values if moves else loop.values[:1]
        return all(self._block(loop.body, {**values, loop.variable: trip}) for trip in trips)

    def _call(self, call: Call, values: Mapping[str, int]) -> bool:
        mine = [access for access in accesses(call) if access.buffer == self.tile.name]
        self._left -= bool(mine)
        made = [a for a in mine if self.defines(call) and _is_output(a, call)]
        needed = [a for a in mine if not any(a is each for each in made)]
        are_there = all(self._are_defined(access, values) for access in needed)
        return self._left >= 0 and are_there and all(self._mark(a, values, True) for a in made)

    def _are_defined(self, access: Access, values: Mapping[str, int]) -> bool:
        elements = self._elements(access, values)
        return elements is not None and bool(elements.all())

    def _mark(self, access: Access, values: Mapping[str, int], are_defined: bool) -> bool:
        elements = self._elements(access, values)
        if elements is None:
            return False
        elements[...] = are_defined
        return True

    def _elements(self, access: Access, values: Mapping[str, int]) -> np.ndarray | None:
        """The flags of an access; None where its elements are not the tile's, or not known."""
        known = all(name in values for name, _ in access.offset.terms)
        if not known or access.indirect is not None or access.dtype is not None:
            return None
        first = self._flags[access.offset.value(values) :]
        return np.lib.stride_tricks.as_strided(first, access.shape, access.strides)


def _is_output(access: Access, call: Call) -> bool:
    return any(call.accesses.get(name) is access for name in call.record.outputs)
