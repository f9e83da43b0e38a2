"""Errors of baseline kernels, and the sizes of tiles."""

from __future__ import annotations

from neuroncore.errors import KernelError, Place


class BaselineError(KernelError):
    """A function, or sizes of its arguments, without a baseline kernel."""


def tile_of(size: int, sizes: tuple[int, ...], what: str, place: Place | None) -> int:
    """The tile of an axis: all of it, or the first of `sizes` that divides it.

    Raises BaselineError where none does.

    >>> tile_of(2048, (512, 128), "columns", None), tile_of(640, (512, 128), "columns", None)
    (512, 128)
    """
    if size <= max(sizes):
        return size
    found = next((s for s in sizes if size % s == 0), None)
    if found is None:
        raise BaselineError(
            f"{size} {what} are not a number of tiles",
            expected=f"at most {max(sizes)}, or a multiple of {min(sizes)}",
            hint="pad the arrays", place=place,
        )  # fmt: skip
    return found
