"""`nki.compiler.sbuf` and `psum`: tensors at addresses that the kernel chooses.

An address is checked (capacity, partitions, PSUM banks) and kept with the tensor, where observers
find it. The tiles of a tensor with block dimensions keep contents of their own also where the
kernel gives several blocks one address: a kernel that reads a block after another one took its
place is wrong on the device and not noticed here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from neuroncore.enums import MemorySpace
from neuroncore.errors import AttributeValueError
from neuroncore.machine.launch import running
from neuroncore.targets import PARTITIONS, QUADRANT
from nki_dtypes import DType

RULE = "NKI 0.1: direct allocation"
BASE_PARTITIONS = tuple(range(0, PARTITIONS, QUADRANT))

Address = tuple[int, int]
AllocationFunction = Callable[..., tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Placement:
    """A memory, and the address of each block of a tensor in it.

    `place(block, partitions, bytes_per_partition)` gives (partition, byte in each partition).
    """

    space: MemorySpace
    place: Callable[[tuple[int, ...], int, int], Address]

    def address(self, block: tuple[int, ...], shape: Sequence[int], kind: DType) -> Address:
        """The address of a block's tile; `block` is () for a tensor without block dimensions."""
        return self.place(block, int(shape[0]), prod(map(int, shape[1:])) * kind.itemsize)


@dataclass(frozen=True, slots=True)
class Ring:
    """Tiles side by side in one direction; the blocks go round modulo their number.

    One size of `tiles` per block dimension, row-major; an empty tuple is one tile. A tensor
    without block dimensions is the first tile.
    """

    tiles: tuple[int, ...]
    name: str

    def position(self, block: tuple[int, ...]) -> int:
        """Which of the tiles a block takes."""
        if not block or not self.tiles:
            return 0
        if len(self.tiles) != len(block):
            raise AttributeValueError(
                f"{self.name} counts other dimensions than the tensor has before par_dim",
                expected=f"{len(block)} sizes, or ()",
                got=repr(self.tiles),
                operand="buffer",
                rule=RULE,
            )
        found = 0
        for index, size in zip(block, self.tiles, strict=True):
            found = found * size + index % size
        return found


def _ring(tiles: Any, name: str) -> Ring:
    sizes = tuple(tiles) if isinstance(tiles, (tuple, list)) else (tiles,)
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        raise AttributeValueError(
            f"{name} is not a tuple of positive ints", got=repr(tiles), operand=name, rule=RULE
        )
    return Ring(sizes, name)


def _base_partition(given: int) -> int:
    if given not in BASE_PARTITIONS:
        raise AttributeValueError(
            f"base_partition {given!r}",
            expected=", ".join(map(str, BASE_PARTITIONS)),
            got=repr(given),
            operand="base_partition",
            rule=RULE,
        )
    return given


class SbufAllocation:
    """`nki.compiler.sbuf`."""

    def mod_alloc(
        self,
        *,
        base_addr: int,
        base_partition: int = 0,
        num_par_tiles: Sequence[int] = (),
        num_free_tiles: Sequence[int] = (),
    ) -> Placement:
        """Tiles from byte `base_addr` on: block i is tile i modulo the number of tiles."""
        start = _base_partition(base_partition)
        par, free = _ring(num_par_tiles, "num_par_tiles"), _ring(num_free_tiles, "num_free_tiles")

        def place(block: tuple[int, ...], partitions: int, size: int) -> Address:
            return (
                start + par.position(block) * partitions,
                base_addr + free.position(block) * size,
            )

        return Placement(MemorySpace.sbuf, place)

    def alloc(self, func: AllocationFunction) -> Placement:
        """`func(idx=block, pdim_size=partitions, fdim_size=bytes)` gives (partition, byte)."""

        def place(block: tuple[int, ...], partitions: int, size: int) -> Address:
            partition, byte = _address_from(func, block, partitions, size, "(partition, byte)")
            return partition, byte

        return Placement(MemorySpace.sbuf, place)

    def auto_alloc(self) -> MemorySpace:
        """The compiler's choice."""
        return MemorySpace.sbuf


class PsumAllocation:
    """`nki.compiler.psum`: 8 banks of 2 KiB per partition; a tile is in one of them."""

    def mod_alloc(
        self,
        *,
        base_bank: int,
        base_addr: int = 0,
        base_partition: int = 0,
        num_bank_tiles: Sequence[int] = (),
        num_par_tiles: Sequence[int] = (),
        num_free_tiles: Sequence[int] = (),
    ) -> Placement:
        """Tiles from bank `base_bank` on: block i is tile i modulo the number of tiles."""
        start = _base_partition(base_partition)
        bank = _ring(num_bank_tiles, "num_bank_tiles")
        par, free = _ring(num_par_tiles, "num_par_tiles"), _ring(num_free_tiles, "num_free_tiles")

        def place(block: tuple[int, ...], partitions: int, size: int) -> Address:
            in_bank = base_addr + free.position(block) * size
            return (
                start + par.position(block) * partitions,
                (base_bank + bank.position(block)) * _bank_bytes() + in_bank,
            )

        return Placement(MemorySpace.psum, place)

    def alloc(self, func: AllocationFunction) -> Placement:
        """`func(idx=block, pdim_size=partitions, fdim_size=bytes)` : (bank, partition, byte)."""

        def place(block: tuple[int, ...], partitions: int, size: int) -> Address:
            bank, partition, byte = _address_from(
                func, block, partitions, size, "(bank, partition, byte in the bank)"
            )
            return partition, bank * _bank_bytes() + byte

        return Placement(MemorySpace.psum, place)

    def auto_alloc(self) -> MemorySpace:
        """The compiler's choice."""
        return MemorySpace.psum


def _bank_bytes() -> int:
    return running("nki.compiler.psum").core.target.psum_bank_bytes


def _address_from(
    func: AllocationFunction, block: tuple[int, ...], partitions: int, size: int, expected: str
) -> tuple[int, ...]:
    """The address that the kernel's allocation function returns; 0.1 passes arguments by name."""
    given = func(idx=block, pdim_size=partitions, fdim_size=size)
    wanted = expected.count(",") + 1
    if isinstance(given, tuple) and len(given) == wanted and all(isinstance(n, int) for n in given):
        return given
    raise AttributeValueError(
        "the allocation function gave no address",
        expected=f"a tuple of ints: {expected}",
        got=repr(given)[:80],
        operand="buffer",
        rule=RULE,
    )
