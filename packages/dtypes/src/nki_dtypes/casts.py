"""Values from one number format to another, rounded once.

The rules (source: NKI data types; where the documents are silent the choice is ours and said):

- float → float: nearest, ties to even. Overflow gives infinity where the format has one, else NaN
  (float8_e4m3fn, float8_e8m0fnu); subnormals are kept, in and out.
- NaN stays NaN and keeps its sign where the format has one. Its payload: bfloat16 and the 8-bit
  floats have one quiet NaN per sign; float16 keeps the upper payload bits; tfloat32 keeps them
  and becomes quiet. Same format in and out: the bits are copied unchanged.
- float → integer: nearest, ties to even, then saturating; NaN gives `nan_as_int` (ours: 0).
- integer → integer: saturating (ours, as for floats). integer → float: exact value rounded once.
- anything → bool_: 1 unless equal to zero, so NaN gives 1. bool_ → anything: any nonzero code is 1.
- float8_e8m0fnu holds only powers of two: ties go to the larger, positive numbers below 2⁻¹²⁷ to
  2⁻¹²⁷; zero, negative numbers and infinity become NaN (0xFF).
- packed types have no values of their own: `pack_x4` and `unpack_x4`. Lane j of a word is the
  element at index 4·i + j of the packed axis and sits at bits 8·j … 8·j+7 (4-bit lanes:
  4·j … 4·j+3), least significant first. Source: NKI data types (x4), OCP MX formats.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from nki_dtypes import formats
from nki_dtypes.errors import DTypeError
from nki_dtypes.formats import ALL, DType, Kind
from nki_dtypes.names import resolve
from nki_dtypes.rounding import (
    assign,
    round_to_integer,
    rounded_to_odd,
    saturate_integers,
    to_bool,
    to_float16,
    to_tfloat32,
    wide_float16,
)
from nki_dtypes.tables import SMALL, Caster, by_table, from_float32_by_table

if TYPE_CHECKING:
    import numpy.typing as npt

Widener = Callable[[np.ndarray], np.ndarray]

_FLOAT32 = np.dtype(np.float32)


def caster(src: object, dst: object, *, nan_as_int: int = 0) -> Caster:
    """The function that writes `src` values, converted to `dst`, into an array it is given.

    `caster(src, dst)(source, out)`: `source` has the storage dtype of `src` and broadcasts to
    `out`, which has that of `dst` and at least one axis; any strides; they must not overlap,
    except as the very same elements of one width. None of it is checked: every load and store
    comes this way. Compiled once per pair and remembered.

    A signalling float32 NaN raises NumPy's `invalid` flag on the way into a narrower float or an
    integer, as in any NumPy arithmetic; `np.errstate` around a run decides what happens then.
    """
    return _compiled(resolve(src), resolve(dst), nan_as_int)


def widener(src: object) -> Widener:
    """The function that gives the values of a `src` array as float32, the type all compute is in.

    float32 and tfloat32 arrays come back as they are, not copied. int32 and uint32 round to
    nearest even, every other type is exact.
    """
    return _widener(_numeric(resolve(src)))


def cast(
    array: object, x: object, *, from_: object | None = None, nan_as_int: int = 0
) -> np.ndarray:
    """A new array of the values of `array` in format `x`, rounded once (rules: module docstring).

    The array's own dtype says what it holds; `from_` overrides that where one NumPy dtype stores
    several formats (tfloat32, bool_). Python numbers and lists of them count as bool_, int32 or
    float32.

    Raises `UnknownDTypeError` for 64-bit arrays, `DTypeError` for packed types and for a `from_`
    that the array cannot hold.

    >>> cast(np.float32([1.00390625, 300.0, -0.0]), "bf16").tolist()
    [1.0, 300.0, -0.0]
    >>> cast(np.float32([2.5, 3.5, 300.0, np.nan]), "uint8").tolist()
    [2, 4, 255, 0]
    """
    values = _as_array(array)
    convert = _compiled(_format_of(values, from_), resolve(x), nan_as_int)
    source = np.atleast_1d(values)
    out = np.empty_like(source, dtype=resolve(x).storage, subok=False)
    with np.errstate(all="ignore"):
        convert(source, out)
    return out.reshape(values.shape) if values.ndim == 0 else out


def _as_array(array: object) -> np.ndarray:
    values = np.asarray(array)
    if hasattr(array, "dtype") or values.dtype.kind not in "if":
        return values
    narrow = np.dtype(np.int32 if values.dtype.kind == "i" else np.float32)
    if narrow.kind == "i" and values.size and np.any(values != values.astype(narrow)):
        raise DTypeError(
            "a Python integer does not fit into int32",
            expected=f"{formats.int32.min} … {formats.int32.max}",
            got=f"{values.min()} … {values.max()}",
            hint="give a NumPy array of uint32 or float32",
        )
    with np.errstate(all="ignore"):
        return values.astype(narrow)


def _format_of(values: np.ndarray, from_: object | None) -> DType:
    if from_ is None:
        if values.dtype == formats.float4_e2m1fn.storage != np.uint8:
            return formats.float4_e2m1fn
        return resolve(values.dtype)
    src = resolve(from_)
    if values.dtype != src.storage and not (src is formats.bool_ and values.dtype == np.bool_):
        raise DTypeError(
            f"this array cannot hold {src}",
            expected=f"an array of {src.storage}, which stores {src}",
            got=f"an array of {values.dtype}",
            hint=f"cast(array, {src.name!r}) converts; array.view(...) reinterprets bits",
        )
    return src


@functools.cache
def _compiled(src: DType, dst: DType, nan_as_int: int) -> Caster:
    if src is dst:
        return assign
    _numeric(src)
    _numeric(dst)
    if not dst.min <= nan_as_int <= dst.max and dst.is_integer:
        raise DTypeError(
            f"nan_as_int does not fit into {dst}", expected=f"{dst.min} … {dst.max}",
            got=str(nan_as_int),
        )  # fmt: skip
    direct = _direct(src, dst, nan_as_int)
    if src in _HALF_WIDTH_OR_LESS and (src in _SLOW or dst in _SLOW):
        return by_table(src, dst, direct)
    return direct


# NumPy or ml_dtypes convert these one element at a time; see benchmarks/dtypes.py.
_SLOW = frozenset(
    {
        formats.float16, formats.float8_e4m3, formats.float8_e4m3fn, formats.float8_e5m2,
        formats.float8_e8m0fnu, formats.float4_e2m1fn,
    }
)  # fmt: skip
_HALF_WIDTH_OR_LESS = frozenset(
    d for d in (*formats.ALL, formats.float4_e2m1fn) if d.bits <= 16 and not d.is_packed
)


def _numeric(dtype: DType) -> DType:
    """`dtype`, if its elements are numbers that this machine can convert."""
    if dtype.is_packed:
        raise DTypeError(
            f"{dtype} has no values to convert: it is four {dtype.element} in one word",
            expected="a type with one number per element",
            hint=f"unpack_x4(array, {dtype.name!r}) and pack_x4(values, {dtype.name!r})",
        )
    if dtype.storage == np.uint8 and dtype.kind in (Kind.FLOAT, Kind.SCALE):
        raise DTypeError(
            f"the installed ml_dtypes does not know {dtype}", hint='pip install "ml_dtypes>=0.5.1"'
        )
    return dtype


def _direct(src: DType, dst: DType, nan_as_int: int) -> Caster:
    """The conversion without a table of the source's codes: also what fills such tables."""
    if dst is formats.bool_:
        return to_bool
    if src.is_integer and dst.is_integer:
        return saturate_integers(src, dst)
    narrow = _narrow(dst, nan_as_int)
    if src in (formats.float32, formats.tfloat32):
        return narrow
    if dst is formats.float32 and src is not formats.bool_:
        return assign
    if src in (formats.int32, formats.uint32):
        return lambda source, out: narrow(rounded_to_odd(source), out)
    if src is formats.bool_:
        return lambda source, out: narrow(np.not_equal(source, 0).astype(_FLOAT32), out)
    return lambda source, out: narrow(source.astype(_FLOAT32), out)


