"""The bytes that an access names, and whether two accesses share one."""

from __future__ import annotations

from neuroncore.integers.sumsets import sumset
from neuroncore.records import record


@record
class Footprint:
    """Bytes of one tensor: offset + Σ strides[d] · i[d], each the first of `itemsize` bytes.

    `offset` counts from the start of the storage, row-major over all of it: partition p of an
    on-chip tensor begins at byte p · (bytes per partition). `strides` are bytes, positive and
    falling; dimensions that repeat, have one element or continue one another are gone, so
    `itemsize` is the longest contiguous run. `footprint` makes them; no bytes at all are
    Footprint(0, (), (), 0). Equal footprints name equal bytes, and rectangles are equal when their
    bytes are.
    """

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    def bounds(self) -> tuple[int, int]:
        """The first byte, and one past the last."""
        end = self.offset + self.itemsize
        for d, stride in enumerate(self.strides):
            end += (self.shape[d] - 1) * stride
        return self.offset, end

    def num_bytes(self) -> int:
        """How many distinct bytes these are."""
        return sumset(self.shape, self.strides, self.itemsize)[1].count() if self.itemsize else 0

    def overlaps(self, other: Footprint) -> bool:
        """Whether the two share a byte; both are taken to be in one storage. Exact.

        The distances between bytes of one and bytes of the other are a strided set again; the
        footprints meet where it holds 0. That is decided by the set's bounds, then by residues,
        then by search through the dimensions that neither decides (none between rectangles).
        """
        if not self.itemsize or not other.itemsize:
            return False
        distance = other.offset - self.offset
        least, distances = sumset(
            self.shape + other.shape,
            self.strides + tuple([-s for s in other.strides]),
            self.itemsize + other.itemsize - 1,
        )
        return distances.contains(distance + other.itemsize - 1 - least)

    def moved(self, by: int) -> Footprint:
        """The same bytes `by` further."""
        if not by:
            return self
        return Footprint(self.offset + by, self.shape, self.strides, self.itemsize)


NOTHING = Footprint(0, (), (), 0)


def footprint(
    offset: int, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> Footprint:
    """The canonical footprint of elements of `itemsize` bytes; offset and strides count bytes.

    >>> footprint(0, (4, 8), (32, 4), 4)
    Footprint(offset=0, shape=(), strides=(), itemsize=128)
    >>> footprint(28, (4, 4), (32, -8), 4)  # every other column, from the right
    Footprint(offset=4, shape=(16,), strides=(8,), itemsize=4)

    Raises ValueError for a negative size or shape and strides of different length.
    """
    if len(shape) != len(strides) or itemsize < 0 or any(n < 0 for n in shape):
        raise ValueError(
            "a footprint has one stride per dimension and no negative size; got shape "
            f"{tuple(shape)}, strides {tuple(strides)}, itemsize {itemsize}"
        )
    if not itemsize or 0 in shape:
        return NOTHING
    least, found = sumset(tuple(shape), tuple(strides), itemsize)
    return Footprint(offset + least, found.shape, found.strides, found.run)
