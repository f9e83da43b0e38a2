"""The packed types: four narrow floats in one word, the way MX matmuls read them.

Lane j of a word is the element at index 4·i + j of the packed axis and sits at bits 8·j … 8·j+7
(4-bit lanes: 4·j … 4·j+3), least significant first. Source: NKI data types (x4), OCP MX formats.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nki_dtypes.casts import _numeric, cast
from nki_dtypes.errors import DTypeError
from nki_dtypes.formats import ALL, DType
from nki_dtypes.names import resolve


def pack_x4(array: npt.ArrayLike, x: object) -> np.ndarray:
    """Four consecutive values of the last axis into one word of packed type `x`.

    (…, 4·n) of any number type → (…, n) of `x`'s storage. Values not already of the lane type are
    cast to it, rounding once.

    Raises `DTypeError` if `x` is not packed or the last axis is not a multiple of four.

    >>> pack_x4(np.float32([[1, 2, 3, 4]]), "float4_e2m1fn_x4").tolist()
    [[25922]]
    """
    dtype = _packed(x)
    values = np.asarray(array)
    if values.ndim == 0 or values.shape[-1] % 4:
        raise DTypeError(
            f"{dtype} packs four values of the last axis into one",
            expected="a last axis that is a multiple of 4",
            got=f"shape {values.shape}",
            hint="pad the last axis with zeros",
        )
    lanes = cast(values, dtype.element).view(np.uint8).astype(dtype.storage)
    lanes = lanes.reshape(*values.shape[:-1], -1, 4) & _mask(dtype)
    lanes <<= _shifts(dtype)
    return np.bitwise_or.reduce(lanes, axis=-1)


def unpack_x4(array: npt.ArrayLike, x: object) -> np.ndarray:
    """The lanes of packed words, in order: (…, n) of `x`'s storage → (…, 4·n) of its lane type.

    Raises `DTypeError` if `x` is not packed or `array` is not of its storage dtype.

    >>> unpack_x4(np.uint16([25922]), "float4_e2m1fn_x4").astype(np.float32).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    dtype = _packed(x)
    words = np.asarray(array)
    if words.dtype != dtype.storage or words.ndim == 0:
        raise DTypeError(
            f"these are not words of {dtype}",
            expected=f"an array of {dtype.storage} with at least one axis",
            got=f"{words.dtype} of shape {words.shape}",
        )
    lanes = words[..., None] >> _shifts(dtype) & _mask(dtype)
    codes = lanes.astype(np.uint8).reshape(*words.shape[:-1], 4 * words.shape[-1])
    return codes.view(dtype.element.storage)


def _packed(x: object) -> DType:
    dtype = resolve(x)
    if not dtype.is_packed:
        raise DTypeError(
            f"{dtype} is not a packed type",
            expected=" or ".join(d.name for d in ALL if d.is_packed),
            got=dtype.name,
        )
    _numeric(dtype.element)
    return dtype


def _shifts(dtype: DType) -> np.ndarray:
    return np.arange(4, dtype=dtype.storage) * dtype.storage.type(dtype.element.bits)


def _mask(dtype: DType) -> np.integer:
    return dtype.storage.type((1 << dtype.element.bits) - 1)
