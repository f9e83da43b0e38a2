"""What an operand is, without its values: shape, strides, dtype, memory."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from neuroncore.engines import Space
from nki_dtypes import DType


@dataclass(frozen=True, slots=True)
class Indirection:
    """A dynamic part of an address: `index * stride` is added along `dim`.

    `kind` is "scalar" (one value for the whole access) or "vector" (one value per row of `dim`).
    `stride` counts elements of the base tensor. `index` is the tile that holds the values.
    `limit` is the size of `dim`.
    """

    kind: str
    dim: int
    stride: int
    index: Spec | None = None
    limit: int = 0


class Spec:
    """A view's signature. Interned: equal specs are the same object, so they compare by identity.

    Strides count elements. `start` is the first partition of an on-chip view, `bank_offset` the
    byte in its PSUM bank at which a PSUM view begins (0 elsewhere). `fresh` says that the
    memory behind it has never been written and is not yet filled with poison.
    """

    __slots__ = (
        "bank_offset",
        "dtype",
        "fresh",
        "indirect",
        "mutable",
        "repeats",
        "settled",
        "shape",
        "sliceable",
        "slices",
        "space",
        "start",
        "storage",
        "strides",
    )

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType
    space: Space
    storage: np.dtype
    start: int
    bank_offset: int
    mutable: bool
    fresh: bool
    indirect: Indirection | None
    repeats: bool
    """Whether two indices name the same element (a broadcast view)."""
    settled: Spec
    """The same view once its memory is written or poisoned: itself unless `fresh`."""
    sliceable: bool
    """Whether slices of it can be remembered: settled and static."""
    slices: dict[tuple, Spec]
    """Step-1 slices of this view, by shape and first partition (in PSUM by all starts, because
    banks matter): the memo that makes slicing cheap."""

    @property
    def partitions(self) -> int:
        """P: the size of dimension 0."""
        return self.shape[0] if self.shape else 1

    @property
    def free(self) -> int:
        """F: elements per partition."""
        return prod(self.shape[1:])

    @property
    def size(self) -> int:
        """All elements."""
        return prod(self.shape)

    @property
    def free_bytes(self) -> int:
        """Bytes per partition."""
        return self.free * self.dtype.itemsize

    @property
    def free_span_bytes(self) -> int:
        """Bytes per partition from the first element to behind the last one."""
        reach = sum((n - 1) * abs(s) for n, s in zip(self.shape[1:], self.strides[1:], strict=True))
        return (reach + 1) * self.dtype.itemsize

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def free_is_contiguous(self) -> bool:
        """Whether the free elements of a partition lie one after the other."""
        expected = 1
        for size, stride in zip(reversed(self.shape[1:]), reversed(self.strides[1:]), strict=True):
            if size != 1 and stride != expected:
                return False
            expected *= size
        return True

    def but(self, **changes: object) -> Spec:
        """The same spec with some fields changed."""
        fields = {name: getattr(self, name) for name in _FIELDS} | changes
        return make_spec(**fields)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"{self.shape}, {self.dtype}, {self.space.name.upper()}"


_FIELDS = tuple(n for n in Spec.__slots__ if n not in ("repeats", "settled", "slices", "sliceable"))
_LIMIT = 1 << 16  # specs remembered; past it the table starts anew, which only costs time
_interned: dict[tuple, Spec] = {}


def make_spec(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: DType,
    space: Space,
    storage: np.dtype | None = None,
    start: int = 0,
    mutable: bool = True,
    fresh: bool = False,
    indirect: Indirection | None = None,
    bank_offset: int = 0,
) -> Spec:
    """The spec with these fields, always the same object for the same fields."""
    storage = dtype.storage if storage is None else storage
    key = (shape, strides, dtype, space, storage, start, mutable, fresh, indirect, bank_offset)
    spec = _interned.get(key)
    if spec is None:
        if len(_interned) >= _LIMIT:
            _interned.clear()
        spec = Spec()
        spec.shape, spec.strides, spec.dtype, spec.space = shape, strides, dtype, space
        spec.storage, spec.start, spec.mutable, spec.fresh = storage, start, mutable, fresh
        spec.indirect, spec.bank_offset, spec.slices = indirect, bank_offset, {}
        spec.sliceable = not fresh and indirect is None
        spec.repeats = any(n > 1 and s == 0 for n, s in zip(shape, strides, strict=True))
        spec.settled = spec.but(fresh=False) if fresh else spec
        _interned[key] = spec
    return spec


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of a dense tensor whose last dimension varies fastest."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))
