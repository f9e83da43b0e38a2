"""One allocated tensor: flat elements in one memory."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from neuroncore._caret import Place
from neuroncore.engines import Space
from neuroncore.memory.shadow import Shadow
from nki_dtypes import DType

INTEGER_POISON = 4
"""What the vendor's simulator fills new integer memory with; floats get NaN."""


class Storage:
    """The elements behind one or more views, row-major in `shape`.

    `fresh` memory has been reserved but neither written nor poisoned yet: the first instruction
    that writes all of it saves the poisoning, anything else poisons it first. `notes` is where
    watchers keep what they know about this tensor, each under itself; `place` is the line that
    made it. Both are set only while someone watches. A `constant` is part of the kernel: its
    elements were known before it ran, and nothing writes them.
    """

    __slots__ = (
        "address",
        "constant",
        "dtype",
        "flat",
        "fresh",
        "name",
        "notes",
        "place",
        "shape",
        "space",
        "written",
    )

    def __init__(
        self,
        flat: np.ndarray,
        shape: tuple[int, ...],
        dtype: DType,
        space: Space,
        name: str = "",
        address: tuple[int, int] | None = None,
        fresh: bool = False,
    ) -> None:
        self.flat = flat
        self.shape = shape
        self.dtype = dtype
        self.space = space
        self.name = name
        self.address = address
        self.fresh = fresh
        self.constant = False
        self.notes: dict[Any, Any] | None = None
        self.place: Place | None = None
        self.written: Shadow | bool = False

    @property
    def free_elems(self) -> int:
        """Elements per partition; the partition stride of an on-chip tensor."""
        return prod(self.shape[1:])

    def poison(self, zero: bool = False) -> None:
        """Fill untouched memory: NaN or the integer poison, or zero where that is asked for."""
        self.fresh = False
        self.flat[...] = self.undefined(zero)

    def undefined(self, zero: bool = False) -> float:
        """What an element holds that nothing has written."""
        floating = self.dtype.is_float and self.dtype.lanes == 1
        return 0 if zero else np.nan if floating else INTEGER_POISON

    def written_flags(self) -> Shadow:
        """Flags beside the elements: has a matmul written them? (PSUM accumulation groups).

        `written` itself is False or True while all elements agree.
        """
        if isinstance(self.written, bool):
            self.written = Shadow.beside(self, self.written)
        return self.written
