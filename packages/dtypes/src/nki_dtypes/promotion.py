"""The type of an NKI 0.1 result whose operands differ. Source: NKI type promotion (0.1 – 0.3).

From 0.4 on the documents state no rule: destinations have a type and results are cast to it.
"""

from __future__ import annotations

import numpy as np

from nki_dtypes import formats
from nki_dtypes.errors import DTypeError
from nki_dtypes.formats import DType, Kind
from nki_dtypes.names import resolve

# A bare Python number counts as the widest type of its kind: np.float16(x) + 1.2 is float32.
_WEAK: dict[type, DType] = {bool: formats.uint8, int: formats.int32, float: formats.float32}


def promote(a: object, b: object) -> DType:
    """The format of an operation on `a` and `b`, each a format or a bare Python number.

    Equal types stay. A float beats an integer. The wider float wins; two different floats of one
    width give the next that holds both (fp16 with bf16: float32; 8-bit ones: bfloat16). Integers
    give the narrowest signed or unsigned type that holds both, float32 if none does. bool_ counts
    as uint8 beside another type.

    Raises `DTypeError` for packed types and scales, which NKI does not compute with.

    >>> promote("fp16", "bf16"), promote("int8", "uint8"), promote("fp16", 1.2)
    (nki_dtypes.float32, nki_dtypes.int16, nki_dtypes.float32)
    """
    first, second = _operand(a), _operand(b)
    if first is second:
        return first
    first, second = _as_number(first), _as_number(second)
    if first.is_float and second.is_float:
        return _wider_float(first, second)
    if first.is_float or second.is_float:
        return first if first.is_float else second
    return _wider_integer(first, second)


def _operand(x: object) -> DType:
    dtype = _WEAK[type(x)] if type(x) in _WEAK else _resolved(x)
    if dtype.kind in (Kind.PACKED, Kind.SCALE):
        raise DTypeError(
            f"{dtype} takes no part in arithmetic, so the result has no type",
            expected="a float, integer or bool_ type, or a Python number",
            got=dtype.name,
            hint="only nc_matmul_mx reads packed values and their scales",
        )
    return dtype


def _resolved(x: object) -> DType:
    return resolve(x.dtype if isinstance(x, np.generic) else x)


def _as_number(dtype: DType) -> DType:
    return formats.uint8 if dtype is formats.bool_ else dtype


def _wider_float(a: DType, b: DType) -> DType:
    if a is b:
        return a
    if a.bits != b.bits:
        return max(a, b, key=lambda d: d.bits)
    return formats.bfloat16 if a.bits == 8 else formats.float32


_NARROWEST_FIRST = (
    formats.uint8, formats.int8, formats.uint16, formats.int16, formats.uint32, formats.int32,
)  # fmt: skip


def _wider_integer(a: DType, b: DType) -> DType:
    low, high = min(a.min, b.min), max(a.max, b.max)
    holders = (d for d in _NARROWEST_FIRST if d.min <= low and high <= d.max)
    return next(holders, formats.float32)
