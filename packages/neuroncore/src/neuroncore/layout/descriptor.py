"""Layouts: the address of each index of a tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from neuroncore.layout import factors as mixed_radix
from neuroncore.layout.canonical import inverse_of, normal_form, split_bits
from neuroncore.layout.factors import FactoredMap, Factors
from neuroncore.layout.swizzle import PLAIN, Swizzle
from neuroncore.layout.verdict import Verdict, fits_view
from neuroncore.spec import row_major


@dataclass(frozen=True, slots=True)
class Layout(FactoredMap):
    """A map of indices to addresses: swizzle(offset + Σ over dimensions of Σ stride · digit).

    Each dimension is a tuple of (size, stride) factors, the slowest first: one for a plain
    dimension, none for size 1, several for one that is tiled in memory. Units are what strides
    count: elements or bytes, of a tensor or of a partition. `Layout.of` makes one from a shape and
    strides.

    A swizzle is restricted: below its width, steps are powers of two in number and share no
    address bit. Raises ValueError where they are not, or a size is less than 1.
    """

    def __post_init__(self) -> None:
        if any(size < 1 for factors in self.dims for size, _ in factors):
            raise ValueError(f"sizes of a layout are at least 1; got {self.dims}")
        if self.swizzle:
            split_bits(self)

    @classmethod
    def of(
        cls,
        shape: Sequence[int],
        strides: Sequence[int] | None = None,
        offset: int = 0,
        swizzle: Swizzle = PLAIN,
    ) -> Layout:
        """A layout with one step per dimension; without strides the dense row-major one.

        >>> Layout.of((4, 8), swizzle=Swizzle.xor(bits=2, base=0, shift=3)).addresses()[1].tolist()
        [9, 8, 11, 10, 13, 12, 15, 14]

        Raises ValueError for a shape and strides of different length.
        """
        shape = tuple(shape)
        strides = row_major(shape) if strides is None else tuple(strides)
        if len(shape) != len(strides):
            raise ValueError(
                f"a layout has one stride per dimension; got shape {shape}, strides {strides}"
            )
        return cls(tuple(((n, s),) for n, s in zip(shape, strides, strict=True)), offset, swizzle)

    # -- addresses --------------------------------------------------------------------------------

    def address(self, index: Sequence[int]) -> int:
        """Where `index` lies; raises ValueError outside the shape."""
        if len(index) != len(self.dims) or not all(
            0 <= i < n for i, n in zip(index, self.shape, strict=True)
        ):
            raise ValueError(f"index {tuple(index)} is outside shape {self.shape}")
        steps = (mixed_radix.address(f, i) for f, i in zip(self.dims, index, strict=True))
        return self.swizzle(self.offset + sum(steps))

    def addresses(self) -> np.ndarray:
        """All addresses as an int64 array of the layout's shape."""
        total = np.full((), self.offset, np.int64)
        for factors in self.dims:
            for size, stride in factors:
                total = total[..., None] + np.arange(size, dtype=np.int64) * stride
        return self.swizzle(total.reshape(self.shape))

    def canonical(self) -> Layout:
        """The same map, written in the one way that all layouts of this meaning share.

        >>> tiled = Layout((((2, 32), (4, 8)), ((8, 1),)))
        >>> tiled.canonical() == Layout.of((8, 8)).canonical()
        True
        """
        return Layout(*normal_form(self))

    def same_as(self, other: Layout) -> bool:
        """Whether both have one shape and give every index the same address."""
        return self.shape == other.shape and self.canonical() == other.canonical()

    def fits_view(self, row: int | None = None, most_pairs: int | None = None) -> Verdict:
        """Whether a hardware access pattern [[stride, count], …] can express the layout.

        `row`: units per partition of an on-chip tensor, over which dimension 0 must step, all else
        staying inside one. `most_pairs`: how many pairs the instruction takes. The verdict names
        the bits that block it.

        >>> print(Layout.of((4, 8), (16, 1)).fits_view())
        [[16, 4], [1, 8]] from 0
        >>> print(Layout.of((4, 8), swizzle=Swizzle.xor(bits=1, base=1, shift=2)).fits_view())
        no access pattern: address bit 1 is the XOR of index bit 0 of dimension 0 and index bit 1 \
of dimension 1
        """
        return fits_view(self, self.canonical(), row, most_pairs)

    # -- parts of it ------------------------------------------------------------------------------

    def select(self, dim: int, index: int) -> Layout:
        """Without dimension `dim`, at `index` of it."""
        self._has(dim, index, 1, 1)
        before, after = self.dims[:dim], self.dims[dim + 1 :]
        offset = self.offset + mixed_radix.address(self.dims[dim], index)
        return Layout(before + after, offset, self.swizzle)

    def slice(self, dim: int, start: int, count: int, step: int = 1) -> Layout:
        """Indices start, start + step, …, `count` of them, of dimension `dim`.

        Raises ValueError outside the dimension, and where a part of a tiled or swizzled dimension
        is not aligned with its blocks.
        """
        self._has(dim, start, count, step)
        first, factors = mixed_radix.part(mixed_radix.merged(self.dims[dim]), start, count, step)
        return self._with(dim, (factors,), self.offset + first)

    def tile(self, dim: int, size: int) -> Layout:
        """Dimension `dim` as two: tiles, and the `size` indices inside each.

        >>> Layout.of((8,)).tile(0, 4) == Layout.of((2, 4))
        True

        Raises ValueError where `size` does not divide the dimension or its factors.
        """
        self._has(dim, 0, 1, 1)
        if size < 1 or self.shape[dim] % size:
            raise ValueError(
                f"tiles of {size} do not divide dimension {dim} of {self.shape[dim]} indices"
            )
        return self._with(
            dim, mixed_radix.cut(mixed_radix.merged(self.dims[dim]), size), self.offset
        )

    def permute(self, dims: Sequence[int]) -> Layout:
        """Dimensions in another order; raises ValueError for no permutation."""
        if sorted(dims) != list(range(len(self.dims))):
            raise ValueError(f"{tuple(dims)} is not a permutation of {len(self.dims)} dimensions")
        return replace(self, dims=tuple(self.dims[d] for d in dims))

    def reshape(self, shape: Sequence[int]) -> Layout:
        """The same elements in row-major order in another shape.

        >>> Layout.of((4, 6), (8, 1)).reshape((2, 2, 6)) == Layout.of((2, 2, 6), (16, 8, 1))
        True

        Raises ValueError for a shape of another size, and where a dimension of it would end inside
        a factor that its size does not divide.
        """
        left = mixed_radix.merged(f for factors in self.dims for f in factors)
        if prod(shape) != self.size:
            raise ValueError(f"{self.size} indices do not have shape {tuple(shape)}")
        dims: list[Factors] = []
        for size in reversed(shape):
            left, factors = mixed_radix.cut(left, size)
            dims.insert(0, mixed_radix.merged(factors))
        return replace(self, dims=tuple(dims))

    # -- with others ------------------------------------------------------------------------------

    def after(self, inner: Layout) -> Layout:
        """Composition: `inner` gives row-major indices of this layout, which gives addresses.

        >>> by_column = Layout.of((4, 2), (1, 4))
        >>> Layout.of((8,), (10,)).after(by_column).addresses().tolist()
        [[0, 40], [10, 50], [20, 60], [30, 70]]

        Raises ValueError where inner leaves this layout, its steps are not made of this layout's,
        or its swizzle is composed with anything but one dense dimension with a power-of-two step.
        """
        outer = mixed_radix.merged(f for factors in self.dims for f in factors)
        if inner.swizzle:
            return self._after_swizzle(outer, inner)
        offset, dims = mixed_radix.through(outer, inner.dims, inner.offset)
        return Layout(dims, self.offset + offset, self.swizzle)

    def _after_swizzle(self, outer: Factors, inner: Layout) -> Layout:
        size, step = outer[0] if len(outer) == 1 else (1, 0)
        block = 1 << inner.swizzle.width
        if step < 1 or step & step - 1 or size % block or self.offset % (block * step):
            raise ValueError(
                "a swizzled layout composes with one dimension of power-of-two step, whose size "
                f"and offset are multiples of {block} steps; got {self}"
            )
        offset, dims = mixed_radix.through(outer, inner.dims, inner.offset)
        swizzle = inner.swizzle.scaled(step.bit_length() - 1).then(self.swizzle)
        return Layout(dims, self.offset + offset, swizzle)

    def inverse(self) -> Layout:
        """From addresses 0 … size - 1 to row-major indices: one dimension.

        >>> Layout.of((4, 2), (1, 4)).inverse().addresses().tolist()
        [0, 2, 4, 6, 1, 3, 5, 7]

        Raises ValueError unless the addresses are exactly these, and where the inverse of the
        swizzle would mix lower bits into higher ones.
        """
        return Layout(*inverse_of(self.canonical()))

    # -- within -----------------------------------------------------------------------------------

    def _with(self, dim: int, factors: tuple[Factors, ...], offset: int) -> Layout:
        dims = (*self.dims[:dim], *factors, *self.dims[dim + 1 :])
        return Layout(dims, offset, self.swizzle)

    def _has(self, dim: int, start: int, count: int, step: int) -> None:
        if not 0 <= dim < len(self.dims):
            raise ValueError(
                f"dimension {dim} does not exist; expected 0 <= dim < {len(self.dims)}"
            )
        size = self.shape[dim]
        if step < 1 or count < 1 or start < 0 or start + (count - 1) * step >= size:
            raise ValueError(
                f"{count} indices from {start} by {step} are not in dimension {dim} of {size}"
            )