def _narrow(dst: DType, nan_as_int: int) -> Caster:
    """float32 → `dst`."""
    if dst.is_integer:
        return round_to_integer(dst, nan_as_int)
    if dst is formats.float16:
        return to_float16
    if dst is formats.tfloat32:
        return to_tfloat32
    if dst.itemsize == 1:
        return from_float32_by_table(dst, assign)
    # float32 itself, and bfloat16: ml_dtypes takes 29 µs for a (128, 512) tile; the best of several
    # orders of 16-bit integer passes took 26, with three scratch tiles and a special way for NaN.
    return assign


@functools.cache
def _widener(src: DType) -> Widener:
    if src in (formats.float32, formats.tfloat32):
        return lambda source: source
    if src is formats.bool_:
        return lambda source: np.not_equal(source, 0).astype(_FLOAT32)
    if src not in _SLOW:
        return lambda source: source.astype(_FLOAT32)
    convert = _compiled(src, formats.float32, 0)

    def widen(source: np.ndarray) -> np.ndarray:
        out = np.empty(source.shape, _FLOAT32)
        convert(source, out)
        return out

    if src is not formats.float16:
        return widen

    def widen_float16(source: np.ndarray) -> np.ndarray:
        found = wide_float16(source) if source.size >= SMALL else None
        return widen(source) if found is None else found

    return widen_float16


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
