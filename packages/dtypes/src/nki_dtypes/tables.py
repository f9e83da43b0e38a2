"""Casts by table: every 8- and 16-bit code has its result computed once and looked up after.

NumPy and ml_dtypes convert float16 and the 8-bit floats one element at a time (1–6 ns each);
a look-up costs 0.6 ns. `benchmarks/dtypes.py` measures both.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nki_dtypes.formats import DType

Caster = Callable[[np.ndarray, np.ndarray], None]

SMALL = 512
"""Elements below which a call to NumPy's own cast costs less than the look-up's set-up."""

_CHUNK = 1 << 15  # elements; temporaries (8-byte indices) of one chunk stay in a 2 MiB L2 cache

_WORDS = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32)}


def by_table(src: DType, dst: DType, direct: Caster) -> Caster:
    """`direct`, except that large arrays are looked up in a table which `direct` has filled."""
    codes, values = _WORDS[src.itemsize], _WORDS[dst.itemsize]
    table: list[np.ndarray] = []

    def look_up(source: np.ndarray, out: np.ndarray) -> None:
        if not table:
            table.append(_results(src, dst, direct))
        np.take(table[0], source.view(codes), out=out.view(values), mode="wrap")

    return _large(look_up, small=direct)


def from_float32_by_table(dst: DType, direct: Caster) -> Caster:
    """float32 → an 8-bit `dst` with one rounding, through a table of 2¹⁶ entries.

    The upper half of a float32 has 8 bits of precision. With its last bit set whenever any lower
    bit was (rounding to odd), rounding it again to at most 6 bits gives the same as rounding the
    float32 once: ties stay ties and everything else stays on its side of them. The 8-bit floats
    have at most 4 bits, so the table is exact for every float32, NaN payloads included.
    """
    values = _WORDS[dst.itemsize]
    table: list[np.ndarray] = []

    def look_up(source: np.ndarray, out: np.ndarray) -> None:
        if not table:
            table.append(_results_of_upper_halves(dst, direct))
        bits = source.view(np.uint32)
        codes = np.right_shift(bits, np.uint32(16)).astype(np.uint16)
        lower = bits.astype(np.uint16)
        np.bitwise_or(codes, np.not_equal(lower, 0), out=codes)
        np.take(table[0], codes, out=out.view(values), mode="wrap")

    return _large(look_up, small=direct)


def _results(src: DType, dst: DType, direct: Caster) -> np.ndarray:
    word = _WORDS[src.itemsize]
    codes = np.arange(1 << 8 * src.itemsize, dtype=np.uint32).astype(word).view(src.storage)
    return _apply(direct, codes, dst)


def _results_of_upper_halves(dst: DType, direct: Caster) -> np.ndarray:
    return _apply(direct, (np.arange(1 << 16, dtype=np.uint32) << 16).view(np.float32), dst)


def _apply(direct: Caster, source: np.ndarray, dst: DType) -> np.ndarray:
    out = np.empty(source.shape, dst.storage)
    with np.errstate(all="ignore"):  # the codes include signalling NaNs
        direct(source, out)
    return out.view(_WORDS[dst.itemsize])


def _large(convert: Caster, *, small: Caster) -> Caster:
    """`small` below SMALL elements; else `convert`, in pieces that fit in the cache."""

    def choose(source: np.ndarray, out: np.ndarray) -> None:
        if out.size < SMALL:
            small(source, out)
            return
        if source.shape != out.shape:
            source = np.broadcast_to(source, out.shape)
        in_chunks(convert, source, out)

    return choose


def in_chunks(convert: Caster, source: np.ndarray, out: np.ndarray) -> None:
    """Apply `convert` to pieces of two arrays of one shape, split along their leading axes."""
    if out.size <= _CHUNK:
        convert(source, out)
        return
    rows = _CHUNK * len(out) // out.size
    if not rows:
        for one_source, one_out in zip(source, out, strict=True):
            in_chunks(convert, one_source, one_out)
        return
    for start in range(0, len(out), rows):
        convert(source[start : start + rows], out[start : start + rows])
