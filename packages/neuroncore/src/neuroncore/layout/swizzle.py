"""XOR of higher address bits into lower ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import overload

import numpy as np


@dataclass(frozen=True, slots=True)
class Swizzle:
    """An invertible map of addresses: bit k of an address flips the bits `columns[k]`.

    An upper unitriangular matrix over F₂, by columns: `columns[k]` has bit k and no higher one.
    `constant` flips bits of every address. Bits from `width` on stay as they are.

    >>> pairs = Swizzle.xor(bits=1, base=0, shift=2)  # bit 2 into bit 0
    >>> [pairs(address) for address in range(8)]
    [0, 1, 2, 3, 5, 4, 7, 6]

    Raises ValueError for columns that are not unitriangular or a negative constant.
    """

    columns: tuple[int, ...] = ()
    constant: int = 0

    def __post_init__(self) -> None:
        for bit, column in enumerate(self.columns):
            if column >> bit != 1:
                raise ValueError(
                    f"column {bit} of a swizzle has bit {bit} as its highest; got {column:#b}"
                )
        if self.constant < 0:
            raise ValueError(f"the constant of a swizzle is not negative; got {self.constant}")
        used = len(self.columns)
        while used and self.columns[used - 1] == 1 << used - 1:
            used -= 1
        object.__setattr__(self, "columns", tuple(self.columns[:used]))

    @classmethod
    def xor(cls, bits: int, base: int, shift: int) -> Swizzle:
        """Address bits base + shift, … are flipped into base, …: `bits` of them.

        The usual description of a swizzle of shared memory. Raises ValueError unless bits >= 0,
        base >= 0 and shift >= 1.
        """
        if bits < 0 or base < 0 or shift < 1:
            raise ValueError(
                "a swizzle has bits >= 0, base >= 0 and shift >= 1; "
                f"got bits {bits}, base {base}, shift {shift}"
            )
        sources = range(base + shift, base + shift + bits)
        return cls(
            tuple(
                1 << k | (1 << k - shift if k in sources else 0) for k in range(base + shift + bits)
            )
        )

    @property
    def width(self) -> int:
        """The number of low address bits that take part."""
        return max(len(self.columns), self.constant.bit_length())

    def __bool__(self) -> bool:
        """Whether any address changes."""
        return self.width > 0

    @overload
    def __call__(self, address: int) -> int: ...
    @overload
    def __call__(self, address: np.ndarray) -> np.ndarray: ...
    def __call__(self, address: int | np.ndarray) -> int | np.ndarray:
        """Where `address` goes; takes an int or an array of integers."""
        moved = address ^ self.constant
        for bit, column in enumerate(self.columns):
            others = column ^ 1 << bit
            if others:
                moved = moved ^ (address >> bit & 1) * others
        return moved

    def linear(self, address: int) -> int:
        """As a call, without the constant."""
        return self(address) ^ self.constant

    def inverse(self) -> Swizzle:
        """The swizzle that undoes this one.

        >>> Swizzle((1, 0b11, 0b110)).inverse()
        Swizzle(columns=(1, 3, 7), constant=0)
        """
        columns: list[int] = []
        for bit, column in enumerate(self.columns):
            undone = 1 << bit
            for lower in range(bit):
                if column >> lower & 1:
                    undone ^= columns[lower]
            columns.append(undone)
        linear = Swizzle(tuple(columns))
        return Swizzle(linear.columns, linear(self.constant))

    def then(self, other: Swizzle) -> Swizzle:
        """First this swizzle, then `other`."""
        width = max(self.width, other.width)
        columns = tuple(other.linear(self.linear(1 << bit)) for bit in range(width))
        return Swizzle(columns, other(self.constant))

    def scaled(self, by: int) -> Swizzle:
        """The same map `by` bits further up: of addresses multiplied by 2 to the power `by`."""
        low = tuple(1 << bit for bit in range(by))
        return Swizzle((*low, *(c << by for c in self.columns)), self.constant << by)


PLAIN = Swizzle()
