"""Casts against NumPy's own `astype`: microseconds per (128, 512) tile, nanoseconds per call.

    python benchmarks/dtypes.py

The best of many runs. Ratios below 1 mean that nki_dtypes is faster. Nothing here is asserted.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable, Iterator

import numpy as np

import nki_dtypes

SHAPE = (128, 512)  # one tile: partitions, free elements
FROM_FLOAT32 = (
    "bfloat16", "float16", "tfloat32", "float8_e4m3", "float8_e5m2", "float8_e8m0fnu",
    "int8", "uint8", "int32", "bool_",
)  # fmt: skip
TO_FLOAT32 = ("bfloat16", "float16", "float8_e4m3", "float8_e8m0fnu", "int8", "int32")
PAIRS = [
    *(("float32", dst) for dst in FROM_FLOAT32),
    *((src, "float32") for src in TO_FLOAT32),
    ("float16", "bfloat16"),
    ("bfloat16", "float8_e4m3fn"),
    ("float8_e4m3", "bfloat16"),
    ("int32", "bfloat16"),
]


def best_us(call: Callable[[], object], runs: int) -> float:
    """The shortest of seven averages, in microseconds."""
    return min(timeit.repeat(call, number=runs, repeat=7)) / runs * 1e6


def tile(name: str, shape: tuple[int, int]) -> np.ndarray:
    """Normally distributed values, as kernels see them."""
    values = np.random.default_rng(0).standard_normal(shape).astype(np.float32) * 10
    return nki_dtypes.cast(values, name)


def cast_rows() -> Iterator[tuple[str, float, float, float, float]]:
    """pair, tile ours, tile astype, one element ours, one element astype"""
    for src, dst in PAIRS:
        large, small = one_pair(src, dst, SHAPE, 100), one_pair(src, dst, (1, 1), 20_000)
        yield f"{src} → {dst}", *large, *small


def one_pair(src: str, dst: str, shape: tuple[int, int], runs: int) -> tuple[float, float]:
    source, storage = tile(src, shape), nki_dtypes.STORAGE_DTYPES[dst]
    out, convert = np.empty(shape, storage), nki_dtypes.caster(src, dst)
    return best_us(lambda: convert(source, out), runs), best_us(
        lambda: source.astype(storage), runs
    )


def add_rows() -> Iterator[tuple[str, float, float]]:
    """Ways to add two bfloat16 tiles into a third: µs for a tile, µs for one element."""
    for name, way in ADDITIONS.items():
        times = []
        for shape, runs in ((SHAPE, 100), ((1, 1), 20_000)):
            a, b, out = (tile("bfloat16", shape) for _ in range(3))
            with np.errstate():  # restores the buffer size, too
                times.append(best_us(way(a, b, out), runs))
        yield name, times[0], times[1]


def widen_add_round(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> Callable[[], object]:
    """What the casts of this package are for."""
    widen, narrow = nki_dtypes.widener("bfloat16"), nki_dtypes.caster("float32", "bfloat16")

    def add() -> None:
        total = widen(a)
        narrow(np.add(total, widen(b), out=total), out)

    return add


def buffered(elements: int) -> Callable[..., Callable[[], object]]:
    """One ufunc call that casts in pieces of so many elements; the result is the same."""

    def way(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> Callable[[], object]:
        np.setbufsize(elements)
        return lambda: np.add(a, b, out=out, dtype=np.float32, casting="unsafe")

    return way


def by_integers(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> Callable[[], object]:
    """Round to nearest even with 16-bit integer passes: what ml_dtypes is compared with."""
    widen = nki_dtypes.widener("bfloat16")
    upper, lower, odd = (np.empty(a.shape, np.uint16) for _ in range(3))
    up = np.empty(a.shape, bool)

    def add() -> None:
        total = widen(a)
        np.add(total, widen(b), out=total)
        assert not np.isnan(np.max(total))  # NaNs would need another way
        np.right_shift(total.view(np.uint32), 16, out=upper, casting="unsafe")
        np.copyto(lower, total.view(np.uint32), casting="unsafe")
        np.bitwise_and(upper, 1, out=odd)
        np.bitwise_or(lower, odd, out=lower)
        np.greater(lower, 0x8000, out=up)
        np.add(upper, up, out=out.view(np.uint16))

    return add


ADDITIONS: dict[str, Callable[..., Callable[[], object]]] = {
    "widen, np.add, round": widen_add_round,
    "np.add(…, dtype=float32), buffer 8192": buffered(8192),
    "np.add(…, dtype=float32), buffer 2048": buffered(2048),
    "widen, np.add, round by integers": by_integers,
    "np.add on bfloat16 (rounds the same)": lambda a, b, out: lambda: np.add(a, b, out=out),
}


def main() -> None:
    """Print both tables."""
    print(f"{'cast':28}{SHAPE!s:>10} µs  astype  ratio   (1, 1) µs  astype  ratio")
    for pair, ours, numpys, one_ours, one_numpys in cast_rows():
        large = f"{ours:12.1f}{numpys:9.1f}{ours / numpys:7.2f}"
        small = f"{one_ours:12.2f}{one_numpys:8.2f}{one_ours / one_numpys:7.2f}"
        print(f"{pair:28}{large}{small}")
    print(f"\n{'bfloat16 + bfloat16':42}{SHAPE!s:>12} µs   (1, 1) µs")
    for name, large_us, small_us in add_rows():
        print(f"{name:42}{large_us:15.1f}{small_us:12.2f}")


if __name__ == "__main__":
    main()
