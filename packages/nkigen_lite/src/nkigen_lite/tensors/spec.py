"""Arrays without values: shape and number format; number formats of NumPy's dtypes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from neuroncore.commands.arrays import SpecSizeError, split_spec
from nki_dtypes import DType, resolve
from nki_dtypes.formats import bool_, float32, int32, tfloat32, uint32
from nkigen_lite.tensors.errors import SpecError

Shape = tuple[int, ...]

_WIDE: dict[str, DType] = {"float64": float32, "int64": int32, "uint64": uint32}


def narrow(dtype: Any) -> DType:
    """The format that holds what NumPy computes as `dtype`: 64-bit types become their 32-bit ones.

    float64 → float32, int64 → int32, uint64 → uint32, bool → bool_; every other type is itself.
    Values are converted as `astype` does: floats rounded once, integers modulo 2³².

    >>> narrow(np.float64), narrow("bf16")
    (nki_dtypes.float32, nki_dtypes.bfloat16)
    """
    if isinstance(dtype, type) and issubclass(dtype, (np.generic, bool, int, float)):
        dtype = np.dtype(dtype)
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None)
    return _WIDE[name] if name in _WIDE else resolve(dtype)


@dataclass(frozen=True, slots=True)
class Spec:
    """An array's shape and number format.

    >>> Spec((128, 512), resolve("bf16"))
    bfloat16[128, 512]
    """

    shape: tuple[int, ...]
    dtype: DType

    @property
    def size(self) -> int:
        """All elements."""
        return prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def num_bytes(self) -> int:
        """All bytes, as the machine stores them."""
        return self.size * self.dtype.itemsize

    @property
    def storage(self) -> np.dtype:
        """The NumPy dtype of arrays of this spec: bool for bool_, else the format's storage."""
        return np.dtype(np.bool_) if self.dtype is bool_ else self.dtype.storage

    def __repr__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape)) or '()'}]"

    __str__ = __repr__


def as_spec(given: Any) -> Spec:
    """The spec that `given` means: a Spec, "f32[128, 512]", an array, a NumPy or Python number.

    Raises SpecError.
    """
    if isinstance(given, Spec):
        return given
    if isinstance(given, str):
        return _parsed(given)
    shape, dtype = getattr(given, "shape", None), getattr(given, "dtype", None)
    if isinstance(given, (bool, int, float)):
        shape, dtype = (), type(given)
    if shape is None or dtype is None:
        raise SpecError(
            f"{given!r} is neither an array nor a spec",
            expected="an array, a Spec, or text such as 'f32[128, 512]'",
        )
    try:
        return Spec(tuple(int(n) for n in shape), narrow(dtype))
    except (ValueError, TypeError) as unknown:
        raise SpecError(str(unknown)) from None


def _parsed(text: str) -> Spec:
    try:
        found = split_spec(text)
    except SpecSizeError as wrong:
        raise SpecError(wrong.what, hint=wrong.hint) from None
    if found is None:
        raise SpecError(
            f"{text!r} is not a spec", expected="text such as 'f32[128, 512]' or 'i32[]'"
        )
    dtype, shape = found
    try:
        return Spec(shape, narrow(dtype))
    except (ValueError, TypeError) as unknown:
        raise SpecError(
            f"{text!r}: {getattr(unknown, 'what', unknown)}",
            expected=getattr(unknown, "expected", None),
            hint=getattr(unknown, "hint", None) or None,
        ) from None


def numpy_dtype(dtype: DType) -> np.dtype:
    """The NumPy dtype whose promotion rules a format follows: that of its values.

    bool_ is NumPy's bool; tfloat32 is stored in float32 and counts as it.
    """
    if dtype is bool_:
        return np.dtype(np.bool_)
    return np.dtype(np.float32) if dtype is tfloat32 else dtype.storage
