"""Rounding by exact integer arithmetic: the reference that the casts are compared with.

Nothing here comes from the package, and no floating-point operation rounds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Layout:
    """A float format: e exponent bits, m mantissa bits; `top`: what its last codes mean."""

    e: int
    m: int
    top: str = "ieee"  # "ieee": inf and NaN; "fn": one NaN per sign; "finite"

    @property
    def lowest_exponent(self) -> int:
        """log2 of the smallest subnormal."""
        return 2 - (1 << self.e - 1) - self.m

    @property
    def nan(self) -> int:
        """The code of the positive quiet NaN that ml_dtypes and IEEE hardware produce."""
        inf = ((1 << self.e) - 1) << self.m
        return inf | 1 << self.m - 1 if self.top == "ieee" else (1 << self.e + self.m) - 1

    @property
    def last(self) -> int:
        """The code that results on overflow: infinity, NaN, or the largest number."""
        return {"ieee": ((1 << self.e) - 1) << self.m}.get(self.top, (1 << self.e + self.m) - 1)


LAYOUTS = {
    "float16": Layout(5, 10),
    "bfloat16": Layout(8, 7),
    "tfloat32": Layout(8, 10),
    "float32": Layout(8, 23),
    "float8_e4m3": Layout(4, 3),
    "float8_e4m3fn": Layout(4, 3, "fn"),
    "float8_e5m2": Layout(5, 2),
    "float4_e2m1fn": Layout(2, 1, "finite"),
}


def float32_parts(bits: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """sign, significand and exponent with value = significand · 2^exponent, and where NaN.

    Infinity comes out as 2^128, which overflows every format as infinity must.
    """
    sign = (bits >> 31).astype(np.int64)
    code = (bits >> 23 & 0xFF).astype(np.int64)
    fraction = (bits & 0x7FFFFF).astype(np.int64)
    significand = np.where(code > 0, fraction | 1 << 23, fraction)
    nan = (code == 255) & (fraction != 0)
    return sign, significand, np.maximum(code, 1) - 150, nan


def halves_to_even(significand: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """significand / 2^shift to the nearest integer, ties to even; significand < 2^33."""
    left = np.where(shift < 0, significand << np.clip(-shift, 0, 29), 0)
    right = np.clip(shift, 0, 40)
    quotient = significand >> right
    rest = significand - (quotient << right)
    half = np.where(right > 0, 1 << np.maximum(right, 1) - 1, 1)
    up = (rest > half) | ((rest == half) & (quotient & 1 == 1))
    return np.where(shift < 0, left, quotient + up)


def codes(
    sign: np.ndarray, significand: np.ndarray, exponent: np.ndarray, nan: np.ndarray, to: Layout
) -> np.ndarray:
    """The codes in format `to` of (-1)^sign · significand · 2^exponent, rounded once."""
    magnitude = np.frexp(significand.astype(np.float64))[1] - 1 + exponent  # exact below 2^53
    quantum = np.maximum(magnitude - to.m, to.lowest_exponent)
    rounded = halves_to_even(significand, quantum - exponent)
    code = np.where(significand == 0, 0, rounded + ((quantum - to.lowest_exponent) << to.m))
    code = np.where(nan, to.nan, np.minimum(code, to.last))
    return code | sign << to.e + to.m


def decode(codes: np.ndarray, layout: Layout) -> np.ndarray:
    """The float64 values of codes, exactly."""
    codes = codes.astype(np.int64)
    sign = 1 - 2.0 * (codes >> layout.e + layout.m)
    magnitude = codes & (1 << layout.e + layout.m) - 1
    field, fraction = magnitude >> layout.m, magnitude & (1 << layout.m) - 1
    significand = np.where(field > 0, fraction + (1 << layout.m), fraction)
    value = np.ldexp(
        significand.astype(np.float64), np.maximum(field, 1) - 1 + layout.lowest_exponent
    )
    if layout.top == "ieee":
        value = np.where(magnitude == layout.last, np.inf, value)
        value = np.where(magnitude > layout.last, np.nan, value)
    if layout.top == "fn":
        value = np.where(magnitude == layout.nan, np.nan, value)
    return np.copysign(value, sign)


def integers(bits: np.ndarray, low: int, high: int) -> np.ndarray:
    """float32 bits → integers, ties to even, saturating, NaN to 0."""
    sign, significand, exponent, nan = float32_parts(bits)
    magnitude = np.where(
        exponent > 8, 1 << 40, halves_to_even(significand, -np.minimum(exponent, 8))
    )
    return np.where(nan, 0, np.clip(np.where(sign == 1, -magnitude, magnitude), low, high))


def stratified_float32(seed: int) -> np.ndarray:
    """2.1 million float32 bit patterns: 4096 of every sign and exponent, most of them at ties.

    Of each 4096, half are random. The others have random upper bits and, below the last bit that
    some format keeps, exactly zero, a tie, one off a tie on both sides, or all ones.
    """
    random = np.random.default_rng(seed)
    fraction = random.integers(0, 1 << 23, (512, 4096))
    widths = np.array([13, 16, 20, 21, 22, 23])[random.integers(0, 6, (512, 2048))]
    tie = 1 << widths - 1
    tails = np.stack([np.zeros_like(tie), tie, tie - 1, tie + 1, 2 * tie - 1])
    chosen = np.take_along_axis(tails, random.integers(0, 5, (1, 512, 2048)), axis=0)[0]
    fraction[:, 2048:] = fraction[:, 2048:] >> widths << widths | chosen
    fraction[:, :4] = [0, 1, 0x400000, 0x7FFFFF]  # inf; NaNs with the extreme payloads
    return (np.arange(512)[:, None] << 23 | fraction).astype(np.uint32).ravel()
