"""Limits of a number format, for floats and integers alike."""

from __future__ import annotations

from dataclasses import dataclass

from nki_dtypes.formats import DType, Kind, Specials
from nki_dtypes.names import resolve


@dataclass(frozen=True, slots=True)
class NumberInfo:
    """Limits of a format. Integers have exact `int` limits, an `eps` of 1 and no tiny.

    `tiny` is the smallest positive normal number, `smallest_subnormal` the smallest positive one,
    `eps` the distance from 1 to the next number. `mantissa_bits` do not count the hidden one.
    """

    dtype: DType
    bits: int
    max: float
    min: float
    tiny: float
    smallest_subnormal: float
    eps: float
    exponent_bits: int
    mantissa_bits: int
    has_infinity: bool
    has_nan: bool

    @property
    def smallest_normal(self) -> float:
        """NumPy's other name for `tiny`."""
        return self.tiny


def finfo(x: object) -> NumberInfo:
    """The limits of format `x`; of its lane type if `x` is packed.

    Takes what `resolve` takes, and unlike NumPy's also integers and bool_.

    >>> finfo("float8_e4m3").max, finfo("float8_e4m3fn").max, finfo("int8").min
    (240.0, 448.0, -128)
    """
    dtype = resolve(x).element
    tiny, subnormal = _smallest(dtype)
    return NumberInfo(
        dtype=dtype,
        bits=dtype.bits,
        max=dtype.max,
        min=dtype.min,
        tiny=tiny,
        smallest_subnormal=subnormal,
        eps=2.0**-dtype.mantissa_bits if dtype.exponent_bits else 1,
        exponent_bits=dtype.exponent_bits,
        mantissa_bits=dtype.mantissa_bits,
        has_infinity=dtype.is_float and dtype.specials is Specials.IEEE,
        has_nan=dtype.specials is not Specials.NONE,
    )


def _smallest(dtype: DType) -> tuple[float, float]:
    """The smallest positive normal and subnormal numbers; a scale has no subnormals."""
    if dtype.kind is Kind.SCALE:
        return dtype.min, dtype.min
    if not dtype.is_float:
        return 1, 1
    tiny = 2.0 ** (1 - dtype.exponent_bias)
    return tiny, tiny * 2.0**-dtype.mantissa_bits
