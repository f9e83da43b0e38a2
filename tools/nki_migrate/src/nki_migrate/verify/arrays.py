"""The arrays of a case: filling them from a seed, and carrying them between processes.

Arrays travel as raw bytes with a dtype name: NumPy's own `.npz` forgets bfloat16 and float8.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from nki_migrate.verify.cases import Arg, CasesError
from nki_migrate.verify.untrusted import read_regular

Array = np.ndarray[Any, np.dtype[Any]]

# The content of memory that was not written: NaN, or 4 in integers (NKI simulator documentation).
_EMPTY_INTEGER = 4
_DEFAULT_HIGH = {"uniform": 1.0, "integers": 100}


def storage_dtype(name: str) -> np.dtype[Any]:
    """The NumPy dtype that holds an NKI dtype, by any of its names.

    Raises CasesError for an unknown name.
    """
    import nki_dtypes

    try:
        return np.dtype(nki_dtypes.STORAGE_DTYPES[name])
    except (KeyError, TypeError, ValueError) as error:
        raise CasesError(f"dtype {name!r}: {error}") from None


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is a floating-point format, including the formats of ml_dtypes."""
    return dtype.kind == "f" or (dtype.kind == "V" and hasattr(ml_dtypes, dtype.name))


def fill_array(arg: Arg, seed: int, variant: int, position: int) -> Array:
    """The array of an argument. Values are drawn in float64 (or int64) and rounded once.

    The stream depends on seed, variant and position only, so adding an argument at the end
    changes no other array.
    """
    assert arg.dtype is not None and arg.shape is not None
    dtype = storage_dtype(arg.dtype)
    fill = arg.fill or _default_fill(arg, dtype)
    rng = np.random.default_rng([seed, variant, position])
    if fill in ("normal", "uniform", "nan") and not is_float(dtype):
        raise CasesError(f"argument {arg.name}: fill {fill!r} needs a float dtype, got {arg.dtype}")
    values = _FILLS[fill](arg, rng, dtype)
    with np.errstate(over="ignore", invalid="ignore"):  # extremes of float64 in a narrower format
        return np.ascontiguousarray(values.astype(dtype).reshape(arg.shape))


def _default_fill(arg: Arg, dtype: np.dtype[Any]) -> str:
    if arg.role == "output":
        return "empty"
    return "normal" if is_float(dtype) else "integers"


def _bounds(arg: Arg, fill: str, dtype: np.dtype[Any]) -> tuple[float, float]:
    top = 2 if dtype.kind == "b" else _DEFAULT_HIGH[fill]
    return arg.low or 0, top if arg.high is None else arg.high


def _normal(arg: Arg, rng: np.random.Generator, dtype: np.dtype[Any]) -> Array:
    return rng.standard_normal(arg.shape) * arg.scale


def _uniform(arg: Arg, rng: np.random.Generator, dtype: np.dtype[Any]) -> Array:
    return rng.uniform(*_bounds(arg, "uniform", dtype), arg.shape) * arg.scale


def _integers(arg: Arg, rng: np.random.Generator, dtype: np.dtype[Any]) -> Array:
    low, high = _bounds(arg, "integers", dtype)
    return rng.integers(int(low), int(high), arg.shape) * arg.scale


def _iota(arg: Arg, rng: np.random.Generator, dtype: np.dtype[Any]) -> Array:
    count = int(np.prod(arg.shape or (), dtype=np.int64))
    return np.arange(count) * arg.scale + (arg.low or 0)


def _empty(arg: Arg, rng: np.random.Generator, dtype: np.dtype[Any]) -> Array:
    return np.full(arg.shape or (), np.nan if is_float(dtype) else _EMPTY_INTEGER)


def _ties(arg: Arg, rng: np.random.Generator, dtype: np.dtype[Any]) -> Array:
    """Few values, so that most occur more than once in a row."""
    return rng.integers(0, 2 if dtype.kind == "b" else 4, arg.shape)


def _nan(arg: Arg, rng: np.random.Generator, dtype: np.dtype[Any]) -> Array:
    return np.where(rng.random(arg.shape) < 0.25, np.nan, _normal(arg, rng, dtype))


def _extremes(arg: Arg, rng: np.random.Generator, dtype: np.dtype[Any]) -> Array:
    """The ends of the format, what surrounds them and zero, and the infinities of floats."""
    return rng.choice(_ends(dtype), arg.shape)


def _ends(dtype: np.dtype[Any]) -> Array:
    if dtype.kind == "b":
        return np.array([False, True])
    if not is_float(dtype):
        ends = np.iinfo(dtype)
        near = [ends.min, ends.min + 1, ends.max - 1, ends.max, 0, 1, ends.max // 2]
        return np.array(near, dtype)
    top, least = (float(getattr(ml_dtypes.finfo(dtype), n)) for n in ("max", "smallest_normal"))
    signed = [v for x in (top, top / 2, least, least / 2, 1.0, np.inf, 0.0) for v in (x, -x)]
    return np.array(signed)


def _large_integers(arg: Arg, rng: np.random.Generator, dtype: np.dtype[Any]) -> Array:
    """Odd integers beyond 2**24, which float32 rounds; as large as they get in narrow formats."""
    top = 2**30 if is_float(dtype) else min(int(np.iinfo(dtype).max), 2**30)
    low = min(2**24, top // 2)
    return rng.integers(low, top, arg.shape) | 1


# fill → values before the cast; `low` (inclusive), `high` (exclusive) and `scale` apply as named
_FILLS: dict[str, Callable[[Arg, np.random.Generator, np.dtype[Any]], Array]] = {
    "normal": _normal,
    "uniform": _uniform,
    "integers": _integers,
    "zeros": lambda arg, rng, dtype: np.zeros(arg.shape or ()),
    "ones": lambda arg, rng, dtype: np.ones(arg.shape or ()),
    "iota": _iota,
    "empty": _empty,
    "ties": _ties,
    "extremes": _extremes,
    "nan": _nan,
    "large_integers": _large_integers,
}


def is_number(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is a format of results: integers, floats, bool, also of ml_dtypes."""
    return dtype.kind in "biu" or is_float(dtype)


def save_array(array: Array, path: Path) -> dict[str, Any]:
    """Write an array's bytes to a file; the answer says how to read them back. Raises TypeError
    for an array of something else than numbers.
    """
    if not is_number(array.dtype):
        raise TypeError(f"a result is an array of {array.dtype}: expected integers, floats or bool")
    path.write_bytes(array.tobytes())
    return {"file": path.name, "dtype": array.dtype.name, "shape": list(array.shape)}


def load_array(folder: Path, entry: dict[str, Any]) -> Array:
    """The array that `save_array` wrote into a folder; writable. Raises OSError, ValueError,
    TypeError or KeyError where something else is there.
    """
    dtype = _dtype_named(entry["dtype"])
    if not is_number(dtype):
        raise TypeError(entry["dtype"])
    raw = read_regular(folder / Path(entry["file"]).name)
    return np.frombuffer(bytearray(raw), dtype).reshape(entry["shape"])


def _dtype_named(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))
