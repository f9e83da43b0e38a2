"""From addresses back to indices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroncore.layout._factors import Factors
from neuroncore.layout.swizzle import Swizzle

if TYPE_CHECKING:
    from neuroncore.layout.descriptor import Layout


def inverse_of(layout: Layout) -> tuple[tuple[Factors, ...], int, Swizzle]:
    """Factors, offset and swizzle of the inverse; see Layout.inverse."""
    layout = layout.canonical()
    digits = _digits(layout)
    expected, lowest = 1, layout.offset
    for _, stride, size, _ in digits:
        if abs(stride) != expected:
            raise _no_bijection(layout)
        expected *= size
        lowest += min(0, (size - 1) * stride)
    if lowest:
        raise _no_bijection(layout)
    factors = tuple((n, w if s > 0 else -w) for _, s, n, w in reversed(digits))
    offset = sum((n - 1) * w for _, s, n, w in digits if s < 0)
    swizzle = _through(layout.swizzle.inverse(), digits) if layout.swizzle else layout.swizzle
    return (factors,), offset, swizzle


def _digits(layout: Layout) -> list[tuple[int, int, int, int]]:
    """(|stride|, stride, size, weight in the row-major index) of each factor, by rising stride."""
    found, weight = [], 1
    for factors in reversed(layout.dims):
        for size, stride in reversed(factors):
            found.append((abs(stride), stride, size, weight))
            weight *= size
    return sorted(found)


def _no_bijection(layout: Layout) -> ValueError:
    return ValueError(
        f"only a layout that takes each of 0 to {layout.size - 1} once has an inverse; got {layout}"
    )


def _through(swizzle: Swizzle, digits: list[tuple[int, int, int, int]]) -> Swizzle:
    """The swizzle of addresses as one of indices: bit k of an address is a bit of the index."""
    images = [_image(1 << bit, digits) for bit in range(swizzle.width)]
    columns: dict[int, int] = {}
    for bit in range(swizzle.width):
        moved = swizzle.linear(1 << bit)
        columns[images[bit].bit_length() - 1] = _move(moved, images)
    height = max(columns, default=-1) + 1
    try:
        found = tuple(columns.get(bit, 1 << bit) for bit in range(height))
        return Swizzle(found, _move(swizzle.constant, images))
    except ValueError as wrong:
        raise ValueError(
            "the inverse would mix lower bits of the index into higher ones, which a restricted "
            "swizzle does not say"
        ) from wrong


def _move(bits: int, images: list[int]) -> int:
    return sum(image for bit, image in enumerate(images) if bits >> bit & 1)


def _image(address: int, digits: list[tuple[int, int, int, int]]) -> int:
    """The row-major index of a power-of-two address before the swizzle."""
    for _, stride, size, weight in digits:
        if stride <= address < stride * size:
            image = address // stride * weight
            if address % stride == 0 and image & image - 1 == 0:
                return image
    raise ValueError(
        f"address bit {address.bit_length() - 1}, which the swizzle uses, is no bit of the "
        "row-major index"
    )
