"""Specs: operands without values (shape, strides, dtype, memory), also as text.

The text of a spec is `float32[4, 8] sbuf`:

    dtype[sizes] memory [@partition] [+bytes] [strides(…)] [immutable]

`@32` is the first partition of an on-chip operand, `+1024` the byte of its PSUM bank at which it
begins; `strides` count elements and are left out where they are row-major. Indirect views have no
text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.errors import DTypeError, KernelError
from nki_dtypes import DType, resolve


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
        "initialized",
        "mutable",
        "repeats",
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
    space: MemorySpace
    storage: np.dtype
    start: int
    bank_offset: int
    mutable: bool
    fresh: bool
    indirect: Indirection | None
    repeats: bool
    """Whether two indices name the same element (a broadcast view)."""
    initialized: Spec
    """The same view once its memory is written or poisoned: itself unless `fresh`."""
    sliceable: bool
    """Whether slices of it can be remembered: initialized and static."""
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


_FIELDS = tuple(
    n for n in Spec.__slots__ if n not in ("repeats", "initialized", "slices", "sliceable")
)
_LIMIT = 1 << 16  # specs remembered; past it the table starts anew, which only costs time
_interned: dict[tuple, Spec] = {}


def make_spec(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: DType,
    space: MemorySpace,
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
        spec.indirect, spec.bank_offset = indirect, bank_offset
        spec.slices = {}
        spec.sliceable = not fresh and indirect is None
        spec.repeats = any(n > 1 and s == 0 for n, s in zip(shape, strides, strict=True))
        spec.initialized = spec.but(fresh=False) if fresh else spec
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


def as_dtype(
    given: Any, operand: str = "dtype", position: int | None = None, takes_64_bits: bool = False
) -> DType:
    """nki_dtypes.resolve with the error placed in the user's code, at argument `operand`."""
    try:
        return resolve(given, takes_64_bits)
    except (ValueError, TypeError) as unknown:
        raise DTypeError(
            getattr(unknown, "what", str(unknown)),
            expected=getattr(unknown, "expected", None),
            got=getattr(unknown, "got", None),
            hint=getattr(unknown, "hint", None) or None,
            operand=operand,
            position=position,
            rule="NKI: supported data types",
        ) from None


# -- as text --------------------------------------------------------------------------------------

_TEXT = re.compile(
    r"(?P<dtype>\w+)\s*\[(?P<shape>[\d,\s]*)\]\s+(?P<space>\w+)"
    r"(?:\s+@(?P<start>\d+))?(?:\s+\+(?P<bank>\d+))?"
    r"(?:\s+strides\((?P<strides>[-\d,\s]*)\))?(?P<fixed>\s+immutable)?"
)


class SpecTextError(KernelError):
    """Text that is not a spec."""


def parse_spec(text: str) -> Spec:
    """The spec that `text` writes; the same object for the same spec.

    Raises SpecTextError for other text and nki_dtypes.UnknownDTypeError for an unknown dtype.

    >>> parse_spec("bfloat16[64, 2, 8] psum @64")
    (64, 2, 8), bfloat16, PSUM
    """
    match = _TEXT.fullmatch(text.strip())
    if match is None or match["space"] not in MemorySpace.__members__:
        raise _misread(text)
    shape = _numbers(match["shape"])
    strides = row_major(shape) if match["strides"] is None else _numbers(match["strides"])
    if not shape or min(shape) < 1 or len(strides) != len(shape):
        raise _misread(text)
    return make_spec(
        shape,
        strides,
        resolve(match["dtype"], takes_64_bits=True),
        MemorySpace[match["space"]],
        start=int(match["start"] or 0),
        mutable=not match["fixed"],
        bank_offset=int(match["bank"] or 0),
    )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split(",") if n.strip())


def _misread(text: str) -> SpecTextError:
    return SpecTextError(
        f"cannot read {text!r} as a tensor",
        expected='text such as "float32[4, 8] sbuf @32 strides(16, 2)", in '
        + ", ".join(MemorySpace.__members__),
    )
