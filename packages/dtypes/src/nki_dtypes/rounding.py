"""Rounding a float32 or an integer into a narrower format by arithmetic on whole arrays."""

from __future__ import annotations

import numpy as np

from nki_dtypes.formats import DType
from nki_dtypes.tables import SMALL, Caster


def assign(source: np.ndarray, out: np.ndarray) -> None:
    """NumPy's own cast, or a plain copy."""
    out[...] = source


def to_bool(source: np.ndarray, out: np.ndarray) -> None:
    """1 unless equal to zero."""
    np.not_equal(source, 0, out=out.view(np.bool_))


@np.errstate(over="ignore")  # infinity is the documented result, not an accident
def to_float16(source: np.ndarray, out: np.ndarray) -> None:
    """float32 → float16, which NumPy rounds to nearest even."""
    out[...] = source


_HALF_TO_SINGLE = np.int32(13)  # mantissa bits that float32 has more
_SIGN_AND_HALF = np.int32(-0x7000_2000)  # 0x8fffe000: the sign, and what float16 has of the rest
_BIAS = np.float32(2.0**112)  # 127 - 15
_NO_FLOAT16 = 65536.0


def wide_float16(source: np.ndarray) -> np.ndarray | None:
    """float16 as float32 in a new array, exactly; None where there are infinities or NaN.

    The bits, sign extended, moved to where float32 has them, and the exponent's bias by a product,
    which also gives subnormals. 28 µs for a (128, 512) tile, where a table of 256 KiB takes 51 and
    drives operands out of the nearest caches.
    """
    bits = source.view(np.int16).astype(np.int32, order="C")
    bits <<= _HALF_TO_SINGLE
    bits &= _SIGN_AND_HALF
    values = bits.view(np.float32)
    values *= _BIAS
    return values if values.max() < _NO_FLOAT16 and values.min() > -_NO_FLOAT16 else None


_TF32_DROPPED = np.uint32(0x1FFF)  # the 13 mantissa bits that tfloat32 does not have
_TF32_BELOW_TIE = np.uint32(0x0FFF)
_QUIET = np.uint32(0x0040_0000)


def to_tfloat32(source: np.ndarray, out: np.ndarray) -> None:
    """float32 → float32 with a 10-bit mantissa, to nearest even; a carry may give infinity."""
    bits = source.view(np.uint32)
    rounded = np.right_shift(bits, np.uint32(13))
    rounded &= np.uint32(1)
    rounded += bits
    rounded += _TF32_BELOW_TIE
    is_nan = np.isnan(source)
    if np.count_nonzero(is_nan):
        np.copyto(rounded, bits | _QUIET, where=is_nan)
    np.bitwise_and(rounded, ~_TF32_DROPPED, out=out.view(np.uint32))


def round_to_integer(dst: DType, nan_as_int: int) -> Caster:
    """float32 → integer `dst`: half to even, then saturating; NaN gives `nan_as_int`."""
    low, high = np.float32(dst.min), np.float32(dst.max)
    is_exact = float(high) == dst.max  # 2³¹ - 1 and 2³² - 1 are not float32 numbers
    if not is_exact:
        high = np.nextafter(high, np.float32(0))

    def convert(source: np.ndarray, out: np.ndarray) -> None:
        rounded = np.rint(source)
        is_nan = np.isnan(rounded)
        too_large = None if is_exact else np.greater(rounded, high)
        _clamp(rounded, low, high)
        if np.count_nonzero(is_nan):
            rounded[is_nan] = 0
        out[...] = rounded
        if nan_as_int and np.count_nonzero(is_nan):
            np.copyto(out, nan_as_int, where=is_nan)
        if too_large is not None and np.count_nonzero(too_large):
            np.copyto(out, dst.max, where=too_large)

    return convert


def _clamp(array: np.ndarray, low: np.float32, high: np.float32) -> None:
    """In place. np.clip is faster on a tile and slower on one element, where it is Python."""
    if array.size < SMALL:
        np.minimum(array, high, out=array)
        np.maximum(array, low, out=array)
    else:
        np.clip(array, low, high, out=array)


def saturate_integers(src: DType, dst: DType) -> Caster:
    """Integer `src` → integer `dst`: what does not fit becomes the nearest that does."""
    low, high = max(src.min, dst.min), min(src.max, dst.max)
    if (low, high) == (src.min, src.max):
        return assign

    def convert(source: np.ndarray, out: np.ndarray) -> None:
        out[...] = np.clip(source, low, high)

    return convert


_EXACT_INTEGERS = 2.0**24  # float32 holds every integer up to here


def rounded_to_odd(source: np.ndarray) -> np.ndarray:
    """32-bit integers as float32 that a second rounding, to 11 bits or fewer, cannot see.

    Truncated towards zero with the last bit set if anything was lost; so the narrower result is
    that of rounding the integer once.
    """
    nearest = source.astype(np.float32)
    if not nearest.size or max(nearest.max(), -nearest.min()) <= _EXACT_INTEGERS:
        return nearest
    exact = source.astype(np.float64)
    bits = nearest.view(np.uint32)
    is_inexact = nearest != exact
    bits -= np.abs(nearest, dtype=np.float64) > np.abs(exact)
    bits |= is_inexact
    return nearest
