"""The last writer of each byte of SBUF and PSUM, among tensors at explicit addresses.

Every tensor here has memory of its own; on a device, one whose bytes lie under another's loses its
content where the other is written. A tensor's content is followed byte for byte, from the write
that made it to the one that replaces it: written whole again, it is new.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import gcd

import numpy as np

from neuroncore.checks.tensor_labels import Made, label
from neuroncore.memory import Shadow, Storage, View, is_whole
from neuroncore.source_location import Place

GRANULE_BYTES = 2048
"""Of a partition; tensors are looked up by the granules that contain them."""


@dataclass(slots=True, eq=False)
class Tensor:
    """A tensor at an address, and who owns its bytes.

    `content`: False while nothing has been written, True where all of it is its own, the tensor
    that overwrote all of it; else, per piece of memory, 0 or the number of the tensor that wrote
    there last, of those pieces that this tensor has ever written.
    """

    number: int
    name: str
    made: Made
    place: Place | None
    first_partition: int
    num_partitions: int
    first_byte: int
    free_bytes: int
    widths: tuple[int, int]
    """Bytes of an element on the machine, and in the storage (wider where precision is off)."""
    content: bool | Tensor | Shadow = False
    lost_to: dict[int, Tensor] = field(default_factory=dict)

    @property
    def called(self) -> str:
        """Its name, and which of its line it is where there are several."""
        return f"{self.name}{self.made}"

    @property
    def end_partition(self) -> int:
        return self.first_partition + self.num_partitions

    @property
    def end_byte(self) -> int:
        return self.first_byte + self.free_bytes

    def __str__(self) -> str:
        return (
            f"partitions {self.first_partition} to {self.end_partition - 1}, "
            f"bytes {self.first_byte} to {self.end_byte - 1}"
        )

    def shares_with(self, other: Tensor) -> bool:
        """Whether one byte at least is under both."""
        return (
            self.first_partition < other.end_partition
            and other.first_partition < self.end_partition
            and self.first_byte < other.end_byte
            and other.first_byte < self.end_byte
        )

    def lies_inside(self, other: Tensor) -> bool:
        """Whether each of its bytes is under the other."""
        return (
            other.first_partition <= self.first_partition
            and self.end_partition <= other.end_partition
            and other.first_byte <= self.first_byte
            and self.end_byte <= other.end_byte
        )

    # -- what happens to it -----------------------------------------------------------------------

    def overwriter(self, view: View, where: np.ndarray | None) -> Tensor | None:
        """The tensor whose content a read of `view`, at `where`, finds instead of this tensor's."""
        if isinstance(self.content, bool):
            return None
        if isinstance(self.content, Tensor):
            return self.content
        owners = self.content.get(view) if self.lost_to else None
        if owners is None:
            return None
        if where is not None and owners.shape[: where.ndim] == where.shape:
            owners = owners[where]  # rows that an index names are all looked at
        foreign = owners[(owners != 0) & (owners != self.number)]
        return self.lost_to[int(foreign[0])] if foreign.size else None

    def write(self, view: View, where: np.ndarray | None) -> None:
        """The tensor is written through `view`, where `where`."""
        if where is None and is_whole(view):
            self.content = True
            self.lost_to.clear()
        elif self.content is not True:
            self._shadow().put(view, self.number, where)

    def lose(self, to: Tensor, written: Shadow | None) -> None:
        """Bytes of `to` have been written (of `written`, or all) and overwrite this tensor."""
        if written is None and self.content is True and self.lies_inside(to):
            self.content = to
            return
        owners = self._shadow()
        mine, theirs = self._window(to), to._window(self)
        unit = gcd(self._unit(owners), mine[1].start, mine[1].stop)
        if written is not None:
            unit = gcd(unit, to._unit(written), theirs[1].start, theirs[1].stop)
            to._refine(written, unit)
        self._refine(owners, unit)
        under = self._at(owners, mine, unit)
        gone = under != 0
        if written is not None:
            gone &= to._at(written, theirs, unit)
        if gone.any():
            under[gone] = to.number
            self.lost_to[to.number] = to

    def has_content(self) -> bool:
        """Whether a byte of it is its own still."""
        if isinstance(self.content, Shadow):
            return bool((self.content.entries == self.number).any())
        return self.content is True

    # -- its bytes --------------------------------------------------------------------------------

    def _shadow(self) -> Shadow:
        """Its content by pieces."""
        if isinstance(self.content, Shadow):
            return self.content
        if isinstance(self.content, Tensor):
            self.lost_to[self.content.number] = self.content
            fill = self.content.number
        else:
            fill = self.number if self.content else 0
        unit = self.widths[1]
        count = self.num_partitions * self.free_bytes // self.widths[0]
        self.content = Shadow(unit, count, fill, np.int32)
        return self.content

    def _window(self, other: Tensor) -> tuple[slice, slice]:
        """The partitions and bytes of this tensor that are under the other, too."""
        low = max(self.first_partition, other.first_partition)
        high = min(self.end_partition, other.end_partition)
        left = max(self.first_byte, other.first_byte)
        right = min(self.end_byte, other.end_byte)
        return (
            slice(low - self.first_partition, high - self.first_partition),
            slice(left - self.first_byte, right - self.first_byte),
        )

    def _unit(self, shadow: Shadow) -> int:
        """Bytes on the machine per entry."""
        machine, stored = self.widths
        return shadow.unit * machine // stored

    def _refine(self, shadow: Shadow, unit: int) -> None:
        machine, stored = self.widths
        shadow.refine(unit * stored // machine)

    def _at(self, shadow: Shadow, window: tuple[slice, slice], unit: int) -> np.ndarray:
        rows, bytes_ = window
        entries = shadow.entries.reshape(self.num_partitions, self.free_bytes // unit)
        return entries[rows, bytes_.start // unit : bytes_.stop // unit]


class Memory:
    """The tensors at addresses of one program in SBUF or in PSUM that have content."""

    def __init__(self) -> None:
        self._granules: dict[int, dict[int, Tensor]] = {}

    def write(self, tensor: Tensor, view: View, where: np.ndarray | None = None) -> None:
        """`view` of the tensor is written at `where`; what lies under it is lost."""
        tensor.write(view, where)
        under = list(self._under(tensor))
        if under:
            written = _bytes_of(view, where)
            for other in under:
                other.lose(tensor, written)
                if not other.has_content():
                    self._forget(other)
        for granule in _granules(tensor):
            self._granules.setdefault(granule, {})[tensor.number] = tensor

    def _under(self, tensor: Tensor) -> Iterator[Tensor]:
        """The tensors that share bytes with it and have content."""
        near: dict[int, Tensor] = {}
        for granule in _granules(tensor):
            near |= self._granules.get(granule, {})
        return (t for t in near.values() if t is not tensor and t.shares_with(tensor))

    def _forget(self, tensor: Tensor) -> None:
        for granule in _granules(tensor):
            self._granules[granule].pop(tensor.number, None)


def _granules(tensor: Tensor) -> range:
    last = tensor.first_byte + tensor.free_bytes - 1
    return range(tensor.first_byte // GRANULE_BYTES, last // GRANULE_BYTES + 1)


def _bytes_of(view: View, where: np.ndarray | None) -> Shadow | None:
    """The bytes that a write names; None for all of the tensor."""
    if where is None and is_whole(view):
        return None
    written = Shadow.beside(view.storage, False)
    written.put(view, True, where)
    return written


def tensor_of(storage: Storage, number: int, made: Made) -> Tensor:
    """The record of a tensor at an address, before any write."""
    assert storage.address is not None
    partition, byte = storage.address
    widths = storage.dtype.itemsize, storage.flat.itemsize
    free_bytes = storage.free_elems * widths[0]
    return Tensor(
        number, label(storage), made, storage.place, partition, storage.shape[0], byte, free_bytes,
        widths,
    )  # fmt: skip
